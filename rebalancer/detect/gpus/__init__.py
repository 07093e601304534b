"""What is found out about GPUs: who holds them idle, who uses more of one than was asked for. Pure, like everything in `rebalancer.detect`.

What is unknown leads to no finding, and is counted, so that silence does not look like order.
"""
