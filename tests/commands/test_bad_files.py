"""Settings, policies, plans and snapshots that are wrong, damaged or meant for something else: one sentence, and nothing is touched."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rebalancer.units import format_time
from tests.commands.test_bad_cluster import EVICT, refused
from tests.support.embedded import Json, Stage

POOL = "  pools:\n  - name: a\n    signals:\n      cpu: {low: 40, target: 55, high: 70}\n"
TWO_POOLS = """\
  pools:
  - name: linux
    nodeSelector: {matchLabels: {kubernetes.io/os: linux}}
    signals:
      cpu: {low: 40, target: 55, high: 70}
  - name: named
    nodeSelector: {matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}
    signals:
      cpu: {low: 40, target: 55, high: 70}
"""
BAD_POLICIES = {
    "a typo": ("  budgets: {totl: 3}\n", "line 5, spec.budgets.totl: unknown key. Did you mean total?"),
    "a typo at the top": ("  mod: evict\n", "line 5, spec.mod: unknown key. Did you mean mode?"),
    "marks out of order": (
        POOL.replace("low: 40", "low: 60"),
        "line 8, spec.pools[0].signals.cpu: low 60 <= target 55 <= high 70 fails in pool a",
    ),
    "an unknown signal": (POOL.replace("cpu:", "gpuu:"), "line 8, spec.pools[0].signals.gpuu: pool a judges signal gpuu"),
    "a bad duration": ("  interval: soon\n", "line 5, spec.interval: "),
    "a negative budget": ("  budgets: {total: -1}\n", "line 5, spec.budgets.total: "),
    "a share over 100": ("  metrics: {minCoverage: 150}\n", "line 5, spec.metrics.minCoverage: "),
    "not YAML": ("  budgets: [1,\n", "the policy cannot be read as YAML"),
    "two pools claim one node": (TWO_POOLS, "pools linux and named both claim node node-"),
}


@pytest.mark.parametrize("name", BAD_POLICIES)
def test_a_wrong_policy_is_refused_with_its_place(looked_at: Stage, name: str) -> None:
    """Path, line and key, before anything acts; the nearest valid key for a typo."""
    text, words = BAD_POLICIES[name]
    refused(looked_at, looked_at.run(*EVICT, "--policy", looked_at.policy(text)), 3, words)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("apiVersion: rebalancer.dev/v2\nkind: RebalancePolicy\n", "Known is rebalancer.dev/v1alpha1."),
        ("apiVersion: rebalancer.dev/v1alpha1\nkind: DeschedulerPolicy\n", "kind"),
    ],
)
def test_c3_a_policy_of_another_kind_or_version_is_refused(looked_at: Stage, head: str, words: str) -> None:
    """With what is known instead."""
    path = looked_at.folder / "other.yaml"
    path.write_text(f"{head}metadata: {{name: x}}\nspec: {{}}\n", encoding="utf-8")
    refused(looked_at, looked_at.run("plan", "--policy", path), 3, str(path), words)


@pytest.mark.parametrize("flag", ["--policy", "--settings"])
def test_a_file_that_is_not_there_is_named(looked_at: Stage, tmp_path: Path, flag: str) -> None:
    """With the way out."""
    refused(looked_at, looked_at.run("plan", flag, tmp_path / "gone.yaml"), 3, f"{tmp_path}/gone.yaml does not exist", "Check the path")


def test_a_leftover_variable_is_an_error(looked_at: Stage) -> None:
    """A typo in a Deployment must not be ignored: the nearest variable is named."""
    ran = looked_at.run(*EVICT, env={"REBALANCER_PROMETHEUS_URL": "http://prometheus:9090"})
    refused(looked_at, ran, 3, "REBALANCER_PROMETHEUS_URL matches no setting", "Did you mean REBALANCER_PROMETHEUS__URL?")


def test_a_wrong_setting_names_its_file_and_line(looked_at: Stage, tmp_path: Path) -> None:
    """As policies do."""
    path = tmp_path / "settings.yaml"
    path.write_text("prometheus:\n  timeot: 3s\n", encoding="utf-8")
    refused(
        looked_at, looked_at.run("plan", "--settings", path), 3, f"{path}, line 2, prometheus.timeot: unknown key. Did you mean timeout?"
    )


# ---- plans ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def write_plan(looked_at: Stage, tmp_path: Path) -> Callable[..., Path]:
    plan = looked_at.run("plan", "-o", "json").ended(0).document

    def write(**changes: object) -> Path:
        path = tmp_path / "plan.json"
        path.write_bytes(msgspec.json.encode({**plan, **changes}))
        return path

    return write


def refused_plan(stage: Stage, path: Path, *words: str) -> None:
    refused(stage, stage.run("apply", path, "--mode", "evict"), 2, str(path), *words)


def test_a_plan_of_another_cluster(looked_at: Stage, write_plan: Callable[..., Path]) -> None:
    """Both clusters are named."""
    own = looked_at.cluster.world.get("namespaces", "kube-system")["metadata"]["uid"]
    refused_plan(looked_at, write_plan(cluster="another"), "is for cluster another", f"is cluster {own}", "Choose the right --context")


def test_a_plan_of_yesterday_or_of_tomorrow(looked_at: Stage, write_plan: Callable[..., Path]) -> None:
    """Loads change in minutes; a clock that is wrong is told as that."""
    now = looked_at.cluster.world.now
    refused_plan(looked_at, write_plan(createdAt=format_time(now - 86_400)), "old, at most 15m is allowed. Make a new plan")
    refused_plan(looked_at, write_plan(createdAt=format_time(now + 86_400)), "in the future. Set the clocks right.")


def test_the_age_that_is_allowed_can_be_chosen(looked_at: Stage, write_plan: Callable[..., Path]) -> None:
    """And a choice that is no duration is told."""
    path = write_plan(createdAt=format_time(looked_at.cluster.world.now - 1200))
    looked_at.run("apply", path, "--max-age", "1h").ended(0)
    refused(looked_at, looked_at.run("apply", path, "--max-age", "soon"), 2, "'soon' is not a duration")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b'{"kind": "Pl', "is not a JSON object"),
        (b"[]", "is not a JSON object"),
        (b'{"apiVersion": "rebalancer.dev/v1alpha1", "kind": "SkewReport"}', "holds a SkewReport, not a Plan"),
        (b'{"apiVersion": "rebalancer.dev/v9", "kind": "Plan"}', "this program reads rebalancer.dev/v1alpha1"),
        (b'{"apiVersion": "rebalancer.dev/v1alpha1", "kind": "Plan"}', "is damaged"),
        (b"\xff\xfe\x00", "is not a JSON object"),
    ],
)
def test_a_file_that_is_no_plan(looked_at: Stage, tmp_path: Path, data: bytes, words: str) -> None:
    """Each is told apart from the others."""
    path = tmp_path / "plan.json"
    path.write_bytes(data)
    refused_plan(looked_at, path, words)
    assert looked_at.cluster.api.requests.all() == []


@pytest.mark.parametrize("field", ["uid", "name"])
def test_a_plan_that_lost_what_an_eviction_depends_on(looked_at: Stage, write_plan: Callable[..., Path], field: str) -> None:
    """No pod may be moved by half of its identity."""
    moves: list[Json] = looked_at.run("plan", "-o", "json").document["moves"]
    broken = [{**moves[0], "pod": {**moves[0]["pod"], field: ""}}, *moves[1:]]
    refused_plan(looked_at, write_plan(moves=broken), "cannot be carried out: moves[0] has a pod without namespace, name or uid")


def test_a_plan_that_is_not_there(looked_at: Stage, tmp_path: Path) -> None:
    """With what should be given."""
    refused_plan(looked_at, tmp_path / "gone.json", "No such file or directory", "`rebalancer plan --out`")


# ---- snapshots and places to write ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no snapshot"),
        (b"garbage", "no snapshot"),
        (b"{}", "no snapshot"),
        (gzip.compress(b"garbage", mtime=0), "no snapshot"),
        (gzip.compress(b'{"apiVersion": "rebalancer.dev/v1alpha1"', mtime=0)[:-8], "snapshot"),
    ],
    ids=["empty", "garbage", "empty object", "packed garbage", "cut"],
)
@pytest.mark.parametrize("command", [("plan",), ("skew",), ("explain", "node", "node-0001")])
def test_a_corrupt_snapshot(looked_at: Stage, tmp_path: Path, data: bytes, words: str, command: tuple[str, ...]) -> None:
    """The file is named, and how to get another one."""
    path = tmp_path / "cluster.snapshot"
    path.write_bytes(data)
    refused(looked_at, looked_at.run(*command, "--snapshot", path), 2, str(path), words, "`rebalancer snapshot`")


def test_a_truncated_snapshot(looked_at: Stage, tmp_path: Path) -> None:
    """Every beginning of a real one is refused; none is read as a smaller cluster."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    looked_at.run("snapshot", whole).ended(0)
    data = whole.read_bytes()
    for share in (0.1, 0.5, 0.99):
        part.write_bytes(data[: int(len(data) * share)])
        refused(looked_at, looked_at.run("plan", "--snapshot", part), 2, str(part), "`rebalancer snapshot`")


