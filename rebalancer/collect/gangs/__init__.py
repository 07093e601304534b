"""Which pods belong together: the marks on them, the objects that say how many of them it takes, and the table of both.

The objects are of a dozen systems, of which a cluster has one or two; none is asked for unless a pod carries its mark.
"""
