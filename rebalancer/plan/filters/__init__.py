"""kube-scheduler's filters, one a file: where a replacement may go.

Each file holds one ``FILTER``. Three of them say less than the scheduler, on purpose: a pod of an unknown scheduler, a pod with resource
claims, and a pod with claims that are not bound are rejected everywhere, since where they would go cannot be known from here. Per-driver
volume limits and features that nodes declare are not in the state and not checked: a node that passes may still be refused by them.
"""
