"""The preflight under real launchers: Debian's mpirun, and torchrun with gloo."""

from __future__ import annotations

import re
import sys

import pytest

from . import layers
from .hosts import Lab
from .launching import Launched, launched
from .promises import nothing_left
from .ranks import SITE
from .test_torchrun import PROGRAM, SUMMED, typed

MPIRUN = f"mpirun --allow-run-as-root -np 3 -H node01,node02,node03 -x PYTHONPATH={SITE}"
HOOKED = f"{sys.executable} -m ncheck.hook"
STOPPED = "ncheck stopped this job before it started: "


def lines(run: Launched) -> list[str]:
    """Return what was said, in any order, without mpirun's own races: with each ssh that it starts, and with the end of
    an mpirun before it that had the same pid, and so the same session folder.
    """
    races = re.compile(r"Warning: setpgid\(|^\[head:\d+\] (CANNOT CREATE FIFO|Impossible to open the file|PMIX ERROR)")
    return sorted(line for line in run.said.splitlines() if not races.search(line))


@pytest.mark.parametrize("place", ["a node", "the head"])
def test_mpirun_runs_a_healthy_job_as_without_the_hook(job_lab: Lab, place: str) -> None:
    host = job_lab if place == "the head" else job_lab.nodes[0]

    with nothing_left(job_lab):
        with_hook = launched(host, f"{MPIRUN} {HOOKED} -- allreduce")
    without = launched(host, f"{MPIRUN} allreduce")

    assert (with_hook.exit_code, lines(with_hook)) == (0, lines(without))
    assert "8388608 bytes over 3 ranks" in lines(without)


def test_every_rank_of_mpirun_says_why_it_ends_and_the_report_is_there_once(job_lab: Lab) -> None:
    layers.nccl(job_lab.nodes[1].path("/run/site"), "2.19.3")

    with nothing_left(job_lab):
        run = launched(job_lab.nodes[0], f"{MPIRUN} {HOOKED} -- allreduce")

    assert run.exit_code == 1
    assert "bytes over" not in run.said
    assert lines(run).count("x Not ready: node02: NCCL differs") == 1, run.said
    assert 1 <= lines(run).count(f"{STOPPED}1 error") <= 3  # mpirun ends the others at the end of the first


# Where a rank dies before it calls the preflight, once: the other waits in it when torchrun starts both anew.
RESTARTED = f"""
[ $RANK = 0 ] || ! mkdir /run/died 2>&- || exit 1
exec {HOOKED} --apply /run/sums.py 60
"""


def torchrun(lab: Lab, words: str) -> list[Launched]:
    """Start a job of two agents, one rank each, with none of the variables of a plan."""
    for node in lab.nodes[:2]:
        node.write("/run/sums.py", PROGRAM.read_text())
        node.write("/run/start.sh", RESTARTED)
    agent = "torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=10.77.0.1:29400 --rdzv-id=run"
    by_node = {node.name: f"{agent} --local-addr={node.address} {words}" for node in lab.nodes[:2]}
    return list(typed(lab, by_node).values())


def test_torchrun_ends_a_job_that_would_hang_with_the_reason_on_each_node(torch_lab: Lab) -> None:
    with nothing_left(torch_lab):
        done = torchrun(torch_lab, "-m ncheck.hook /run/sums.py 60")

    assert [run.exit_code for run in done] == [1, 1], done
    for run in done:
        assert f"{STOPPED}1 error\nNC304 nccl-would-pick-virtual on node[01-02]: " in run.said, run
        assert "8388608 bytes" not in run.said


def test_torchrun_starts_a_job_anew_while_a_rank_still_waits_and_it_runs_with_the_plans_variables(
    torch_lab: Lab,
) -> None:
    with nothing_left(torch_lab):
        done = torchrun(torch_lab, "--max-restarts=1 --no-python bash /run/start.sh")

    assert [run.exit_code for run in done] == [0, 0], done
    assert any("failed (exitcode: 1)" in run.said for run in done)
    assert sorted(line for run in done for line in run.said.splitlines() if line.startswith("rank ")) == SUMMED
