"""A load-aware rebalancer for Kubernetes: decisions from what pods use, not only from what they request."""

__version__ = "0.1.0"
