"""A node's steps: what was asked is the head's word, what came back is held to shape and bounds."""

from __future__ import annotations

from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, Login, Note, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.probe.facts import MeetingFacts, ProbeFacts, meeting, probed
from ncheck.probe.node_result import Carried, Method, NodeResult, Row, Skipped, Stage, Step, StepFailure, Timing

ASKED: dict[str, Any] = {
    "round": 7, "stage": "all", "method": "nccl", "group": ["n1", "n2"], "ranks": [8, 8], "sizes": [8, 1048576],
    "launcher": "agents", "net": "IB", "expect": None, "node": "n1", "planned": ["mlx5_0:1", "eth0"], "timeout": 20.0,
    "id": "00" * 128,
}  # fmt: skip
STEP = Step(7, Stage.ALL, Method.NCCL, ("n1", "n2"), (8, 8), (8, 1048576), "agents", "IB")
ROW: dict[str, Any] = {
    "size": 8, "in_place": False, "seconds": 1e-5, "fastest": 9e-6, "slowest": 2e-5, "wrong": 0,
}  # fmt: skip
TOLD: dict[str, Any] = {
    "rows": [ROW], "carried": {"mlx5_0:1": {"sent": 10, "received": 20}}, "version": "2.21.5", "library": "/lib/x.so.2",
    "used": ["NET/IB : Using [0]mlx5_0:1/IB"], "log": ["a warning"], "failure": None, "start": 1.5, "left": [],
}  # fmt: skip


def evidence(*, recorded: bool = False, **answers: Reply | Note) -> Evidence:
    keys = {"step": "answer:step", "meeting": "answer:meeting"}
    by_key = {keys.get(key, f"answer:step#{key[1:]}"): answer for key, answer in answers.items()}
    replies = {key: answer for key, answer in by_key.items() if isinstance(answer, Reply)}
    notes = {key: answer for key, answer in by_key.items() if isinstance(answer, Note)}
    return Evidence("n1", Login(reached=True), replies=replies, recorded=recorded, notes=notes)


def results(reply: Reply) -> tuple[NodeResult, ...]:
    found = probed(evidence(_7=reply))
    assert isinstance(found, ProbeFacts)
    return found.results


def failure(value: Any) -> StepFailure | None:
    (result,) = results(Reply(Status.OK, value=value, asked=ASKED))
    return result.failure


def test_a_turn_is_what_was_asked_and_what_was_told() -> None:
    assert results(Reply(Status.OK, value=TOLD, asked=ASKED)) == (
        NodeResult(
            STEP, (Row(8, in_place=False, seconds=1e-5, fastest=9e-6, slowest=2e-5, wrong=0),), ("mlx5_0:1", "eth0"),
            {"mlx5_0:1": Carried(10, 20)}, "2.21.5", "/lib/x.so.2", ("NET/IB : Using [0]mlx5_0:1/IB",), ("a warning",),
            None, 1.5, seconds=20.0,
        ),
    )  # fmt: skip


DOUBTFUL = "/dev/shm/nccl-b may still exist: the node could not be checked"  # noqa: S108  it is only named
HELD = {**TOLD, "left": ["a was removed"], "held": {"/dev/shm/nccl-b": 5}}  # noqa: S108  it is only named


@pytest.mark.parametrize(
    ("swept", "left"),
    [
        ({"answer:sweep#7": Reply(Status.OK, value={"left": ["b was removed"]})}, ("a was removed", "b was removed")),
        ({"answer:sweep#7": Reply(Status.OK, value={"left": []})}, ("a was removed",)),
        ({"answer:sweep#7": Reply(Status.OK, value={"left": 5})}, ("a was removed", DOUBTFUL)),
        ({"answer:sweep#7": Reply(Status.TIMEOUT)}, ("a was removed", DOUBTFUL)),
        ({"answer:sweep#6": Reply(Status.OK, value={"left": []})}, ("a was removed", DOUBTFUL)),
        ({}, ("a was removed", DOUBTFUL)),
    ],
)
def test_what_ranks_of_a_launcher_had_was_swept_or_may_be_left(swept: dict[str, Reply], left: tuple[str, ...]) -> None:
    replies = {"answer:step#7": Reply(Status.OK, value=HELD, asked=ASKED), **swept}
    found = probed(Evidence("n1", Login(reached=True), replies=replies))
    assert isinstance(found, ProbeFacts)
    assert [result.left for result in found.results] == [left]


