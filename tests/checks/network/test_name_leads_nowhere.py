"""NC339: an address of a name that is dead, beside one that answers."""

from __future__ import annotations

from ncheck.facts.names import NameFacts, Resolved, SilentAddress
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.name_leads_nowhere import name_leads_nowhere
from ncheck_checks.network.names_resolve_differently import names_resolve_differently

RIGHT = Resolved(("10.1.0.2",))


def found(resolved: Resolved, *more: Resolved) -> list[Finding]:
    nodes: dict[str, Facts] = {}
    for number, said in enumerate((resolved, *(more or (RIGHT,))), 1):
        own = (Address(f"10.1.0.{number}", 24), Address(f"10.2.0.{number}", 24))
        nic = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=own)
        nodes[f"n{number}"] = {NameFacts: NameFacts({"n2": said}), NicFacts: NicFacts((nic,))}
    return judge([name_leads_nowhere, names_resolve_differently], nodes).findings


def test_a_dead_address_that_is_tried_first_is_an_error_with_its_line() -> None:
    dead = Resolved(("10.1.0.99", "10.1.0.2"), silent=(SilentAddress("10.1.0.99", 3),))
    assert found(dead, dead, RIGHT) == [
        Finding("NC339", "name-leads-nowhere", Severity.ERROR, ("n1", "n2"),
                "n2 resolves to 10.1.0.99 (/etc/hosts, line 3), which does not answer and is no listed node's; "
                "10.1.0.2 answers", (),
                "sudo sed -i --follow-symlinks '3{/^[[:space:]]*10[.]1[.]0[.]99[[:space:]]/d}' /etc/hosts",
                summary="a name leads to a dead address"),
    ]  # fmt: skip


def test_one_that_is_tried_last_is_a_warning_and_from_dns_there_is_no_line() -> None:
    (one,) = found(Resolved(("10.1.0.2", "10.9.0.2"), silent=(SilentAddress("10.9.0.2"),)))
    assert (one.code, one.severity, one.fix, one.kind) == ("NC339", Severity.WARNING, "getent ahosts n2", "look")
    assert one.message == (
        "n2 resolves to 10.9.0.2, which does not answer and is no listed node's; 10.1.0.2 answers, and is tried first"
    )


def test_a_second_address_of_the_node_itself_or_one_that_answers_is_no_trouble() -> None:
    assert found(Resolved(("10.1.0.2", "10.2.0.2"), silent=(SilentAddress("10.2.0.2", 4),))) == []
    assert found(Resolved(("10.1.0.2", "192.0.2.7"))) == []
