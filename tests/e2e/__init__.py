"""Closed loops on a real control plane: kube-apiserver, kube-controller-manager, kube-scheduler and etcd, hollow nodes, a real Prometheus.

Run by ``make e2e`` and by nothing else; docs/testing.md says what is needed.
"""
