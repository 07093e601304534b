"""HTTP as this program serves it: a bounded server with keep-alive, the certificate it shows, and routes that others plug in.

Nothing here knows what is served. Health and metrics of the controller, the verbs of kube-scheduler's extender and whatever comes later are
mappings from a method and a path to a `Handler`.
"""
