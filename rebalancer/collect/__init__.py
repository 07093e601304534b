"""Fills the state: from the API server's lists, from Prometheus, with every sample that cannot be trusted left unknown.

`collect.prometheus` is the only importer of the Prometheus client. Nothing here decides anything about load.
"""