def test_a_snapshot_that_is_not_there(looked_at: Stage, tmp_path: Path) -> None:
    """With what should be given."""
    ran = looked_at.run("plan", "--snapshot", tmp_path / "gone")
    refused(looked_at, ran, 2, f"cannot read snapshot {tmp_path}/gone: No such file or directory", "`rebalancer snapshot`")


@pytest.mark.parametrize("command", [("plan", "--out"), ("snapshot",)])
def test_a_place_that_cannot_be_written(looked_at: Stage, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A missing directory and a directory in the file's place; nothing half written is left."""
    (tmp_path / "full").mkdir()
    for path in (tmp_path / "none" / "file", tmp_path / "full"):
        refused(looked_at, looked_at.run(*command, path), 2, f"cannot write {path}", "in a directory that exists")
    assert sorted(child.name for child in tmp_path.iterdir()) == ["full"]


# ---- names and flags --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("node", "node-00004"), ("there is no node node-00004", "Did you mean node-0004")),
        (("node", "gpu-17"), ("there is no node gpu-17", "rebalancer skew -o wide")),
        (("pod", "search-web"), ("there is no pod search-web in the cluster", "Did you mean search-web-")),
        (("workload", "search-wob"), ("there is no workload search-wob in the cluster", "Did you mean search-web")),
        (("workload", "ads/search-web"), ("there is no workload search-web in namespace ads", "Did you mean search/search-web?")),
        (("pod", "search/x", "-n", "ads"), ("names namespace search, -n names ads", "Give one of them.")),
        (("workload", "search-web", "--kind", "Job"), ("there is no workload Job search-web",)),
    ],
)
def test_a_name_that_is_unknown_is_answered_with_near_ones(looked_at: Stage, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    """People type from memory."""
    refused(looked_at, looked_at.run("explain", *arguments), 2, *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "--mode", "delete"), "'delete' is not one of 'dry-run', 'annotate', 'evict'"),
        (("plan", "-o", "xml"), "'xml' is not one of 'table', 'wide', 'json', 'yaml', 'csv'"),
        (("plan", "--outt", "x"), "No such option: --outt"),
        (("apply",), "Missing argument 'FILE'"),
        (("plann",), "No such command 'plann'"),
        (("demo", "--cycles", "0"), "Input should be greater than or equal to 1"),
    ],
)
def test_a_wrong_flag_is_one_sentence_and_where_the_help_is(looked_at: Stage, arguments: tuple[str, ...], words: str) -> None:
    """Status 2, as everywhere on a command line."""
    refused(looked_at, looked_at.run(*arguments), 2, words, "--help'.")
