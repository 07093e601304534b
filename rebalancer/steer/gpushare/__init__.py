"""Sharing GPUs by memory, with the protocol of the gpushare scheduler extender: a pod asks for a part of the memory of one device.

What a node has (`devices`), which device a pod's annotations say that it holds (`allocations`), the sums of both (`ledger`), the choice
of a device (`choice`) with what is measured of devices (`device_load`), the pods that are being bound at this moment (`register`), and
the bytes of the verbs (`filtering`, `inspecting`, `binding`). All of it is pure: values in, values out, the time an argument.

Who watches the cluster and who binds lives in `rebalancer.runtime.gpushare`.
"""
