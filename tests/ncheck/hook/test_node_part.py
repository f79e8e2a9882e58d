"""The part of ncheck on a node of a job answers what its own facts ask for, and executes nothing that it received."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.facts.definition import FINDING, LOOKING
from ncheck.facts.gpus import DEVICES, SMI
from ncheck.facts.learning import definition_of
from ncheck.facts.limits import LIMITS
from ncheck.facts.links import CONNECT
from ncheck.facts.ssh_peers import PEERS
from ncheck.fleet.bootstrap import module_text
from ncheck.fleet.framing import on_the_wire
from ncheck.hook.node_part import guarded_answers, own_questions, watching_questions
from ncheck.model.evidence import Answer, Command, File, JsonValue, Source
from ncheck.plan.planned_pick import PLANNED
from ncheck.probe.facts import TASK
from ncheck.triage.facts.activity import ACTIVITY
from ncheck.triage.facts.flight_recorder import FLIGHT_RECORDER
from ncheck.triage.facts.log_tails import LOG_TAILS
from ncheck.triage.facts.processes import asked
from ncheck.triage.facts.pulse import PULSE
from ncheck.triage.facts.ras import RAS, SPARED
from ncheck.triage.facts.stacks import STACKS

from tests.every_fact import every_fact

KNOWN = own_questions()
WATCHING = KNOWN | watching_questions()
REFUSED = {"status": "failed", "reason": "the ncheck on this node does not know this question", "seconds": 0.0}


def answered(source: Mapping[str, object], known: Mapping[str, Mapping[str, object]] = KNOWN) -> dict[str, object]:
    """Return what comes back: the source itself, as it would be read, where it is answered."""
    return dict(guarded_answers(lambda asked, _: asked, known)(source, None))


@pytest.mark.parametrize(
    "source", [SMI, DEVICES, LIMITS, replace(CONNECT, arguments={"targets": []}), PLANNED, replace(TASK, round=3)]
)
def test_what_the_facts_ask_for_is_answered(source: Source) -> None:
    wire: dict[str, object] = dict(on_the_wire(source))
    assert answered(wire) == wire


@pytest.mark.parametrize(
    "source",
    [
        Command(("sh", "-c", "reboot")),
        Command((*SMI.argv, "-r")),
        replace(SMI, root=True),
        replace(SMI, job=True),
        File("/root/.ssh/id_rsa"),
        replace(DEVICES, patterns=(*DEVICES.patterns, "/root/*")),
        Answer("meet-me"),
        replace(PEERS, arguments={"peers": []}),
    ],
)
def test_anything_else_is_refused(source: Source) -> None:
    assert answered(dict(on_the_wire(source))) == REFUSED


@pytest.mark.parametrize(
    "source", [None, [], {}, {"key": 7}, {"key": SMI.key}, {**on_the_wire(SMI), "argv": ["reboot"]}]
)
def test_what_is_no_question_is_refused(source: object) -> None:
    assert answered(source) == REFUSED  # type: ignore[arg-type]


def test_modules_come_from_this_machine_and_never_from_the_examiner() -> None:
    def read(_source: Mapping[str, object], fetch: object) -> dict[str, object]:
        assert callable(fetch)
        return {name: fetch(name) for name in ("pynvml", "rank-program", "os")}

    def from_the_wire(_name: str) -> str:
        raise AssertionError("it was asked for")

    texts = guarded_answers(read, KNOWN)(dict(on_the_wire(SMI)), from_the_wire)
    assert texts == {name: module_text(name) for name in ("pynvml", "rank-program", "os")}
    assert texts["os"] is None


def test_no_question_may_take_longer_than_a_minute() -> None:
    assert answered(dict(on_the_wire(replace(SMI, timeout=1e9))))["timeout"] == 60.0


def test_what_triage_asks_is_answered_to_nobody_inside_a_job_that_is_not_watched() -> None:
    known = {definition_of(fact) for fact in every_fact()}
    keys = {source.key for one in known if one and one.phase in {FINDING, LOOKING} for source in one.sources}
    assert {"answer:processes", "answer:stacks", "answer:flight-recorder"} <= keys
    assert keys & KNOWN.keys() == set()


RANKS: list[JsonValue] = [{"pid": 4711, "rank": 3}]
LOOKS: list[Answer] = [
    asked(match=None),
    replace(ACTIVITY, arguments={"ranks": RANKS}),
    replace(PULSE, arguments={"ranks": RANKS}),
    replace(LOG_TAILS, arguments={"ranks": RANKS, "launchers": [12]}),
    replace(STACKS, arguments={"ranks": RANKS, "native": False, "beside": str(Path(sys.executable).parent)}),
    replace(FLIGHT_RECORDER, arguments={"ranks": RANKS, "dump": False}),
    replace(RAS, arguments={"ranks": RANKS, "at": None, "spare": dict(SPARED)}),
]


@pytest.mark.parametrize("source", LOOKS, ids=lambda one: one.name)
def test_in_a_watch_what_only_looks_at_the_ranks_is_answered(source: Answer) -> None:
    wire: dict[str, object] = dict(on_the_wire(source))
    assert answered(wire, WATCHING) == wire
    assert answered(wire) == REFUSED


@pytest.mark.parametrize(
    "source",
    [
        replace(STACKS, arguments={"ranks": RANKS, "native": True}),
        replace(STACKS, arguments={"ranks": RANKS}),
        replace(STACKS, arguments=None),
        replace(FLIGHT_RECORDER, arguments={"ranks": RANKS, "dump": True}),
        replace(RAS, arguments={"ranks": RANKS, "at": "localhost:28028", "spare": None}),
        asked(match="(a+)+b"),
        replace(asked(match=None), arguments={"rank_variables": ["HOME"], "match": None, "launchers": ""}),
        Command(("sh", "-c", "reboot")),
        File("/proc/1/environ"),
    ],
)
def test_in_a_watch_nothing_is_paused_signalled_dumped_or_searched_for_otherwise(source: Source) -> None:
    assert answered(dict(on_the_wire(source)), WATCHING) == REFUSED


def test_a_py_spy_comes_from_beside_the_python_of_the_node_whatever_the_examiner_says() -> None:
    source = replace(STACKS, arguments={"ranks": RANKS, "native": False, "beside": "/tmp/of-a-stranger"})  # noqa: S108
    found = answered(dict(on_the_wire(source)), WATCHING)
    assert found["arguments"] == {"ranks": RANKS, "native": False, "beside": str(Path(sys.executable).parent)}
