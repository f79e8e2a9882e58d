"""Where mpirun and its daemons meet: a network that the machine is on where the line is typed, or none is named."""

from __future__ import annotations

import pytest
from ncheck.facts.login import LoginFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Login
from ncheck.network.subnets import subnets
from ncheck.parse.interface_names import Kind
from ncheck.plan.launch import OutOfBand, out_of_band
from ncheck.plan.networks import Network
from ncheck.this_machine.local_host import LocalHost

from .links import linked

FAST, SLOW = "10.78.0.0/24", "10.77.0.0/24"
ON_FAST, ON_SLOW, ABROAD = (
    LocalHost({"10.78.0.254": "fast9"}),
    LocalHost({"10.77.0.254": "eth0"}),
    LocalHost({"192.0.2.2": "eth0"}),
)
HERE = f"this machine has no address in {FAST}"


def nodes(fast: str = "10.78.0.{}") -> Cluster:
    """Make three nodes that share two networks, the fast one under two names."""
    cards = [("eth0", "10.77.0.{}"), (("fast0", "enp3s0"), fast)]
    facts = {}
    for number in (1, 2, 3):
        nics = tuple(
            Interface(
                name if isinstance(name, str) else name[number % 2], index, Kind.PHYSICAL, up=True, running=True,
                mtu=1500, addresses=(Address(ip.format(number), 64 if ":" in ip else 24),),
            )
            for index, (name, ip) in enumerate(cards, 2)
        )  # fmt: skip
        facts[f"n{number}"] = {LoginFacts: LoginFacts(Login(reached=True)), NicFacts: NicFacts(nics)}
    return Cluster.of(linked(facts))


def meeting(local_host: LocalHost | None, subnet: str = FAST, cluster: Cluster | None = None) -> OutOfBand:
    seen = cluster or nodes()
    return out_of_band(seen, Network(subnet, subnets(seen.facts(NicFacts))[subnet]), local_host)


@pytest.mark.parametrize(("local_host", "wanted"), [
    (None, OutOfBand(FAST, ("enp3s0", "fast0"))),
    (ON_FAST, OutOfBand(FAST, ("enp3s0", "fast0", "fast9"))),
    (ON_SLOW, OutOfBand(SLOW, ("eth0",), f"{HERE}: mpirun and its daemons connect over {SLOW}")),
    (ABROAD, OutOfBand(why=f"{HERE}: mpirun and its daemons choose a network themselves")),
])  # fmt: skip
def test_the_jobs_network_is_named_where_this_machine_is_on_it_else_one_that_it_shares_with_all(
    local_host: LocalHost | None, wanted: OutOfBand
) -> None:
    assert meeting(local_host) == wanted


def test_a_name_is_left_out_that_this_machine_has_otherwise() -> None:
    assert meeting(LocalHost({"10.77.0.254": "eno1"}), SLOW) == OutOfBand(SLOW, ("eno1", "eth0"))


def test_open_mpi_is_told_names_where_the_network_has_ipv6_only() -> None:
    met = meeting(LocalHost({"fd78::fe": "fast0"}), "fd78::/64", nodes("fd78::{}"))
    assert (met.subnet, met.where) == ("fd78::/64", "enp3s0,fast0")


def test_behind_routers_only_one_of_the_nodes_knows_what_to_name() -> None:
    seen = nodes()
    routed = Network("", subnets(seen.facts(NicFacts))[SLOW])
    assert out_of_band(seen, routed, LocalHost({"10.77.0.2": "eth0"})) == OutOfBand("", ("eth0",))
    assert out_of_band(seen, routed, ABROAD).names == ()
