"""`check`: green where a cycle would work, and otherwise each thing that is missing with what to do about it."""

from __future__ import annotations

import urllib.request

import jsonschema
import msgspec
import pytest

from tests.commands.test_plan import schema
from tests.support.embedded import Json, Ran, Stage, run_command

OWN_SIGNAL = """\
  pools:
  - name: default
    signals:
      cpu: {low: 40, target: 55, high: 70}
      net: {low: 40, target: 55, high: 70}
  signals:
  - name: net
    unit: bytes/s
    nodeQuery: sum by (node) (rate(nic_bytes_total[{window}]))
    podQuery: sum by (namespace, pod) (rate(pod_nic_bytes_total[{window}]))
    capacity: {value: 1000}
"""


def failures(ran: Ran) -> list[Json]:
    return [check for check in ran.document["checks"] if check["status"] == "fail"]


def test_all_is_green_where_all_is_well(looked_at: Stage) -> None:
    """Status 0, nothing on stderr, one line for each thing that was tried, and no word of queries that nobody needs."""
    ran = looked_at.run("check", "-o", "json").ended(0)
    jsonschema.validate(ran.document, schema("check-report"))
    assert {check["status"] for check in ran.document["checks"]} == {"ok"}
    assert {"kubernetes", "clock", "rights", "cluster", "prometheus", "cpu of nodes", "memory of pods", "nodes"} <= {
        check["name"] for check in ran.document["checks"]
    }
    assert ran.err == ""
    assert looked_at.run("check").ended(0).out.endswith(" ok, 0 warn, 0 fail\n")


@pytest.mark.parametrize("mode", ["dry-run", "annotate", "evict"])
def test_c7_each_missing_right_is_listed_with_the_rule_to_add(looked_at: Stage, mode: str) -> None:
    """Before the first cycle, for reading in every mode and for writing in the mode that is in force."""
    rights = looked_at.cluster.api.rights
    rights.deny("list", "persistentvolumes")
    rights.deny("list", "poddisruptionbudgets")
    rights.deny("create", "pods/eviction")
    ran = looked_at.run("check", "--mode", mode, "-o", "json").ended(4)
    remedies = {check["sentence"]: check["remedy"] for check in failures(ran)}
    wanted = {
        "may not list persistentvolumes": 'add the rule {apiGroups: [""], resources: ["persistentvolumes"], verbs: ["list"]}',
        "may not list poddisruptionbudgets.policy": (
            'add the rule {apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list"]}'
        ),
    }
    if mode == "evict":
        wanted["mode evict may not create pods/eviction"] = (
            'add the rule {apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]}'
        )
    assert remedies == wanted


def test_what_nodes_say_of_gpus_is_told_and_what_makes_no_sense_is_named(cluster: Stage) -> None:
    """With its remedy, as a warning: everything else works. A missing right for claims is one as well."""
    for name, register in (
        ("node-0001", '[{"id":"GPU-a","index":0,"count":10,"devmem":16384,"type":"T4","health":true}]'),
        ("node-0002", "[{"),
    ):
        body = msgspec.json.encode({"metadata": {"annotations": {"hami.io/node-nvidia-register": register}}})
        url = f"{cluster.cluster.api_url}/api/v1/nodes/{name}"
        request = urllib.request.Request(url, data=body, method="PATCH", headers={"Content-Type": "application/merge-patch+json"})
        urllib.request.urlopen(request, timeout=30).close()
    cluster.cluster.api.rights.deny("list", "resourceclaims")
    cluster.cluster.api.rights.deny("list", "pytorchjobs")
    checks = cluster.run("check", "-o", "json").ended(0).document["checks"]
    assert [check["sentence"] for check in checks if check["name"] == "gpu" and check["status"] == "ok"] == [
        "1 devices on 1 nodes (1 hami); 0 pods are placed on them"
    ]
    warned = {check["sentence"]: check["remedy"] for check in checks if check["status"] == "warn"}
    (sentence,) = [said for said in warned if said.startswith("node node-0002: annotation hami.io/node-nvidia-register is no list")]
    assert warned[sentence] == "see the agent that writes the label or annotation"
    claims = "may not list resourceclaims.resource.k8s.io, so GPUs that are handed out in that way are not known"
    gangs = "may not list pytorchjobs.kubeflow.org, so a gang of theirs counts as needing all of its members"
    assert "pytorchjobs" in warned[gangs]
    assert warned[claims] == 'add the rule {apiGroups: ["resource.k8s.io"], resources: ["resourceclaims"], verbs: ["list"]}'


