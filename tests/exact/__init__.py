"""The yardstick: what the mixed integer programs find, held against optima that are known otherwise."""
