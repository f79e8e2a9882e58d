"""The loop that asks the nodes phase after phase, over agents on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from ncheck.asking import Asking
from ncheck.facts.learning import InterruptedLearningError
from ncheck.fleet.fleet import Fleet
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Cause, Command, Evidence
from ncheck.model.phase import Phase
from ncheck.settings import Settings

from tests.ncheck.fleet.scripted import HELLO, Told, Ways, first, nodes

ALSO = Command(("echo", "also"))


def test_a_phase_is_made_from_what_is_known_and_changes_nothing_of_that_and_interrupted_it_is_known_so_far() -> None:
    listed, ways, stages = nodes("a", "down"), Ways(failing={"down": Cause.REFUSED}), []

    def passing(evidence: Iterable[Evidence], stage: str) -> Iterator[Evidence]:
        stages.append(stage)
        yield from evidence
        if stage == "stopped":
            raise KeyboardInterrupt

    also = Phase("asking", frozenset({"a", "down"}), lambda known, _: {one.name: (ALSO,) for one in known.connected})
    with Fleet(listed, Settings(), lambda _: ways, Told()) as fleet:
        fleet.keep({"a"})
        unkept = Asking(fleet, Cluster(listed, {}), (), passing)
        start = unkept.keeping()
        once = start.ask(first(("a", "down"), [HELLO]))
        twice, again = once.ask(also), once.ask(also, "again")
    with pytest.raises(InterruptedLearningError) as stop:
        unkept.learn(once.evidence.values(), "stopped")
    assert [
        {name: list(one.replies) for name, one in known.evidence.items()} for known in (start, once, twice, again)
    ] == [
        {"a": [], "down": []}, {"a": [HELLO.key], "down": []}, *[{"a": [HELLO.key, ALSO.key], "down": []}] * 2,
    ]  # fmt: skip
    assert (stages, ways.connected) == (["collecting", "asking", "again", "stopped"], 2)
    assert unkept.interrupted(stop.value).cluster == once.cluster
    assert (unkept.interrupted(KeyboardInterrupt()), unkept.evidence, unkept.cluster.known) == (unkept, {}, {})
