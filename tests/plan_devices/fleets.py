"""Hypothesis strategies for fleets of GPUs: every way of sharing, several models, some devices ill, in doubt, unmeasured or over-used.

Pods are put on devices as their scheme would, so that a fleet is one that could have come about: nothing is over-packed by ask unless a
node is told to be. What is used is drawn apart from what was asked for.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import Health
from rebalancer.state.gpu import GpuAsk, Scheme
from tests.support.builder import CPU, GPU, GPU_MEMORY, NodeSpec, PodSpec, cluster, node, pod
from tests.support.gpu_use import Taken, Used, measured, taken, used
from tests.support.gpus import DeviceSpec, Part, fraction, gpu, memory_of, mig, part, replica, slice_of, virtual, whole

GI = 1024.0**3
UNLIMITED = float("nan")
RESERVED = 0.3 * GI
"""By the driver, of each device."""
SIZES = {"A100": 40.0, "T4": 16.0, "H100": 80.0}
PLUGIN = "nvidia.com/gpu"


@dataclass(frozen=True)
class Way:
    """A way of sharing: what a node of it has, and what its pods ask for, with what they hold of a device of ``size`` GiB."""

    name: str
    replicas: float = UNLIMITED
    units: float = 0.0
    """Of the device plugin's resource that a device is; 0: the scheme has none."""

    def device(self, model: str) -> DeviceSpec:
        size = f"{SIZES[model]:g}Gi"
        if self.name == "mig":
            return mig(memory="5Gi", model=model)
        scheme = Scheme.PLAIN if self.name == "kai" else Scheme(self.name)
        handed_out = size if scheme in (Scheme.GPUSHARE, Scheme.HAMI, Scheme.VOLCANO_GPUSHARE, Scheme.KOORDINATOR) else UNLIMITED
        return gpu(size, model=model, scheme=scheme, replicas=self.replicas, handed_out=handed_out)

    def asks(self, size: float, tenths: int) -> tuple[GpuAsk, Part]:
        """For ``tenths`` of a device, where the scheme has parts."""
        share, memory = tenths / 10, size * tenths / 10 * GI
        if self.name == "plain":
            return whole(), part(1.0, size * GI)
        if self.name == "mig":
            return slice_of("1g.5gb"), part(1.0, 5 * GI)
        if self.name == "time-slicing":
            return replica(self.replicas), part(compute=1 / self.replicas)
        if self.name in ("gpushare", "volcano-gpushare"):
            return memory_of(memory, scheme=Scheme(self.name)), part(memory=memory)
        if self.name == "hami":
            return virtual(memory=memory, cores=share), part(share, memory)
        return fraction(share, scheme=Scheme(self.name)), part(share, memory)


WAYS = (
    Way("plain", replicas=1, units=1),
    Way("mig", replicas=1, units=1),
    Way("time-slicing", replicas=4, units=4),
    Way("gpushare"),
    Way("volcano-gpushare"),
    Way("hami", replicas=10, units=10),
    Way("koordinator"),
    Way("tencent"),
    Way("kai", replicas=1),
)
ODD = ["", "", "", "", "", "", "ill", "doubted", "unmeasured", "distrusted", "unhealthy", "leaking", "over-used"]


Place = tuple[str, int]
"""Name of a node, and the place of one of its devices."""


@dataclass
class Fleet:
    """What is told of it, and how it truly is."""

    nodes: list[NodeSpec] = field(default_factory=list)
    pods: list[PodSpec] = field(default_factory=list)
    use: dict[Place, Used] = field(default_factory=dict)
    own: dict[str, Taken] = field(default_factory=dict)
    ways: dict[str, Way] = field(default_factory=dict)
    """By node."""
    size: dict[Place, float] = field(default_factory=dict)
    """Bytes that the device has."""
    bytes_used: dict[Place, float] = field(default_factory=dict)
    odd: dict[Place, str] = field(default_factory=dict)
    model: dict[Place, str] = field(default_factory=dict)
    holders: dict[Place, list[str]] = field(default_factory=lambda: defaultdict(list))
    tenths: dict[str, int] = field(default_factory=dict)
    """By pod: how much of a device it asked for."""
    takes: dict[str, float] = field(default_factory=dict)
    """By pod: bytes that it uses."""

    @property
    def state(self) -> ClusterState:
        return measured(cluster(nodes=self.nodes, pods=self.pods, signals=(CPU, GPU, GPU_MEMORY)), self.use, self.own)


