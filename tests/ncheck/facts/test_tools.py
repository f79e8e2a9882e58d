from __future__ import annotations

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.tools import TOOLS, Tool, ToolFacts
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Absent, Unread


def read(reply: Reply) -> object:
    return facts_of(Evidence("n1", Login(reached=True), replies={TOOLS.key: reply}), [ToolFacts])[ToolFacts]


def test_each_program_has_its_place() -> None:
    told: JsonValue = {"tools": {"all_reduce_perf": {"path": "/opt/bin/all_reduce_perf", "mpi": True}}}
    assert read(Reply(Status.OK, value=told)) == ToolFacts({"all_reduce_perf": Tool("/opt/bin/all_reduce_perf", True)})  # noqa: FBT003


@pytest.mark.parametrize(
    "told", [None, [], {}, {"tools": []}, {"tools": {"x": 1}}, {"tools": {"x": {"path": "bin/x"}}},
             {"tools": {"x": {"path": "/bin/\x1b[2J"}}}, {"tools": {"x": {"path": "/" * 9999}}}],
)  # fmt: skip
def test_nonsense_is_unread(told: JsonValue) -> None:
    assert isinstance(read(Reply(Status.OK, value=told)), Unread)


def test_what_was_not_asked_is_absent() -> None:
    assert read(Reply(Status.NOT_ASKED, "--probe none")) == Absent("--probe none")
