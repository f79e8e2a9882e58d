"""`ncheck --via srun` inside a real Slurm allocation, without ssh: the same report, and nothing left of the step."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ncheck.probe.facts import TOPOLOGY, slurm_groups

from tests.skips import cannot

from . import faults, hosts
from .command import begin, built
from .conftest import why_not
from .layers import ADA, CHECKOUT, write
from .promises import HANGS, PATIENT, eventually, nothing_left
from .slurm import Slurm

PROGRAMS = ("slurmctld", "slurmd", "srun", "munged")
OF_THE_LOGIN = {"transport", "port", "seconds"}
OF_THE_RUN = {"command", "seconds", "timeline", "time", "nodes", "verdicts"}


@pytest.fixture(scope="module")
def running_slurm() -> Iterator[Slurm]:
    if why := why_not():
        cannot(why)
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        cannot(f"the lab needs {', '.join(missing)}: apt-get install slurm-wlm munge")
    with hosts.lab(4) as lab:
        slurm = Slurm(lab)
        slurm.start()
        yield slurm


@pytest.fixture
def slurm(running_slurm: Slurm) -> Iterator[Slurm]:
    yield running_slurm
    running_slurm.heal()


def without_the_way(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report without what says how the nodes were reached."""
    nodes = [{key: value for key, value in node.items() if key not in OF_THE_LOGIN} for node in report["nodes"]]
    of_ways = ("no SSH is used", "--via srun is not used")
    skipped = {v["code"] for v in report["verdicts"] if v["reason"] in of_ways}
    verdicts = [v for v in report["verdicts"] if v["code"] not in skipped]
    rest = {key: value for key, value in report.items() if key not in OF_THE_RUN}
    return {**rest, "nodes": nodes, "verdicts": verdicts}


def test_the_report_is_that_of_ssh_but_for_how_the_nodes_were_reached(slurm: Slurm) -> None:
    two = slurm.lab.names[:2]  # of the job's nodes, as for a step of it
    with nothing_left(slurm.lab):
        by_srun = slurm.ncheck("--via", "srun", "--record", "recording/srun", waits=PATIENT, nodes=two)
        by_ssh = slurm.ncheck("--slurm", waits=PATIENT, nodes=two)

    assert by_srun.exit_code == 0, by_srun.report["findings"]
    assert [(n["name"], n["reached"], n["transport"], n["user"]) for n in by_srun.report["nodes"]] == [
        (name, True, "srun", "root") for name in two
    ]
    only = {v["code"] for v in by_srun.report["verdicts"] + by_ssh.report["verdicts"] if "is used" in v["reason"]}
    only |= {v["code"] for v in by_ssh.report["verdicts"] if v["reason"] == "--via srun is not used"}
    only |= {"NC134"}  # the launcher's ssh: the plan's launcher is srun, which opens none
    srun, ssh = without_the_way(by_srun.report), without_the_way(by_ssh.report)
    assert {v["outcome"] for v in ssh["verdicts"] if v["code"] in only} == {"passed"}
    assert {v["outcome"] for v in srun["verdicts"] if v["code"] in only - {"NC134"}} == {"passed"}
    assert (list(srun["plan"]["lines"]), list(ssh["plan"]["lines"])) == (["srun"], ["mpirun"])
    only |= {"NC140", "NC229"}  # of ssh, and of what mpirun starts by it
    for report in (srun, ssh):
        report["verdicts"] = [v for v in report["verdicts"] if v["code"] not in only]
        report["plan"] = {part: report["plan"][part] for part in ("env", "per_node", "blockers")}
    assert srun == ssh
    assert slurm.steps() == ""

    replayed = begin(slurm.lab, "replay", "recording/srun", "-o", "json").wait(HANGS)
    differing = {pair for pair, outcome in replayed.verdicts().items() if outcome != by_srun.verdicts()[pair]}
    assert differing == {("NC134", name) for name in two}  # a recording says nothing of --via


def test_the_leaf_switches_that_slurm_prints_are_read(slurm: Slurm) -> None:
    assert slurm_groups(slurm.lab.head(*TOPOLOGY.argv).stdout) == slurm.leaves


def test_faults_of_nodes_are_found_as_over_ssh(slurm: Slurm) -> None:
    other, bare, drained = slurm.lab.nodes[1:]
    faults.nccl(other, "2.18.3")
    faults.remove_python(bare)
    slurm.tell("update", f"nodename={drained.name}", "state=drain", "reason=a lab")

    run = slurm.ncheck("--via", "srun", "--mesh", "none", "--select", "NC0,NC1,NC2", waits=PATIENT)

    failed = run.failed()
    assert failed["NC125"] == {bare.name}, run.not_passed(other.name)
    assert other.name in failed["NC201"]
    assert [n["reached"] for n in run.report["nodes"]] == [True] * 4  # a drained node lets a job's steps start
    assert failed.keys().isdisjoint({"NC001", "NC139"})
    assert run.exit_code == 1


