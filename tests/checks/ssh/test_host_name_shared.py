"""NC103: different machines under one host name."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.host_name_shared import host_name_shared


def machine(host_name: str, boot_id: str, namespace: str = "net:[1]", job: JobFacts | None = None) -> Facts:
    return {IdentityFacts: IdentityFacts(host_name, boot_id, namespace, 0), JobFacts: job or JobFacts()}


def test_two_machines_of_one_name_are_an_error_that_names_both() -> None:
    nodes = {"gpu1": machine("ubuntu", "b1"), "gpu2": machine("ubuntu", "b2"), "gpu3": machine("gpu3", "b3")}
    judgement = judge([host_name_shared], nodes)
    assert judgement.findings == [
        Finding(
            "NC103", "host-name-shared", Severity.ERROR, ("gpu1", "gpu2"), "gpu[1-2] all have the hostname ubuntu",
            ("gpu1: ubuntu, boot id b1", "gpu2: ubuntu, boot id b2"),
            "sudo hostnamectl set-hostname gpu1", where="gpu1", summary="hostname ubuntu is shared",
        ),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.FAILED, Outcome.FAILED, Outcome.PASSED]


def test_containers_of_one_host_with_one_name_have_one_nccl_host_hash() -> None:
    nodes = {"c1": machine("worker", "b1", "net:[1]"), "c2": machine("worker", "b1", "net:[2]")}
    assert [finding.message for finding in judge([host_name_shared], nodes).findings] == [
        "c[1-2] all have the hostname worker, on one kernel: the same NCCL host hash"
    ]


def test_a_node_listed_by_address_gets_a_name_that_is_free() -> None:
    nodes = {"10.0.0.1": machine("worker", "b1"), "fe80::2": machine("worker", "b2")}
    assert [finding.fix for finding in judge([host_name_shared], nodes).findings] == [
        "sudo hostnamectl set-hostname worker-2"
    ]


def test_a_job_that_no_launcher_of_hosts_started_minds_only_containers_of_one_kernel() -> None:
    for launcher, boot_id, found in (("torchrun", "b2", 0), ("torchrun", "b1", 1), ("mpirun", "b2", 1)):
        job = JobFacts(launcher=launcher, running=True)
        nodes = {"c1": machine("worker", "b1", "net:[1]", job), "c2": machine("worker", boot_id, "net:[2]", job)}
        assert len(judge([host_name_shared], nodes).findings) == found, (launcher, boot_id)


def test_two_names_of_one_machine_are_not_two_machines_of_one_name() -> None:
    nodes = {"a": machine("worker", "b1"), "b": machine("worker", "b1")}
    assert judge([host_name_shared], nodes).findings == []


def test_names_that_differ_only_in_their_domain_are_fine() -> None:
    nodes = {"a": machine("n1.rack1", "b1"), "b": machine("n1.rack2", "b2")}
    assert judge([host_name_shared], nodes).findings == []


def test_what_could_not_be_read_is_unknown() -> None:
    nodes = {"a": machine("", "b1"), "b": machine("w", ""), "c": machine("w", "b3"), "d": machine("d", "b4")}
    judgement = judge([host_name_shared], nodes)
    assert judgement.findings == []
    assert [(verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [
        (Outcome.UNKNOWN, "its hostname could not be read"),
        (Outcome.UNKNOWN, "b,c have the same hostname and may be one machine or several"),
        (Outcome.UNKNOWN, "b,c have the same hostname and may be one machine or several"),
        (Outcome.PASSED, ""),
    ]
