"""NC616: an unlimited stack is only harmful to NCCL before 2.28."""

from __future__ import annotations

from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.stack_unlimited import stack_unlimited


def node(version: str, *, unlimited: bool = True) -> dict[str, Facts]:
    settings = HostSettingsFacts(8, stack_unlimited=unlimited)
    limits = LimitsFacts(None, Unread("no /dev/shm"))
    nccl = LoadedNcclFacts(version, "/lib/libnccl.so.2")
    facts: Facts = {HostSettingsFacts: settings, LoadedNcclFacts: nccl, LimitsFacts: limits}
    return {"n1": {**facts, IdentityFacts: IdentityFacts("n1", "b00t", "net:[1]", 1000)}}


def test_it_is_named_with_the_symptom() -> None:
    assert judge([stack_unlimited], node("2.27.7")).findings == [
        Finding("NC616", "stack-unlimited", Severity.WARNING, ("n1",),
                "the stack is unlimited: threads of NCCL 2.27.7 get 2 MB and may crash", (),
                r"printf '* soft stack 8192\n' | sudo tee /etc/security/limits.d/90-stack.conf"),
    ]  # fmt: skip


def test_newer_releases_unknown_ones_and_the_usual_stack_are_silent() -> None:
    for nodes in (node("2.28.3"), node("2.32.3"), node(""), node("2.21.5", unlimited=False)):
        assert [one.outcome for one in judge([stack_unlimited], nodes).verdicts] == [Outcome.PASSED]


def test_without_nccl_there_is_nothing_to_judge() -> None:
    nodes = {"n1": {**node("")["n1"], LoadedNcclFacts: Absent("no NCCL")}}
    assert [one.outcome for one in judge([stack_unlimited], nodes).verdicts] == [Outcome.SKIPPED]
