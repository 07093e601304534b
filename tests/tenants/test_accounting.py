"""What tenants requested and used in a period, in hours and money, from what a real Prometheus keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rebalancer.cli.main import run as rebalancer
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.errors import PolicyError, UsageError
from rebalancer.policy.prices import GIB, load_prices
from rebalancer.report.accounting import AccountRow
from rebalancer.runtime.accounting import DAY_S, STEP_S, account
from tests.support.prometheus_server import PrometheusServer, Samples, counter, gauge, openmetrics, require_prometheus

END = datetime(2026, 3, 3, tzinfo=UTC).timestamp()
START = END - 2 * DAY_S
HOUR = 3600.0
PRICES = """\
apiVersion: rebalancer.dev/v1alpha1
kind: Prices
spec:
  currency: EUR
  perHour: {cpu: 0.02, memory: 0.004, gpu/A100: 1.5}
"""


def tenant(
    metric: str, name: str, resource: str, value: float, *, since: float = START, until: float = END, leader: str = "r-0"
) -> Samples:
    labels = {"tenant": name, "resource": resource, "pod": leader}
    steps = range(int(since), int(until), 60)
    return gauge(f"rebalancer_tenant_{metric}", labels, value, times=[float(step) for step in steps])


def raw(pod: str, phase: str, since: float) -> list[Samples]:
    """Series of kube-state-metrics and the kubelet of a pod in namespace `shop` that requests 2 cores and uses a half."""
    own = {"namespace": "shop", "pod": pod}
    times = [float(step) for step in range(int(since), int(END), 60)]
    phases = [
        gauge("kube_pod_status_phase", {**own, "phase": each}, float(each == phase), times=times) for each in ("Running", "Succeeded")
    ]
    requests = gauge("kube_pod_container_resource_requests", {**own, "container": "main", "resource": "cpu"}, 2.0, times=times)
    used = counter("container_cpu_usage_seconds_total", {**own, "container": "main"}, 0.5 if phase == "Running" else 0.0, times=times)
    return [*phases, requests, used]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Two days: vision throughout, told by two leaders in turn; speech on the second day alone."""
    require_prometheus()
    half = START + DAY_S
    blocks = openmetrics(
        [
            tenant("requested", "vision", "cpu", 10, until=half + HOUR),
            tenant("requested", "vision", "cpu", 10, since=half, leader="r-1"),
            tenant("used", "vision", "cpu", 4),
            tenant("wasted", "vision", "cpu", 6),
            tenant("used_coverage_ratio", "vision", "cpu", 0.8, until=half - STEP_S),  # and is looked back at for a step
            tenant("borrowed", "vision", "cpu", 2),
            tenant("guaranteed", "vision", "cpu", 8),
            tenant("requested", "vision", "memory", 3 * GIB),
            tenant("requested", "vision", "gpu/A100", 2),
            tenant("requested", "vision", "gpu", 2),
            tenant("requested", "speech", "cpu", 5, since=half),
            *raw("web", "Running", END - 4 * HOUR),
            *raw("job", "Succeeded", END - 4 * HOUR),
        ]
    )
    with PrometheusServer(tmp_path_factory.mktemp("prometheus"), blocks=blocks) as server:
        client = Prometheus(PrometheusAccess(url=server.url))
        yield client
        client.close()


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.yaml"
    file.write_text(PRICES, encoding="utf-8")
    return file


def rows(prometheus: Prometheus, **more: object) -> dict[tuple[str, str], AccountRow]:
    report = account(prometheus, since=START, until=END, deadline=Deadline.after(60), **more)  # type: ignore[arg-type]
    return {(row.tenant, row.resource): row for row in report.rows}


def test_hours_are_the_value_times_the_time_it_was_recorded(prometheus: Prometheus) -> None:
    """Each hour counts once, on the border of two days and of two leaders as well."""
    found = rows(prometheus)[("vision", "cpu")]
    assert found.requested_hours == pytest.approx(480)
    assert found.used_hours == pytest.approx(192)
    assert found.wasted_hours == pytest.approx(288)
    assert found.borrowed_hours == pytest.approx(96)
    assert found.guaranteed_hours == pytest.approx(384)
    assert found.coverage == 1
    assert found.cost is None


def test_what_is_used_is_told_to_be_of_a_part_of_what_was_requested(prometheus: Prometheus) -> None:
    """On the first day the use of four fifths of it was known, on the second of none; of memory it never was."""
    report = account(prometheus, since=START, until=END, deadline=Deadline.after(60))
    measured = {(row.tenant, row.resource): row.measured for row in report.rows}
    assert measured["vision", "cpu"] == pytest.approx(0.4)
    assert measured["vision", "memory"] is None
    assert "used and wasted are of pods whose use is known: MEASURED is their part of what was requested" in report.notes


