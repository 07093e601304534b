"""Sharing GPUs by memory, live: the cluster is watched (`feeds`, `book`), pods are bound (`binder`), kube-scheduler is answered
(`service`).

Off by default. The rules are in `rebalancer.steer.gpushare`, the calls to the API server in `rebalancer.kube.gpu_sharing`.
"""
