"""GPUs as a flat table: a row a device and pod, one row for a device that nobody is on."""

from __future__ import annotations

from rebalancer.report.gpus import GpusReport
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.writers.csv_rows import CsvCell, csv_text

_DEVICE = ("node", "device", "uuid", "model", "profile", "scheme", "condition", "device_busy", "device_memory_used_bytes")
_POD = ("namespace", "pod", "address", "workload", "class", "tenant", "busy", "memory_used_bytes", "memory_allocated_bytes", "compute")


@writer(GpusReport, Format.CSV)
def gpus_csv(report: GpusReport, page: Page, _: Format) -> str:
    header = [*_DEVICE, "device_memory_allocated_bytes", "device_memory_bytes", *_POD, "estimated", "confidence"]
    rows: list[list[CsvCell]] = []
    for one in report.devices:
        start: list[CsvCell] = [one.node, one.device, one.uuid, one.model, one.profile, one.scheme, one.condition, one.busy]
        start += [one.memory_used_bytes, one.memory_allocated_bytes, one.memory_bytes]
        for pod in one.pods:
            row: list[CsvCell] = [*start, pod.namespace, pod.name, pod.address, pod.workload, pod.pod_class, pod.tenant, pod.busy]
            rows.append([*row, pod.memory_used_bytes, pod.memory_allocated_bytes, pod.compute, pod.estimated, pod.confidence])
        if not one.pods:
            rows.append([*start, *[None] * (len(_POD) + 2)])
    return csv_text(header, rows, page)