def test_what_is_not_recorded_adds_nothing_and_is_told(prometheus: Prometheus) -> None:
    report = account(prometheus, since=START, until=END, deadline=Deadline.after(60))
    found = next(row for row in report.rows if row.tenant == "speech")
    assert found.requested_hours == pytest.approx(120)
    assert found.used_hours is None
    assert found.coverage == 0.5
    assert report.notes == (
        "of some tenants only 50 % of the period is recorded; nothing is added for the rest",
        "used and wasted are of pods whose use is known: MEASURED is their part of what was requested",
    )


def test_costs_are_of_what_was_requested(prometheus: Prometheus, prices: Path) -> None:
    """By the GiB for memory; what has no price has no cost."""
    found = rows(prometheus, prices=load_prices(prices))
    assert found[("vision", "cpu")].cost == pytest.approx(480 * 0.02)
    assert found[("vision", "memory")].cost == pytest.approx(3 * 48 * 0.004)
    assert found[("vision", "gpu/A100")].cost == pytest.approx(96 * 1.5)
    assert found[("vision", "gpu")].cost is None


def test_only_what_was_asked_for_is_shown(prometheus: Prometheus) -> None:
    """`gpu` shows its models as well."""
    assert {resource for _, resource in rows(prometheus, by=("gpu",))} == {"gpu", "gpu/A100"}


@pytest.mark.parametrize(
    ("since", "words"),
    [(END + STEP_S / 2, "shorter than one step"), (END + DAY_S, "ends before it begins"), (END - 401 * DAY_S, "longer than")],
)
def test_a_period_that_is_none_is_refused(prometheus: Prometheus, since: float, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        account(prometheus, since=since, until=END, deadline=Deadline.after(60))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PRICES.replace("0.02", "-1"), "cpu"),
        (PRICES.replace("0.02", ".nan"), "cpu"),
        (PRICES.replace("kind: Prices", "kind: TenantQuotas"), "this is a TenantQuotas file"),
        (PRICES.replace("perHour", "perHours"), "perHour"),
    ],
)
def test_a_price_list_with_a_mistake_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as refused:
        load_prices(file)
    assert words in f"{refused.value} {refused.value.remedy} {refused.value.mistakes}"


def test_the_documented_queries_of_raw_series_give_the_hours_of_a_namespace(prometheus: Prometheus) -> None:
    """As docs/tenants.md shows them: a pod that ran four hours with 2 cores, of which it used a half; one that had ended counts not."""
    text = (Path(__file__).parents[2] / "docs" / "tenants.md").read_text(encoding="utf-8")
    requested, used = re.findall(r"```promql\n(.*?)```", text, flags=re.DOTALL)
    for query, hours in ((requested, 8.0), (used, 2.0)):
        answer = prometheus.instant(query, at=END - 1, deadline=Deadline.after(60), name="hours")
        assert [labels["namespace"] for labels in answer.labels] == ["shop"]
        assert answer.values[0, -1] == pytest.approx(hours, rel=0.02)


Answer = tuple[int, str]


def run(capsys: pytest.CaptureFixture[str], prometheus: Prometheus, *more: str, since: float = START, until: float = END) -> Answer:
    now = datetime.now(UTC).timestamp()
    period = ["--since", f"{now - since - 60:.0f}s", "--until", f"{now - until - 60:.0f}s"]
    code = rebalancer(["accounting", "--prometheus-url", prometheus.url, *period, *more])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_the_command_prints_a_block_a_resource(capsys: pytest.CaptureFixture[str], prometheus: Prometheus, prices: Path) -> None:
    code, text = run(capsys, prometheus, "--no-color", "--prices", str(prices))
    assert code == 0, text
    lines = [line.split() for line in text.splitlines()]
    assert ["vision", "480.0", "192.0", "288.0", "96.0", "384.0", "100", "%", "40", "%", "9.60"] in lines
    assert "cpu, core-hours" in text
    assert "COST EUR" in text


def test_the_command_prints_documents(capsys: pytest.CaptureFixture[str], prometheus: Prometheus) -> None:
    code, text = run(capsys, prometheus, "-o", "json", "--by", "cpu")
    assert code == 0, text
    document = json.loads(text)
    assert document["kind"] == "AccountingReport"
    assert [row["tenant"] for row in document["rows"]] == ["speech", "vision"]


def test_nothing_recorded_is_said(capsys: pytest.CaptureFixture[str], prometheus: Prometheus) -> None:
    code, text = run(capsys, prometheus, "--no-color", since=END + 20 * HOUR, until=END + 30 * HOUR)
    assert code == 0, text
    assert "Nothing is recorded of any tenant in this period" in text


def test_a_duration_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], prometheus: Prometheus) -> None:
    code, text = run(capsys, prometheus, "--since", "yesterday")
    assert (code, "--since" in text) == (2, True)