@st.composite
def fleets(draw: st.DrawFn, ways: tuple[Way, ...] = WAYS) -> Fleet:
    """Each way of sharing that is drawn has one hot node, by GPU or by CPU, and one to three cool ones."""
    fleet = Fleet()
    for way in draw(st.lists(st.sampled_from(ways), min_size=1, max_size=3, unique=True)):
        model = draw(st.sampled_from(sorted(SIZES)))
        for number in range(draw(st.integers(2, 4))):
            hot = number == 0
            own = model if hot or draw(st.integers(0, 3)) else draw(st.sampled_from(sorted(SIZES)))
            _add_node(draw, fleet, way, f"{way.name}-{number}", own, hot=hot)
    if draw(st.booleans()):
        fleet.nodes.append(node("cpu", cpu=64, load={"cpu": 0.1}))
    return fleet


def _add_node(draw: st.DrawFn, fleet: Fleet, way: Way, name: str, model: str, *, hot: bool) -> None:
    devices: list[DeviceSpec] = []
    fleet.ways[name] = way
    for place in range(draw(st.integers(1, 3))):
        spec, odd = way.device(model), draw(st.sampled_from(ODD))
        size = 5.0 if way.name == "mig" else SIZES[model]
        changes = {"distrusted": {"trusted": False}, "unhealthy": {"health": Health.UNHEALTHY}}.get(odd, {})
        devices.append(replace(spec, **changes))
        bytes_used = _fill(draw, fleet, way, name, place, size, hot=hot, nobody=odd in ("distrusted", "leaking"))
        if odd in ("leaking", "over-used"):
            bytes_used = max(bytes_used, draw(st.floats(0.3, 0.95)) * size * GI)
        at = (name, place)
        fleet.size[at], fleet.bytes_used[at], fleet.odd[at], fleet.model[at] = size * GI, bytes_used, odd, model
        fleet.use[name, place] = used(
            busy=0.9 if hot else 0.1,
            memory=UNLIMITED if odd in ("unmeasured", "doubted") else bytes_used,
            total=size * GI,
            doubt="its engine says otherwise" if odd == "doubted" else "",
            ailment="its last XID error is 79" if odd == "ill" else "",
        )
    by_cpu = hot and draw(st.booleans())
    fleet.nodes.append(
        node(
            name,
            cpu=16,
            gpus=devices,
            extended={PLUGIN: way.units * len(devices)} if way.units else {},
            load={"cpu": 0.9 if by_cpu else 0.1, "gpu": 0.9 if hot and not by_cpu else 0.1, "gpu_memory": 0.2},
        )
    )


def _fill(draw: st.DrawFn, fleet: Fleet, way: Way, name: str, place: int, size: float, *, hot: bool, nobody: bool) -> float:
    """Put pods on a device, and say how many bytes of it are in use, theirs and the driver's."""
    left, bytes_used = 10, RESERVED
    most = 0 if nobody else 1 if way.name in ("plain", "mig") else 3
    for number in range(draw(st.integers(1 if hot and most else 0, most))):
        tenths = draw(st.integers(1, 5))
        if tenths > left:
            break
        left -= tenths
        ask, held = way.asks(size, tenths)
        wants = draw(st.floats(0.0, 2.5)) * tenths / 10 * size * GI
        takes = min(wants, max(0.0, size * GI - bytes_used))
        bytes_used += takes
        called = f"{name}-{place}-{number}"
        known = draw(st.sampled_from(["measured", "measured", "estimated", "unknown"]))
        fleet.holders[name, place].append(called)
        fleet.tenths[called], fleet.takes[called] = 10 if most == 1 else tenths, takes
        fleet.own[called] = taken(memory=UNLIMITED if known == "unknown" else takes, estimated=known == "estimated")
        fleet.pods.append(
            pod(
                called,
                on=name,
                workload=called,
                uses={"cpu": draw(st.floats(0.5, 6)), "gpu": draw(st.floats(0.05, 0.5)), "gpu_memory": takes},
                extended={PLUGIN: 1} if way.units else {},
                gpu=ask,
                holds={} if draw(st.integers(0, 5)) == 0 else {place: held},
            )
        )
    return bytes_used
