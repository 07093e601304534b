"""The devices under a growing plan: what each still has to give, to whom, and what a replacement needs of one.

Two questions are kept apart. *Possible*: would the scheme's own scheduler give the pod a device of the node, by what was asked for? That
is a filter like those of kube-scheduler. *Fits*: is every device that it could give a good one, by what was measured too? That is this
project's own demand of a destination, and where it fails while the other holds, the replacement may well land there all the same.
"""
