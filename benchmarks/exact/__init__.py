"""The exact yardstick: what the best of all plans could do, by mixed integer programming, so that our distance to it can be told.

Two questions are put to HiGHS about a frozen cluster. `fewest.fewest_moves`: with how few evictions can every hot node come to its target?
`worst.lowest_worst`: how low can the worst load of the cluster get with so many evictions? `problem` says what a plan may do there and
what not. The yardstick chooses destinations freely, which no controller can: it is a bound, not an opponent.
"""
