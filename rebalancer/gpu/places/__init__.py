"""Which devices of its node a pod holds, one scheme a file, each a function ``read(pod, node, context)`` that gives what the pod holds.

A scheme that has written nothing gives nothing; what is written and makes no sense is raised as an `Unreadable` or a `Misplaced`, and the
pod is then on some device of its node that nobody knows. No scheme guesses; what follows from counts alone is for `counting` to say.
"""
