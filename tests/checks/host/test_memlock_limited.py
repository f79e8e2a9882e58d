"""NC602: locked memory matters where an HCA is in use, and not to who may lock more than the limit."""

from __future__ import annotations

from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts, SharedMemory
from ncheck.facts.login import IdentityFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.memlock_limited import memlock_limited

MIB8 = 8 * 1024 * 1024


def node(memlock: int | None, user: int = 1000, container: str = "", state: str = "Active") -> dict[str, Facts]:
    port = HcaPort("mlx5_0", 1, state, "LinkUp", 200.0, "InfiniBand")
    return {
        "n1": {
            LimitsFacts: LimitsFacts(memlock, SharedMemory(2**30, 2**30)),
            HostSettingsFacts: Unread("a recording of an earlier release"),
            InfinibandFacts: InfinibandFacts((port,), "sysfs"),
            IdentityFacts: IdentityFacts("n1", "b00t", "net:[4026531840]", user),
            InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {}, container),
        }
    }


def test_the_limit_of_an_ordinary_user_is_reported_with_a_fix() -> None:
    lines = r"* soft memlock unlimited\n* hard memlock unlimited\n"
    fix = f"printf '{lines}' | sudo tee /etc/security/limits.d/90-memlock.conf"
    assert judge([memlock_limited], node(MIB8)).findings == [
        Finding("NC602", "memlock-limited", Severity.ERROR, ("n1",), "locked memory is limited to 8192 KiB", (), fix),
    ]


def test_in_a_container_root_is_limited_too() -> None:
    judgement = judge([memlock_limited], node(MIB8, user=0, container="docker"))
    assert [(finding.kind, finding.fix) for finding in judgement.findings] == [
        ("do", "start the container again with --ulimit memlock=-1")
    ]


def test_it_is_silent_without_a_limit_and_for_root_on_the_machine_itself() -> None:
    assert [judge([memlock_limited], nodes).findings for nodes in (node(None), node(MIB8, user=0))] == [[], []]


def test_the_capability_decides_where_it_could_be_read() -> None:
    for user, container, locks in ((0, "docker", True), (0, "docker", False), (0, "", False), (1000, "", True)):
        nodes = node(MIB8, user=user, container=container)
        nodes["n1"] = {**nodes["n1"], HostSettingsFacts: HostSettingsFacts(8, locks_memory=locks)}
        expected = Outcome.PASSED if locks else Outcome.FAILED
        assert [verdict.outcome for verdict in judge([memlock_limited], nodes).verdicts] == [expected]


def test_it_is_silent_and_skipped_where_no_hca_is_in_use() -> None:
    idle, none = node(MIB8, state="Down"), node(MIB8)
    none["n1"] = {**none["n1"], InfinibandFacts: Absent("no HCA")}
    verdicts = [judge([memlock_limited], nodes).verdicts[0].outcome for nodes in (idle, none)]
    assert verdicts == [Outcome.SKIPPED, Outcome.SKIPPED]


def test_a_limit_that_could_not_be_read_is_unknown() -> None:
    nodes = node(None)
    nodes["n1"] = {**nodes["n1"], LimitsFacts: Unread("no answer")}
    assert [verdict.outcome for verdict in judge([memlock_limited], nodes).verdicts] == [Outcome.UNKNOWN]
