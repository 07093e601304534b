"""The only importer of the Kubernetes client: paged raw lists, wire structs, eviction, patches, events, reviews.

Everything else sees plain structs and the errors of `rebalancer.errors`; no object of the client leaves this package.
"""
