"""NC613: a network file system that most nodes have mounted."""

from __future__ import annotations

from ncheck.facts.mounts import Mount, MountFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.host.shared_mount_missing import shared_mount_missing

NFS = Mount("nfs4")


def node(*paths: str, automatic: tuple[str, ...] = ()) -> Facts:
    return {MountFacts: MountFacts(dict.fromkeys(paths, NFS), automatic)}


def outcomes(*nodes: Facts) -> set[Outcome]:
    judgement = judge([shared_mount_missing], {f"n{number}": facts for number, facts in enumerate(nodes)})
    return {verdict.outcome for verdict in judgement.verdicts}


def test_the_node_that_lacks_it_is_named() -> None:
    nodes = {"n1": node("/home", "/data"), "n2": node("/home"), "n3": node("/home", "/data")}
    assert judge([shared_mount_missing], nodes).findings == [
        Finding("NC613", "shared-mount-missing", Severity.WARNING, ("n2",),
                "/data (nfs4) is not mounted; 2 of 3 nodes have it", (), "sudo mount -a"),
    ]  # fmt: skip


def test_it_is_silent_about_what_few_have_and_about_what_comes_on_demand() -> None:
    assert outcomes(node("/home"), node("/home"), node("/home", "/admin")) == {Outcome.PASSED}
    assert outcomes(node("/home/ada"), node(automatic=("/home",)), node("/home/ada")) == {Outcome.PASSED}
    assert outcomes(node(), node()) == {Outcome.PASSED}
