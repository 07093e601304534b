"""The fast-forward world and `rebalancer simulate`."""
