"""From findings to a plan: where pods may go, where kube-scheduler would put them, which few moves cool the cluster most.

What may live here: feasibility (kube-scheduler's filters), its scores, heat and gain, the methods (balance first; one file each), the
plan model. Pure: time is an argument, there is no input and no output.
"""