def test_a_node_without_slurmd_and_one_that_is_down_cost_the_others_nothing(slurm: Slurm) -> None:
    dead, down = slurm.lab.nodes[1], slurm.lab.nodes[2]
    dead.sh("kill $(cat /mnt/slurmd.pid)")
    slurm.tell("update", f"nodename={down.name}", "state=down", "reason=its fan is broken")

    run = slurm.ncheck("--via", "srun", "--mesh", "none", "--select", "NC0,NC1")

    assert run.failed() == {"NC001": {dead.name, down.name}, "NC139": {dead.name, down.name}}
    details = {node["name"]: node["detail"] for node in run.report["nodes"]}
    assert details == {
        "node01": "", dead.name: "Communication connection failure", down.name: "Slurm says down (its fan is broken)",
        "node04": "",
    }  # fmt: skip
    assert {n["name"] for n in run.report["nodes"] if n["reached"]} == {"node01", "node04"}
    assert slurm.steps() == ""


@pytest.mark.parametrize("ending", ["^C", "SIGKILL"])
def test_an_ncheck_that_is_ended_leaves_no_step(slurm: Slurm, ending: str) -> None:
    slurm.lab.head("scancel", slurm.job)
    slurm.allocate(ADA)
    for node in slurm.lab.nodes:
        faults.program(node, "nvidia-smi", "touch /tmp/called\nexec sleep 1000")
    waits = ("--command-timeout", "100", "--deadline", "200")
    started = slurm.begin("check", "--via", "srun", "--select", "NC5", "--mesh", "none", *waits, user=ADA)
    try:
        called = [node.path("/tmp/called") for node in slurm.lab.nodes]  # noqa: S108  a node's own
        assert eventually(lambda: sum(path.exists() for path in called), 4, 60) == len(called)
        assert slurm.steps() == "ncheck node[01-04]"
    finally:
        started.interrupt() if ending == "^C" else started.kill()
        run = started.wait(HANGS)

    if ending == "^C":
        assert run.exit_code == 130
        assert slurm.steps() == ""
    assert eventually(slurm.steps, "", 20) == ""
    lines = [line for node in slurm.lab.nodes for line in node.processes().values()]
    assert [line for line in lines if "sleep" in line or "python" in line] == []


def test_slurmctld_that_does_not_answer_is_blamed_on_no_node(slurm: Slurm) -> None:
    slurm.lab.head("sh", "-c", "kill -STOP $(cat /mnt/slurmctld.pid)")
    try:
        run = slurm.ncheck("--via", "srun", "--mesh", "none", "--connect-timeout", "2")
    finally:
        slurm.lab.head("sh", "-c", "kill -CONT $(cat /mnt/slurmctld.pid)")

    assert run.failed() == {"NC133": set(slurm.lab.names)}  # of this machine
    assert run.finding("NC133")["message"].startswith("the Slurm step fails on this machine: squeue: ")
    assert {node["cause"] for node in run.report["nodes"]} == {"transport"}
    assert run.exit_code == 1


def test_a_canary_examines_idle_nodes_in_an_allocation_of_its_own_and_leaves_busy_ones_alone(slurm: Slurm) -> None:
    """docs/examples/canary/slurm-canary: all nodes are busy, then two are idle, then one of these has a fault."""
    script = (CHECKOUT / "docs/examples/canary/slurm-canary").read_text().replace("/var/lib/ncheck", "/mnt/canary")
    write(slurm.lab.root / "mnt/canary/run", script, 0o755)
    once = "export NCHECK_REPEATS=1"  # how fast these hosts are says nothing
    write(slurm.lab.root / "mnt/canary/ncheck", f'#!/bin/sh\n{once}\nexec {shlex.join(built())} "$@"\n', 0o755)

    def canary() -> tuple[int, str]:
        done = slurm.lab.head(
            "env",
            "HOME=/root",
            "PATH=/mnt/canary:/usr/bin:/bin:/usr/sbin:/sbin",
            "setsid",
            "-w",
            "/mnt/canary/run",
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def examined() -> str:
        lines = slurm.lab.head("/mnt/canary/ncheck", "history", "--history", "/mnt/canary/cluster.db", check=False)
        return lines.stdout

    assert canary() == (0, "")
    assert examined() == ""
    slurm.lab.head("scancel", slurm.job)
    slurm.lab.head("salloc", "--no-shell", "--nodelist=node[01-02]", "--job-name=training")
    code, said = canary()
    assert (code, said) == (0, ""), said
    assert "node[03-04]" in examined()
    slurm.lab.nodes[2].sh("mount -t tmpfs -o ro shm /dev/shm")
    code, said = canary()
    assert (code, "NC610" in said) == (1, True), said
    drain = (slurm.lab.root / "mnt/canary/drain.sh").read_text().splitlines()
    assert [line for line in drain if "node03" in line and not line.startswith("#")] == [], "no repair mends a mount"
    jobs = eventually(lambda: slurm.lab.head("squeue", "--noheader", "--format=%j").stdout, "training\n", 30)
    assert jobs == "training\n"  # its own is completing for a moment
    slurm.lab.head("scancel", "--name=training")