def test_only_what_the_head_asked_for_counts() -> None:
    found = probed(evidence(_7=Reply(Status.OK, value=TOLD)))
    assert found == Unread("the agent's step: it was not asked of this node", unanswered=True)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (
            Reply(Status.TIMEOUT, "it did not come back", asked=ASKED),
            StepFailure("", "it did not come back", late=True),
        ),
        (Reply(Status.FAILED, "no memory", asked=ASKED), StepFailure("", "no memory")),
        (Reply(Status.MISSING, asked=ASKED), StepFailure("", "the agent's task ended: missing")),
        (Reply(Status.OK, value=TOLD, asked=ASKED, truncated=True), StepFailure("", "its answer was cut off")),
    ],
)
def test_a_turn_without_an_answer_failed(reply: Reply, told: StepFailure) -> None:
    assert [result.failure for result in results(reply)] == [told]


def test_its_own_words_for_a_failure_are_kept() -> None:
    said = {"step": "init", "words": "refused", "rank": 3, "code": 2, "late": True}
    assert failure({**TOLD, "rows": [], "failure": said}) == StepFailure("init", "refused", 3, 2, late=True)


def test_an_end_without_a_size_is_no_pass() -> None:
    assert failure({**TOLD, "rows": []}) == StepFailure("", "it ended without a result")


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", 7, {}, {"rows": None}, {"rows": [None]}, {**TOLD, "rows": [{}]}, {**TOLD, "rows": [ROW, ROW]},
        {**TOLD, "rows": [{**ROW, "size": 16}]}, {**TOLD, "rows": [{**ROW, "size": 8.0}]},
        {**TOLD, "rows": [{**ROW, "size": True}]}, {**TOLD, "rows": [{**ROW, "seconds": 0}]},
        {**TOLD, "rows": [{**ROW, "seconds": -1.0}]}, {**TOLD, "rows": [{**ROW, "seconds": float("nan")}]},
        {**TOLD, "rows": [{**ROW, "seconds": 1e300}]}, {**TOLD, "rows": [{**ROW, "seconds": 10**400}]},
        {**TOLD, "rows": [{**ROW, "wrong": -1}]}, {**TOLD, "rows": [{**ROW, "wrong": "0"}]},
        {**TOLD, "rows": [{**ROW, "in_place": 0}]}, {**TOLD, "rows": [ROW] * 300}, {**TOLD, "carried": {"a": {}}},
        {**TOLD, "carried": {"a": {"sent": -1, "received": 0}}}, {**TOLD, "carried": []}, {**TOLD, "version": 2},
        {**TOLD, "used": "line"}, {**TOLD, "log": [1]}, {**TOLD, "failure": "x"}, {**TOLD, "failure": {"rank": -1}},
        {**TOLD, "start": "soon"}, {**TOLD, "start": -1}, {**TOLD, "left": {}},
        {**TOLD, "carried": {f"e{number}": {"sent": 0, "received": 0} for number in range(2000)}},
    ],
)  # fmt: skip
def test_nonsense_is_a_failure_that_says_so(value: Any) -> None:
    found = failure(value)
    assert found is not None
    assert found.words.startswith("its result cannot be read: ")


def test_what_a_node_writes_can_steer_no_terminal_and_is_bounded() -> None:
    (result,) = results(
        Reply(Status.OK, value={**TOLD, "log": ["\x1b[2Ja\nb"] * 5000, "version": "9" * 500}, asked=ASKED)
    )
    assert result.log == ("?[2Ja?b",) * 300
    assert len(result.version) == 100


def test_what_was_not_begun_is_told_with_why() -> None:
    assert probed(evidence(_7=Note("no time", asked=ASKED))) == ProbeFacts((), (Skipped(STEP, "no time"),))


def test_a_node_that_could_not_be_asked_failed_in_the_step() -> None:
    note = Note("no address", failed=True, asked=ASKED)
    assert probed(evidence(_7=note)) == ProbeFacts(
        (NodeResult(STEP, (), failure=StepFailure("meeting", "no address")),)
    )


def test_a_note_of_the_head_stands_beside_the_steps() -> None:
    note = Note("the GPUs were not measured: no NCCL")
    found = probed(evidence(step=note, _7=Reply(Status.OK, value=TOLD, asked=ASKED)))
    assert isinstance(found, ProbeFacts)
    assert (found.note, len(found.results)) == ("the GPUs were not measured: no NCCL", 1)


def test_why_nothing_was_measured_is_the_heads_word() -> None:
    assert probed(evidence(step=Note("one node alone"))) == Absent("one node alone")


