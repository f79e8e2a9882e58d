"""NC619: limits that all processes of a control group or of a node share."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_load import HostLoadFacts, Use
from ncheck.facts.host_settings import GroupLimit, HostSettingsFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.host.node_limit_low import MOST_THREADS, node_limit_low

CONTAINED = InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {}, "podman")
FOLDER = "/sys/fs/cgroup"


def node(
    limit: int | None = None, used: int | None = 5, gpus: int = 8, threads: Use | None = None, files: Use | None = None
) -> dict[str, Facts]:
    group = None if limit is None else GroupLimit(limit, FOLDER, used)
    boards = GpuFacts(tuple(Gpu(at, "H100") for at in range(gpus)), "550", "12.4", "nvml")
    return {
        "n1": {
            HostSettingsFacts: HostSettingsFacts(96, threads=group),
            HostLoadFacts: HostLoadFacts(96, threads=threads, files=files),
            InterpreterFacts: CONTAINED,
            GpuFacts: boards if gpus else Absent("no GPU"),
        }
    }


def messages(nodes: dict[str, Facts]) -> list[str]:
    return [one.message for one in judge([node_limit_low], nodes).findings]


def test_podmans_default_is_too_low_for_eight_gpus() -> None:
    assert judge([node_limit_low], node(2048)).findings == [
        Finding("NC619", "node-limit-low", Severity.WARNING, ("n1",),
                "a control group allows 2048 processes and threads; a job here needs 4096", (FOLDER,),
                "start the container again with --pids-limit=-1", kind="do",
                summary="few processes are allowed"),
    ]  # fmt: skip


def test_a_group_of_a_login_is_no_container() -> None:
    login = {**node(2048)["n1"], InterpreterFacts: replace(CONTAINED, container="")}
    (found,) = judge([node_limit_low], {"n1": login}).findings
    assert (found.fix, found.kind) == ("cat /proc/self/cgroup", "look")


def test_a_limit_of_files_is_not_lowered_by_its_fix() -> None:
    (found,) = judge([node_limit_low], node(files=Use(2900000, 3000000))).findings
    assert found.fix == "sudo sysctl -w fs.file-max=6000000"


def test_a_limit_of_the_group_or_of_the_node_that_is_nearly_reached_is_named() -> None:
    assert messages(node(10000, 9000)) == ["9000 of the 10000 processes and threads of a control group are in use"]
    assert messages(node(threads=Use(30000, 32768))) == [
        "30000 of the 32768 processes and threads of the node are in use"
    ]
    (found,) = judge([node_limit_low], node(files=Use(790000, 800000))).findings
    assert (found.message, found.fix) == (
        "790000 of the 800000 open files of the node are in use", "sudo sysctl -w fs.file-max=2097152"
    )  # fmt: skip
    assert judge([node_limit_low], node(10000, 9000)).findings[0].fix == MOST_THREADS


def test_a_login_of_systemd_a_container_with_few_gpus_and_an_idle_node_are_healthy() -> None:
    assert messages(node()) == messages(node(10813, None)) == messages(node(2048, gpus=4)) == []
    assert messages(node(threads=Use(90000, 32768))) == []  # of a container's own pid_max, and of the whole machine
    assert messages(node(2048, gpus=0, threads=Use(400, 32768), files=Use(1000, 800000))) == []
