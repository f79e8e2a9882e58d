"""NC237: a second IPv4 address on the interface of Open MPI's TCP."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nics import Address, Interface, Kind, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.mpi_second_address import mpi_second_address


def nic(name: str, *addresses: str, speed: int = 10_000) -> Interface:
    own = tuple(Address(ip, int(prefix)) for ip, _, prefix in (text.partition("/") for text in addresses))
    return Interface(name, 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=own, speed=speed)


def found(*second: Interface, version: str = "4.1.4", implementation: str = "Open MPI") -> list[Finding]:
    mpi = MpiFacts(implementation, version)
    first = NicFacts((nic("eth0", "10.1.0.1/24"), nic("mgmt0", "10.2.0.1/24", speed=1000)))
    one: Facts = {NicFacts: first, MpiFacts: mpi}
    two: Facts = {NicFacts: NicFacts(second), MpiFacts: mpi}
    return judge([mpi_second_address], {"n1": one, "n2": two}).findings


def test_the_address_that_open_mpi_drops_is_named() -> None:
    for other in ("10.1.0.250/32", "10.1.0.250/24", "192.168.5.4/24"):
        ip = other.partition("/")[0]
        assert found(nic("eth0", "10.1.0.2/24", other)) == [
            Finding("NC237", "mpi-second-address", Severity.ERROR, ("n2",),
                    f"eth0 has 10.1.0.2 and {ip}: Open MPI connects from 10.1.0.2, other nodes know {ip} alone and "
                    "drop it, and the job hangs", (), "ip -br address show eth0", kind="look",
                    summary="Open MPI hangs with two addresses on an interface"),
        ]  # fmt: skip


def test_an_address_where_the_job_sends_nothing_is_no_trouble() -> None:
    eth0 = nic("eth0", "10.1.0.2/24")
    assert found(eth0) == []
    assert found(eth0, nic("mgmt0", "10.2.0.2/24", "10.2.0.250/32", speed=1000)) == []
    assert found(eth0, nic("dummy0", "10.1.0.250/32")) == []
    assert found(replace(eth0, addresses=(*eth0.addresses, Address("2001:db8::2", 64)))) == []


def test_another_mpi_has_no_such_trouble() -> None:
    twice = nic("eth0", "10.1.0.2/24", "10.1.0.250/32")
    assert found(twice, version="5.0.11") == []
    assert found(twice, implementation="MPICH", version="4.2") == []
