"""What exporters measure of devices: which metrics there are and in which units, how their labels name a device, and what the numbers of a
device and of its pods come to. Pure; who asks Prometheus is `rebalancer.collect.gpu`.
"""
