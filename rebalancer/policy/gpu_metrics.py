"""What is asked of the exporters of GPU metrics, and what is believed of their answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rebalancer.policy.quantities import Strict

MetricName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$", max_length=200)]


class GpuMetrics(Strict):
    """Exporters of GPU metrics: dcgm-exporter, HAMi's monitor and AMD's device-metrics-exporter are known."""

    enabled: bool = True
    """Ask Prometheus for them where nodes have GPUs. Without, GPUs are known by what is allocated alone."""
    names: dict[MetricName, MetricName] = Field(default_factory=dict)
    """Metrics that are called otherwise here: ``DCGM_FI_DEV_GPU_UTIL: gpu_busy_percent``."""
    fatal_xids: tuple[Annotated[int, Field(ge=1, le=100000)], ...] = (48, 62, 64, 74, 79, 95, 119, 120)
    """XID errors after which nothing is put on a device until it was reset."""
    too_hot: float = Field(default=90.0, ge=40, le=150, allow_inf_nan=False)
    """Degrees Celsius from which nothing is put on a device."""
