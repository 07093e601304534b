"""From API objects to the tables of GPUs: what the rules of `rebalancer.gpu` read is taken out of wire structs here, and put together.

A cluster without GPUs pays for a look at each pod's extended resources, which is taken once a distinct template, and nothing more.
"""
