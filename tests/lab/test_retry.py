"""launch --retry between real hosts: who is proved to be at fault loses its place, and nobody else.

The fault begins in the middle of the job, on the host of the rank that dies.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable

from . import command
from .hosts import Lab
from .node import Node
from .promises import HANGS, PATIENT

# From now on nobody can connect to this host but by ssh; and the rank dies as on a broken GPU.
DIES = """nft add table inet deaf
nft 'add chain inet deaf in { type filter hook input priority 0; }'
nft add rule inet deaf in tcp dport 32768-60999 tcp flags '& (syn|ack)' == syn reject with tcp reset
"""
OF_GPU = """echo "$(hostname):77:80 [0] NCCL WARN Cuda failure 214 'uncorrectable ECC error encountered'"
exit 1
"""
LIVES = "echo step 1 loss 2\nexec sleep 1000\n"  # until mpirun ends it
SETTINGS = 'sizes = "256K"\nrepeats = 1\n'  # who can be measured with whom, and not how fast
# A host is lost, and srun says it in the words of Slurm 22.05; the second time all goes well.
SRUN = """#!/bin/sh
[ -e /run/tried ] && exit 0
touch /run/tried
ssh node03 'kill -9 $(cat /run/sshd.pid)'
echo 'srun: error: Node failure on node03' >&2
echo 'slurmstepd: error: *** STEP 812.0 ON node01 CANCELLED AT 2026-01-02T03:04:05 DUE TO NODE FAILURE ***' >&2
exit 143
"""
IN_SECOND_TRY = "[ -e /run/tried ] || {\ntouch /run/tried\n" + LIVES + "}\n"


def job(nodes: Iterable[Node], script: str) -> None:
    for node in nodes:
        node.write("/run/train.sh", script)


def launched(lab: Lab, *argv: str, nodes: int) -> command.Run:
    command.listing(lab, [f"{name} slots=1" for name in lab.names[:nodes]])
    with lab.file_on_head("root/ncheck.toml", SETTINGS):
        run = command.begin(lab, "launch", "nodes.txt", *PATIENT, *argv, "--", "sh", "/run/train.sh").wait(HANGS)
    for folder in set(re.findall(r"tmp/ncheck-launch-\w+", run.stderr)):  # the head has this machine's
        shutil.rmtree(lab.root / folder)
    return run


def said(run: command.Run) -> list[str]:
    """Return the hosts of each line that mpirun was given, and what ncheck said after each try."""
    hosts = re.compile(r"ncheck: starting: (?:mpirun|srun) .*?(-np \d+ -H \S+|-N \d+ -w \S+)")
    lines = (found[1] if (found := hosts.match(line)) else line for line in run.stderr.splitlines())
    wanted = re.compile("-[nN]|ncheck: (restart|not restarted)")
    return [line for line in lines if wanted.match(line)]


def test_a_host_that_fails_with_two_others_loses_its_place_to_the_spare_and_without_one_the_job_ends(lab: Lab) -> None:
    job(lab.nodes, LIVES)
    job([lab.nodes[2]], DIES + OF_GPU)
    job([lab.nodes[1]], IN_SECOND_TRY + DIES + OF_GPU)

    run = launched(lab, "--retry", "3", "--spare", "node04", nodes=3)

    assert said(run) == [
        "-np 3 -H node01:1,node02:1,node03:1",
        "ncheck: restart, node04 takes the place of node03: node03 fails with node[01-02], which pass together",
        "-np 3 -H node01:1,node02:1,node04:1",
        (
            "ncheck: not restarted: no spare for node02: name one with --spare, or allow fewer nodes with --shrink "
            "(node02 fails with node[01,04], which pass together)"
        ),
    ], run.stderr
    assert run.exit_code == 1
    assert run.stdout.count("step 1 loss 2\n") == 4


def test_where_the_network_is_at_fault_nobody_is_excluded(lab: Lab) -> None:
    job(lab.nodes, DIES + LIVES)
    job([lab.nodes[2]], DIES + "sleep 1\n" + OF_GPU)

    run = launched(lab, "--retry", "3", "--spare", "node04", nodes=3)

    assert said(run) == [
        "-np 3 -H node01:1,node02:1,node03:1",
        (
            "ncheck: restart on the same nodes, nobody is excluded: node[01-02] fail together, too: the network or the "
            "software of all nodes is at fault"
        ),
    ], run.stderr
    assert "ncheck: nothing was started" in run.stderr
    assert run.exit_code == 1


def test_a_lost_host_is_no_time_limit_and_srun_gets_the_hosts_that_are_left(lab: Lab) -> None:
    job(lab.nodes, LIVES)
    with lab.file_on_head("usr/local/bin/srun", SRUN, 0o755), lab.file_on_head("run/tried", ""):
        (lab.root / "run/tried").unlink()
        run = launched(lab, "--with", "srun", "--retry", "3", "--shrink", nodes=3)

    refused = "not reached: refused: "
    lines = [line.partition(refused)[0] for line in said(run)]
    assert lines == [
        "-N 3 -w 'node[01-03]'",
        (
            "ncheck: restart, without node03, on 2 nodes: node03 is at fault: neither this machine nor another node "
            "reaches it ("
        ),
        "-N 2 -w 'node[01-02]'",
    ], run.stderr
    assert run.exit_code == 0
