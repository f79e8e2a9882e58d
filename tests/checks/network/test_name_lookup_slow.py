"""NC340: a name server that does not answer makes each lookup slow."""

from __future__ import annotations

from ncheck.facts.names import NameFacts, Resolved
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.name_lookup_slow import name_lookup_slow


def found(*said: Resolved) -> list[Finding]:
    nodes: dict[str, Facts] = {
        f"n{at}": {NameFacts: NameFacts({"n1": one, "n2": Resolved(("10.1.0.2",))})} for at, one in enumerate(said)
    }
    return judge([name_lookup_slow], nodes).findings


def test_lookups_that_take_as_long_as_a_dead_name_server_are_named_with_the_figure() -> None:
    slow = Resolved(("10.1.0.1",), seconds=5.0)
    assert found(slow, Resolved(("10.1.0.1",), seconds=5.1), Resolved(("10.1.0.1",))) == [
        Finding("NC340", "name-lookup-slow", Severity.WARNING, ("n0", "n1"),
                "the lookup of n1 took 5 s: a name server may not answer", (),
                "time getent ahosts n1; cat /etc/resolv.conf", kind="look", summary="slow name lookups"),
    ]  # fmt: skip
    (late,) = found(Resolved(late=True, seconds=10.0), Resolved(("10.1.0.1",)))
    assert late.message == "the lookup of n1 did not end within 10 s: a name server may not answer"


def test_a_busy_machine_and_an_earlier_recording_are_silent() -> None:
    assert found(Resolved(("10.1.0.1",), seconds=2.4), Resolved(late=True), Resolved(late=True, seconds=1.0)) == []
