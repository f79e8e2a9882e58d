"""NC615: a limit under which the job runs, but much lower than on the other nodes."""

from __future__ import annotations

from typing import Any

from ncheck.facts.limits import LimitsFacts, SharedMemory
from ncheck.facts.login import IdentityFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.limits_differ import limits_differ

SHM = SharedMemory(2**30, 2**30)


def node(user: int = 1000, **limits: Any) -> Facts:
    return {LimitsFacts: LimitsFacts(None, SHM, **limits), IdentityFacts: IdentityFacts("n", "b", "net:[1]", user)}


def messages(*nodes: Facts) -> list[str]:
    return [one.message for one in judge([limits_differ], {f"n{at}": facts for at, facts in enumerate(nodes)}).findings]


def test_a_node_that_allows_fewer_files_than_the_others_is_named_with_their_limit() -> None:
    nodes = {"a": node(open_files=1048576), "b": node(open_files=1024), "c": node(open_files=1048576)}
    fix = r"printf '* soft nofile 1048576\n* hard nofile 1048576\n' | sudo tee /etc/security/limits.d/90-nofile.conf"
    assert judge([limits_differ], nodes).findings == [
        Finding("NC615", "limits-differ", Severity.WARNING, ("b",),
                "open files (nofile) limited to 1024 on b; other nodes have 1048576", (), fix,
                summary="a resource limit is lower than on the other nodes"),
    ]  # fmt: skip


def test_a_limit_where_the_others_have_none_is_named() -> None:
    many = 8 * 24 * 3600
    assert messages(node(), node(cpu_seconds=many), node()) == [
        f"CPU time of each process (cpu) limited to {many} on n1; other nodes have unlimited"
    ]
    small = node(stack=2**20)
    assert messages(node(stack=2**23), small, node(stack=2**23)) == [
        "the stack of each thread (stack) limited to 1048576 on n1; other nodes have 8388608"
    ]


def test_differences_that_no_job_feels_are_silent() -> None:
    assert messages(node(open_files=1024), node(open_files=1024)) == []
    assert messages(node(open_files=65536), node(open_files=1048576)) == []
    assert messages(node(processes=30000), node(processes=8000000)) == []
    assert messages(node(open_files=1024), node(open_files=4096)) == []
    assert messages(node(stack=2**23), node(), node()) == []


def test_what_is_an_error_of_its_own_is_not_named_twice_and_root_is_exempt_from_nproc() -> None:
    assert messages(node(open_files=64), node(open_files=1048576)) == []
    assert messages(node(0, processes=1000), node(0, processes=100000)) == []
    assert len(messages(node(processes=1000), node(processes=100000))) == 1


def test_limits_that_could_not_be_read_are_unknown() -> None:
    nodes = {"a": node(), "b": {**node(), LimitsFacts: Unread("no answer")}, "c": node()}
    outcomes = {one.nodes[0]: one.outcome for one in judge([limits_differ], nodes).verdicts}
    assert outcomes == {"a": Outcome.PASSED, "b": Outcome.UNKNOWN, "c": Outcome.PASSED}
