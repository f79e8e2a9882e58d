"""The loop that asks the nodes phase after phase, over agents on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from ncheck.asking import Asking
from ncheck.facts.learning import InterruptedLearningError
from ncheck.facts.login import LoginFacts
from ncheck.fleet.fleet import Fleet
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Cause, Command, Evidence, Login
from ncheck.model.phase import Phase, Questions
from ncheck.settings import Settings

from tests.ncheck.fleet.scripted import HELLO, Told, Ways, first, nodes

ALSO = Command(("echo", "also"))


def also(cluster: Cluster, _: float) -> Questions:
    """Ask the nodes that are connected by now."""
    return {node.name: (ALSO,) for node in cluster.connected}


def test_each_phase_is_made_from_what_is_known_and_changes_nothing_of_what_was() -> None:
    listed, ways = nodes("a", "down"), Ways(failing={"down": Cause.REFUSED})
    with Fleet(listed, Settings(), lambda _: ways, Told()) as fleet:
        fleet.keep({"a"})
        start = Asking(fleet, Cluster(listed, {}), ()).keeping()
        once = start.ask(first(("a", "down"), [HELLO]))
        twice, again = (once.ask(Phase("asking", frozenset({"a", "down"}), also)) for _ in range(2))
    assert [
        {name: list(evidence.replies) for name, evidence in known.evidence.items()}
        for known in (start, once, twice, again)
    ] == [
        {"a": [], "down": []}, {"a": [HELLO.key], "down": []},
        *[{"a": [HELLO.key, ALSO.key], "down": []}] * 2,
    ]  # fmt: skip
    assert [node.name for node in twice.cluster.connected] == ["a"]
    assert (start.cluster.known, ways.connected) == ({}, 2)


def test_evidence_passes_through_with_its_stage_and_is_not_kept_unasked_and_interrupted_it_is_known_so_far() -> None:
    passed: list[tuple[str, str]] = []

    def passing(evidence: Iterable[Evidence], stage: str) -> Iterator[Evidence]:
        for one in evidence:
            passed.append((stage, one.node))
            yield one

    def answers() -> Iterator[Evidence]:
        yield Evidence("a", Login(reached=True))
        raise KeyboardInterrupt

    listed = nodes("a", "b")
    with Fleet(listed, Settings(), lambda _: Ways(), Told()) as fleet:
        known = Asking(fleet, Cluster(listed, {}), (), passing)
        with pytest.raises(InterruptedLearningError) as stop:
            known.learn(answers(), "stage")
    assert (passed, known.learn([Evidence("b", Login(reached=True))]).evidence) == ([("stage", "a"), ("", "b")], {})
    assert [*known.interrupted(stop.value).cluster.facts(LoginFacts)] == ["a"]
    assert known.interrupted(KeyboardInterrupt()) is known
