"""NC613: a network file system that most nodes have mounted."""

from __future__ import annotations

from ncheck.facts.mounts import Mount, MountFacts
from ncheck.facts.nics import Address, Interface, Kind, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.shared_mount_missing import shared_mount_missing

NFS = Mount("nfs4", server="10.20.0.1")
LO = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536, addresses=(Address("127.0.0.1", 8, "host"),))


def node(*paths: str, automatic: tuple[str, ...] = ()) -> Facts:
    return {MountFacts: MountFacts(dict.fromkeys(paths, NFS), automatic), NicFacts: NicFacts((LO,))}


def outcomes(*nodes: Facts) -> set[Outcome]:
    judgement = judge([shared_mount_missing], {f"n{number}": facts for number, facts in enumerate(nodes)})
    return {verdict.outcome for verdict in judgement.verdicts}


def test_the_node_that_lacks_it_is_named() -> None:
    nodes = {"n1": node("/home", "/data"), "n2": node("/home"), "n3": node("/home", "/data")}
    assert judge([shared_mount_missing], nodes).findings == [
        Finding("NC613", "shared-mount-missing", Severity.WARNING, ("n2",),
                "/data (nfs4) is not mounted; 2 of 3 nodes have it", (), "sudo mount -a"),
    ]  # fmt: skip


def test_the_node_that_serves_the_file_system_has_it_on_its_disk() -> None:
    eth0 = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address("10.20.0.1", 24),))
    server = {**node(), NicFacts: NicFacts((LO, eth0))}
    assert outcomes(server, node("/home"), node("/home")) == {Outcome.PASSED}
    by_name, by_tunnel = (
        {**node(), MountFacts: MountFacts({"/home": Mount("nfs4", server=server)})} for server in ("n0", "127.0.0.1")
    )
    assert outcomes(node(), by_name, by_name) == {Outcome.PASSED}
    assert outcomes(node(), by_tunnel, by_tunnel) == {Outcome.PASSED, Outcome.FAILED}


def test_it_is_silent_about_what_few_have_and_about_what_comes_on_demand() -> None:
    assert outcomes(node("/home"), node("/home"), node("/home", "/admin")) == {Outcome.PASSED}
    assert outcomes(node("/home/ada"), node(automatic=("/home",)), node("/home/ada")) == {Outcome.PASSED}
    assert outcomes(node(), node()) == {Outcome.PASSED}