@pytest.mark.parametrize(
    ("remedy", "fix"),
    [
        ("", ""), ("force", "ncheck probe nodes.txt --force"), ("NC208", "ncheck explain NC208"), ("x; rm -rf /", ""),
        ("nodes.txt --rsh x", ""),
    ],
)  # fmt: skip
def test_what_helps_is_a_command_of_ncheck_and_nothing_else(remedy: str, fix: str) -> None:
    found = probed(evidence(step=Note("GPUs are in use", failed=True, remedy=remedy)))
    assert found == Unread("GPUs are in use", fix=fix)


def test_a_recording_from_before_the_probe_holds_none() -> None:
    assert probed(evidence(recorded=True)) == Absent("the recording holds no probe")
    assert isinstance(probed(evidence()), Unread)


def test_a_recording_names_no_node_that_a_listing_could_not() -> None:
    with pytest.raises(ValueError, match="is not a node name"):
        probed(evidence(recorded=True, _7=Reply(Status.OK, value=TOLD, asked={**ASKED, "group": ["$(x)"]})))


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (Reply(Status.OK, value={"ids": ["0f" * 128], "version": "2.21.5", "path": "/x"}),
         MeetingFacts(("0f" * 128,), version="2.21.5", library="/x")),
        (Reply(Status.OK, value={"address": "10.0.0.1", "port": 4000}), MeetingFacts(address="10.0.0.1", port=4000)),
        (Reply(Status.MISSING, "ncclGetUniqueId: no interface"), MeetingFacts(why="ncclGetUniqueId: no interface")),
        (Note("--probe none"), Absent("--probe none")),
    ],
)  # fmt: skip
def test_where_ranks_meet(reply: Reply | Note, found: object) -> None:
    assert meeting(evidence(meeting=reply)) == found


@pytest.mark.parametrize(
    "value",
    [None, [], {"ids": ["zz" * 128]}, {"ids": ["00"]}, {"ids": "00" * 128}, {"address": "x", "port": 1},
     {"address": "10.0.0.1", "port": 0}, {"address": "10.0.0.1"}, {"address": "10.0.0.1;x", "port": 1}],
)  # fmt: skip
def test_no_place_to_meet_is_made_of_nonsense(value: Any) -> None:
    found = meeting(evidence(meeting=Reply(Status.OK, value=value)))
    assert isinstance(found, MeetingFacts)
    assert (found.ids, found.address) == ((), "")
    assert found.why.startswith("its answer cannot be read: ")


def test_how_it_was_timed_is_told_and_in_an_older_recording_it_is_unknown() -> None:
    timed = {**ROW, "timing": {"warm_ups": 2, "repeats": 5, "iterations": 20}}
    (result,) = results(Reply(Status.OK, value={**TOLD, "rows": [timed]}, asked={**ASKED, "repeats": 7}))
    assert (result.step.repeats, result.rows[0].timing) == (7, Timing(2, 5, 20))
    (result,) = results(Reply(Status.OK, value=TOLD, asked=ASKED))
    assert (result.step.repeats, result.rows[0].timing) == (None, None)


@pytest.mark.parametrize("damage", [{"repeats": 0}, {"repeats": 2.5}, {"iterations": 0}, {"warm_ups": -1}])
def test_no_protocol_is_made_of_nonsense(damage: dict[str, Any]) -> None:
    timing = {"warm_ups": 2, "repeats": 5, "iterations": 20, **damage}
    found = failure({**TOLD, "rows": [{**ROW, "timing": timing}]})
    assert found is not None
    assert found.words.startswith("its result cannot be read: ")


@pytest.mark.parametrize(("fastest", "slowest"), [(9e-5, 2e-5), (9e-6, 8e-6), (1.0, 1.0)])
def test_times_that_contradict_each_other_are_none(fastest: float, slowest: float) -> None:
    row = {**ROW, "fastest": fastest, "slowest": slowest}
    assert failure({**TOLD, "rows": [row]}) == StepFailure(
        "", "its result cannot be read: rows[0]: its times contradict each other"
    )


@pytest.mark.parametrize(
    "damage", [{"group": ["n1"]}, {"group": []}, {"group": ["n1", "n1"]}, {"ranks": []}, {"ranks": [8, 0]}]
)
def test_a_recording_whose_step_does_not_fit_together_is_no_probe(damage: dict[str, Any]) -> None:
    found = facts_of(evidence(_7=Reply(Status.OK, value=TOLD, asked={**ASKED, **damage})), [ProbeFacts])
    assert isinstance(found[ProbeFacts], Unread)
