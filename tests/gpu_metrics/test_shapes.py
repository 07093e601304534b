"""Recorded expositions of every exporter shape, scraped by a real Prometheus: what comes of them on devices, pods and nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from rebalancer.gpu.telling import unmeasured_words
from rebalancer.state.gpu import MIB
from tests.gpu_metrics.scene import Scene, looked, scraping
from tests.support.prometheus_server import require_prometheus

pytestmark = pytest.mark.prometheus


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    require_prometheus()
    with scraping(tmp_path_factory.mktemp("prometheus")) as server:
        yield looked(server)


def test_a_device_of_its_own_is_what_the_pod_uses(scene: Scene) -> None:
    """Busy share, and memory with what the driver keeps."""
    assert scene.busy("GPU-a0") == pytest.approx(0.8)
    assert scene.usage("train") == pytest.approx(0.8)
    assert scene.usage("train", "gpu_memory") == pytest.approx(30460 * MIB)
    assert not scene.state.gpus.held_use.estimated[scene.pair("train")]


def test_g7_memory_is_used_free_and_reserved(scene: Scene) -> None:
    """Used and free alone are less than there is."""
    assert scene.state.gpus.use.total_bytes[scene.device("GPU-a0")] == pytest.approx(40960 * MIB)


def test_an_idle_device_that_holds_memory_is_not_empty(scene: Scene) -> None:
    """Nothing runs on it, and a gigabyte is taken."""
    assert scene.busy("GPU-a1") == 0.0
    assert scene.state.gpus.use.memory_bytes[scene.device("GPU-a1")] == pytest.approx(1460 * MIB)


def test_a_fatal_xid_is_an_ailment(scene: Scene) -> None:
    """It is no destination, and says why."""
    use = scene.state.gpus.use
    assert "79" in use.ailments[scene.device("GPU-a1")]
    assert use.ailments[scene.device("GPU-a0")] == ""


def test_g3_the_exporter_is_not_taken_for_the_user(scene: Scene) -> None:
    """An idle GPU has no exported pod, and its plain pod is the exporter's."""
    held = scene.state.gpus.held
    assert held.of_pod(scene.pod("dcgm-exporter-x")).tolist() == []
    assert scene.usage("dcgm-exporter-x") == 0.0
    assert scene.busy("GPU-b1") == 0.0


def test_g1_copied_values_are_one_device_and_no_measurement_of_its_pods(scene: Scene) -> None:
    """Both series say 90: the device is at 90, and each pod's part is an estimate."""
    assert scene.busy("GPU-b2") == pytest.approx(0.9)
    use = scene.state.gpus.held_use
    rows = [scene.pair("copy-1"), scene.pair("copy-2")]
    assert use.busy[rows].sum() == pytest.approx(0.9)
    assert use.estimated[rows].all()


def test_g1_values_of_processes_are_measurements(scene: Scene) -> None:
    """Beside a series of the device itself, those of virtual GPUs are the pods' own."""
    use = scene.state.gpus.held_use
    rows = [scene.pair("own-1"), scene.pair("own-2")]
    assert use.busy[rows].tolist() == pytest.approx([0.6, 0.1])
    assert use.memory_bytes[rows].tolist() == pytest.approx([7000 * MIB, 2000 * MIB])
    assert not use.estimated[rows].any()
    assert scene.busy("GPU-b3") == pytest.approx(0.7)


def test_g11_zeros_of_all_sharers_of_a_busy_device_are_not_idleness(scene: Scene) -> None:
    """The exporter could not see the processes."""
    use = scene.state.gpus.held_use
    rows = [scene.pair("blind-1"), scene.pair("blind-2")]
    assert use.estimated[rows].all()
    assert use.busy[rows].sum() == pytest.approx(0.5)


def test_g5_an_engine_that_is_stuck_makes_the_device_doubted(scene: Scene) -> None:
    """One signal says 90 %, the other nothing: neither is believed."""
    row = scene.device("GPU-b5")
    assert math.isnan(scene.busy("GPU-b5"))
    assert "90 %" in scene.state.gpus.use.doubts[row]


def test_g6_an_absurd_value_is_unknown(scene: Scene) -> None:
    """Four billion percent is no load, and not zero."""
    assert math.isnan(scene.busy("GPU-b6"))
    assert sum(scene.samples.dropped.values()) > 0


def test_a_node_with_a_device_that_is_unknown_is_unknown(scene: Scene) -> None:
    """And says which one."""
    column, row = scene.state.signal_index["gpu"], scene.state.node_index["new"]
    assert math.isnan(scene.node_usage("new"))
    assert "GPU" in scene.state.nodes.unknown[row, column]