def test_a_right_of_another_mode_is_no_failure(looked_at: Stage) -> None:
    """A read-only role is right for dry runs; what evict mode would lack is told all the same."""
    looked_at.cluster.api.rights.deny("create", "pods/eviction")
    ran = looked_at.run("check", "-o", "json").ended(0)
    assert any("mode evict is not in force, and would lack: create pods/eviction" in check["sentence"] for check in ran.document["checks"])


def test_m4_a_query_of_the_operator_that_finds_nothing_fails_by_name(looked_at: Stage) -> None:
    """With the query's text and what Prometheus does scrape, so that the misspelt name is seen."""
    ran = looked_at.run("check", "--policy", looked_at.policy(OWN_SIGNAL), "-o", "json").ended(5)
    found = {check["name"]: check for check in failures(ran)}
    assert "no series; the jobs that Prometheus scrapes are node-exporter" in found["net of nodes"]["sentence"]
    assert "rate(nic_bytes_total[300s])" in found["net of nodes"]["remedy"]
    assert "rate(pod_nic_bytes_total[300s])" in found["net of pods"]["remedy"]


def test_m4_a_cycle_says_which_signal_is_inert(looked_at: Stage) -> None:
    """The feature is never dead without a word: the sentence names signal and query, and nothing is planned around it."""
    ran = looked_at.run("plan", "--policy", looked_at.policy(OWN_SIGNAL)).ended(5)
    assert "signal net is known for 0 of 12 nodes" in ran.error
    assert "query 'net of nodes (policy)' found no series" in ran.error


def test_it_goes_on_after_a_failure(looked_at: Stage) -> None:
    """One run shows all that is missing: a right and the address of Prometheus."""
    looked_at.cluster.api.rights.deny("list", "nodes")
    looked_at.cluster.prometheus.faults.login_page()
    ran = looked_at.run("check", "-o", "json").ended(4)
    assert [check["name"] for check in failures(ran)] == ["rights", "prometheus"]
    assert "HTML page" in failures(ran)[1]["sentence"]


def test_a_wrong_clock_is_a_warning(cluster: Stage) -> None:
    """A little may be borne; it is told with the direction."""
    cluster.cluster.advance(40.0)
    warned = [check for check in by_the_machines_clock(cluster).ended(0).document["checks"] if check["status"] == "warn"]
    assert [check["name"] for check in warned] == ["clock"]
    assert "behind the API server's" in warned[0]["sentence"]


def test_a_clock_that_is_an_hour_off_is_a_failure(cluster: Stage) -> None:
    """Samples of another hour would be taken for those of now."""
    cluster.cluster.advance(3600.0)
    failed = failures(by_the_machines_clock(cluster).ended(4))
    assert [check["name"] for check in failed] == ["cluster"]
    assert "behind that of http://" in failed[0]["sentence"]
    assert failed[0]["remedy"] == "synchronise the clocks; nothing was moved"


def by_the_machines_clock(cluster: Stage) -> Ran:
    return run_command("check", "-o", "json", env=cluster.env)


def test_without_an_address_of_prometheus_it_says_how_to_give_one(looked_at: Stage) -> None:
    """With the status of wrong settings."""
    ran = looked_at.run("check", "-o", "json", env={"REBALANCER_PROMETHEUS__URL": None}).ended(3)
    assert failures(ran)[0]["remedy"] == "give --prometheus-url or REBALANCER_PROMETHEUS__URL"


def test_too_little_coverage_names_who_is_missing(looked_at: Stage) -> None:
    """The first nodes without samples, by name."""
    looked_at.cluster.sample_faults.missing_nodes.update({"node-0001", "node-0002", "node-0003", "node-0005"})
    ran = looked_at.run("check", "-o", "json").ended(5)
    assert "known for 8 of 12 nodes (67 %)" in failures(ran)[0]["sentence"]
    assert "without it are node-0001, node-0002, node-0003 and 1 more" in failures(ran)[0]["sentence"]
