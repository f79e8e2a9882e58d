"""NC359: a bond that is up and has lost a part of itself."""

from __future__ import annotations

from ncheck.facts.bonds import Bond, BondFacts, Slave
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.bond_degraded import bond_degraded

LACP, BACKUP = "IEEE 802.3ad Dynamic link aggregation", "fault-tolerance (active-backup)"


def lacp(*slaves: Slave, aggregator: int | None = 1) -> Bond:
    return Bond("bond0", LACP, up=True, slaves=slaves, aggregator=aggregator)


def slave(name: str, speed: int | None = 25000, aggregator: int | None = 1, *, up: bool = True) -> Slave:
    return Slave(name, up, speed, aggregator)


def messages(bond: Bond) -> list[str]:
    return [finding.message for finding in judge([bond_degraded], {"n1": {BondFacts: BondFacts((bond,))}}).findings]


def test_a_slave_that_is_down_is_named_with_its_bond() -> None:
    bond = lacp(slave("eno1"), slave("eno2", None, up=False))
    assert judge([bond_degraded], {"n1": {BondFacts: BondFacts((bond,))}}).findings == [
        Finding("NC359", "bond-degraded", Severity.WARNING, ("n1",), "bond0: eno2 is down", (),
                "cat /proc/net/bonding/bond0", kind="look"),
    ]  # fmt: skip


def test_a_slave_at_half_speed_is_named() -> None:
    assert messages(lacp(slave("eno1"), slave("eno2", 10000))) == ["bond0: eno2 runs at 10 of 25 Gb/s"]


def test_a_slave_that_the_switch_left_out_of_the_group_is_named_with_or_without_roots_view() -> None:
    for known in (1, None):
        bond = lacp(slave("eno1"), slave("eno3"), slave("eno2", aggregator=2), aggregator=known)
        assert messages(bond) == ["bond0: eno2 is in another aggregation group than the others"]


def test_an_active_backup_bond_without_an_active_slave_is_named() -> None:
    down = (slave("eno1", None, None, up=False), slave("eno2", None, None, up=False))
    bond = Bond("bond0", BACKUP, up=False, slaves=down)
    assert messages(bond) == ["bond0: eno1 is down; eno2 is down; no interface is active"]


def test_an_active_slave_slower_than_the_standby_is_named() -> None:
    pair = (slave("eno1", 1000, None), slave("eno2", 25000, None))
    assert messages(Bond("b", BACKUP, up=True, slaves=pair, active="eno1")) == ["b: eno1 runs at 1 of 25 Gb/s"]


def test_a_bond_without_slaves_is_named() -> None:
    assert messages(Bond("b", "load balancing (round-robin)", up=False, slaves=())) == ["b: it has no interface"]


def test_it_is_silent_if_all_slaves_work_or_only_the_standby_is_slow() -> None:
    assert messages(lacp(slave("eno1"), slave("eno2"))) == []
    assert messages(lacp(slave("eno1", None), slave("eno2", None))) == []
    pair = (slave("eno1", 25000, None), slave("eno2", 1000, None))
    assert messages(Bond("b", BACKUP, up=True, slaves=pair, active="eno1")) == []


def test_a_node_without_bonds_is_skipped() -> None:
    verdicts = judge([bond_degraded], {"n1": {BondFacts: Absent("no bond")}}).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.SKIPPED]
