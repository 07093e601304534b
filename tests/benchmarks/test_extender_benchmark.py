"""The benchmark of the extender, on a few nodes: that it measures what it says, not how fast."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.extender import JUDGES, VERBS, WAYS, main
from benchmarks.extender_client import Kept, Unexpected, request
from benchmarks.extender_questions import Scene, as_they_pass, known_nodes, node_names, questions
from rebalancer.steer.extender import Steering, filter_nodes
from rebalancer.steer.judging import DynamicJudge
from tests.serving.kit import echo, serving

SMALL = Scene(nodes=40, judge="own")


def test_every_way_is_measured_for_each_verb_and_judge(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One line each, in the document and on the page."""
    page = tmp_path / "page.md"
    assert main(["--nodes", "40", "--requests", "4", "--json", "--write", str(page)]) == 0
    timings = json.loads(capsys.readouterr().out)["timings"]
    found = {(each["scene"]["judge"], each["verb"], each["way"]["name"]) for each in timings}
    assert found == {(judge, verb, way.name) for judge in JUDGES for verb in VERBS for way in WAYS}
    assert all(0 < each["p50_ms"] <= each["p99_ms"] <= each["most_ms"] for each in timings)
    assert page.read_text(encoding="utf-8").count("| 40 | 40 | own |") == len(VERBS) * len(WAYS)


def test_questions_are_about_all_nodes_in_different_orders() -> None:
    """As kube-scheduler lists them: neither sorted nor shuffled."""
    names = node_names(SMALL)
    first, second = (json.loads(body)["NodeNames"] for body in questions(SMALL, whole=False, different=2))
    assert sorted(first) == sorted(second) == sorted(names)
    assert first != second
    some = json.loads(questions(Scene(nodes=40, asked=7, judge="own"), whole=False, different=1)[0])["NodeNames"]
    assert len(set(some)) == 7
    assert as_they_pass(["only"], random.Random(1), most=9) == ["only"]


def test_some_nodes_are_refused_and_all_are_known() -> None:
    """Else the benchmark would measure abstaining."""
    body = questions(SMALL, whole=True, different=1)[0]
    answer = filter_nodes(body, steering=Steering(known_nodes(SMALL, now=1e9), DynamicJudge()), now=1e9)
    assert 0 < answer.refused < answer.nodes == 40
    assert answer.unknown == 0


def test_an_answer_that_is_no_success_ends_the_measurement() -> None:
    """A fast refusal would be a good number."""
    with serving({("POST", "/echo"): echo}) as server:
        client = Kept(server.address.port)
        try:
            assert client.ask(request("/echo", b"x" * 3000)) == b"x" * 3000
            with pytest.raises(Unexpected, match="404"):
                client.ask(request("/nowhere", b""))
        finally:
            client.close()