def test_g4_an_instance_is_as_busy_as_its_engine(scene: Scene) -> None:
    """By the parent's uuid and the number of the instance."""
    assert scene.busy("GPU-m0", 1) == pytest.approx(0.55)
    assert scene.usage("slice") == pytest.approx(0.55)


def test_g4_an_instance_without_an_engine_is_unknown(scene: Scene) -> None:
    """Its utilisation reads 0 whatever it does."""
    assert math.isnan(scene.busy("GPU-m0", 2))


def test_g20_a_percentage_called_ratio(scene: Scene) -> None:
    """55 is 55 percent."""
    assert scene.busy("GPU-h0") == pytest.approx(0.55)
    assert scene.node_usage("hami") == pytest.approx(0.55)


def test_hami_measures_each_pod(scene: Scene) -> None:
    """By its own library: busy share, memory, and when it last ran a kernel."""
    use = scene.state.gpus.held_use
    rows = [scene.pair("v-1"), scene.pair("v-2")]
    assert use.busy[rows].tolist() == pytest.approx([0.4, 0.15])
    assert use.memory_bytes[rows].tolist() == pytest.approx([6 * 2.0**30, 3 * 2.0**30])
    assert use.kernel_idle_s[rows].tolist() == [3.0, 7200.0]
    assert not use.estimated[rows].any()


def test_a_node_whose_exporter_is_silent_is_unknown(scene: Scene) -> None:
    """It has GPUs, and nobody measures them."""
    assert math.isnan(scene.node_usage("silent"))
    assert math.isnan(scene.usage("unheard"))


def test_g18_a_node_without_gpus_has_nothing_to_do_with_it(scene: Scene) -> None:
    """No capacity, no usage, and no sentence that calls it unknown."""
    row, column = scene.state.node_index["plain"], scene.state.signal_index["gpu"]
    assert math.isnan(scene.state.nodes.capacity[row, column])
    assert (row, column) not in scene.state.nodes.unknown


def test_what_was_found_is_said(scene: Scene) -> None:
    """By exporter, with how it names nodes and pods."""
    assert [shape.split(":")[0] for shape in scene.samples.shapes] == [
        "dcgm-exporter",
        "HAMi",
        "AMD device-metrics-exporter",
    ]


def test_g9_a_host_name_that_names_no_node_gives_way_to_the_pod_that_was_scraped(scene: Scene) -> None:
    """localhost is no node; the exporter's pod is on one."""
    assert scene.busy("GPU-l0") == pytest.approx(0.35)
    assert scene.node_usage("local") == pytest.approx(0.35)


def test_g9_a_device_that_no_way_places_is_reported_with_its_labels(scene: Scene) -> None:
    """It is in no table, and its labels are told."""
    assert "GPU-n0" not in scene.state.gpus.devices.uuids
    (note,) = [note for note in scene.samples.notes if "GPU-n0" in note]
    assert "dcgm-exporter-6ldbb" in note


def test_g10_zeros_of_containers_on_a_busy_device_are_unknown(scene: Scene) -> None:
    """The device is at 95 %: what is said of each pod is an estimate, and none of them is idle."""
    assert scene.busy("GPU-o0") == pytest.approx(0.95)
    for name in ("zero-1", "zero-2"):
        assert scene.state.gpus.held_use.estimated[scene.pair(name)]
        assert scene.usage(name) != 0.0


def test_g10_a_container_above_100_percent_is_not_measured(scene: Scene) -> None:
    """Its neighbour on the device is."""
    own = scene.state.gpus.held_use
    assert own.estimated[scene.pair("above")]
    assert own.busy[scene.pair("below")] == pytest.approx(0.2)
    assert own.memory_bytes[scene.pair("below")] == pytest.approx(3 * 1024 * MIB)


def test_amd_tells_devices_by_number_where_it_tells_no_uuid(scene: Scene) -> None:
    """A GPU that is not partitioned is partition 0 of itself, and one device."""
    assert scene.node_usage("amd") == pytest.approx(0.7)
    assert scene.node_usage("amd", "gpu_memory") == pytest.approx(50300 * MIB)


def test_g21_partitions_without_activity_of_their_own_are_unknown(scene: Scene) -> None:
    """Their zeros are no idleness, so the node is unknown."""
    assert math.isnan(scene.node_usage("parts"))


def test_g6_one_absurd_sample_does_not_spoil_its_window(scene: Scene) -> None:
    """The middle of the window stands in for the mean, and the node is known."""
    assert scene.busy("GPU-s0") == pytest.approx(0.42)
    assert scene.node_usage("spiked") == pytest.approx(0.42)


def test_nodes_without_an_exporter_are_named(scene: Scene) -> None:
    """The exporter is on some nodes and not on others."""
    said = unmeasured_words(scene.state.gpus, scene.state.nodes.names)
    assert "silent" in said
    assert "spiked" not in said
