"""The preflight in front of jobs on real hosts: a healthy job runs as without it, and one that would hang ends at once.

What the ranks say is their standard output and their standard error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeAlias

import pytest
from ncheck.hook.meeting.ports import candidates
from ncheck.hook.meeting.wire import job_token
from ncheck.rank_variables import read_rank

from . import faults, layers
from .conftest import prepare_jobs
from .hosts import Lab
from .launching import Launched
from .layers import ADA
from .promises import eventually, nothing_left
from .ranks import JOB, PORT, Started, everywhere, ran

pytestmark = pytest.mark.xdist_group("preflight")  # those that wait do so side by side, in one worker

OF_RANKS = ("--select", "NC8")  # where only the meeting matters
STOPPED = "ncheck stopped this job before it started: "


def ends(ranks: list[Launched]) -> list[tuple[int | None, str]]:
    return [(rank.exit_code, rank.said) for rank in ranks]


def summed(rank: int, size: int, node: int) -> tuple[int, str]:
    """Return how a rank of the job ends that the preflight let run."""
    return 0, f"rank {rank} of {size} on node{node:02}: {sum(range(size))}\n"


def stopped(ranks: list[Launched]) -> str:
    """Return what all ranks of a job say in the end that was stopped; rank 0 prints the report before."""
    assert {rank.exit_code for rank in ranks} == {1}, ranks
    said = {STOPPED + rank.said.partition(STOPPED)[2] for rank in ranks}
    assert len(said) == 1, said
    assert ranks[0].said.startswith("x Not ready: "), ranks[0]
    assert all(rank.said.startswith(STOPPED) for rank in ranks[1:]), ranks
    return said.pop()


def test_a_healthy_job_runs_as_without_the_hook_although_the_first_port_is_taken(job_lab: Lab) -> None:
    rank = read_rank({"RANK": "0", "WORLD_SIZE": "3", "MASTER_PORT": str(PORT)})
    faults.listen(job_lab.nodes[0], candidates(job_token(rank, "", "0"), PORT)[0])

    with nothing_left(job_lab):
        done = ran(job_lab, everywhere(), 3)

    assert ends(done) == [summed(rank, 3, rank + 1) for rank in range(3)]


def test_another_nccl_on_one_host_and_docker0_for_nccl_on_another_stop_the_job_on_every_rank(job_lab: Lab) -> None:
    layers.nccl(job_lab.nodes[1].path("/run/site"), "2.19.3")
    faults.docker_bridge(job_lab.nodes[2])
    job_lab.nodes[2].write("/etc/nccl.conf", "NCCL_SOCKET_IFNAME=docker0\n")

    with nothing_left(job_lab):
        done = ran(job_lab, everywhere(), 3)

    assert stopped(done).splitlines() == [
        f"{STOPPED}2 errors",
        "NC201 nccl-version-differs on node02: NCCL differs: 2.20.5 on node[01,03], 2.19.3 on node02 (2 to 1)",
        f"  fix on node02: {sys.executable} -m pip install nvidia-nccl-cu12==2.20.5",
        "  more: ncheck explain NC201",
        "NC304 nccl-would-pick-virtual on node03: NCCL would pick docker0 (container-bridge):",
        "  NCCL_SOCKET_IFNAME=docker0",
        "  fix on node03: sudo sed -i 's/^NCCL_SOCKET_IFNAME=.*/NCCL_SOCKET_IFNAME==eth0/' /etc/nccl.conf",
        "  more: ncheck explain NC304",
    ]


def test_the_plans_variables_reach_the_job_that_asks_for_them(job_lab: Lab) -> None:
    faults.container_veth(job_lab.nodes[1])
    faults.docker_bridge(job_lab.nodes[2])
    job_lab.nodes[2].write("/etc/nccl.conf", "NCCL_SOCKET_IFNAME=docker0\n")

    done = ran(job_lab, everywhere("--apply", "--", "printenv", "NCCL_SOCKET_IFNAME"), 3)

    assert [(rank.exit_code, rank.said.splitlines()[-1]) for rank in done] == [(0, "=eth0")] * 3
    assert "NCCL_SOCKET_IFNAME is set for this job; also NC337" in done[0].said


def test_a_rank_that_dies_during_the_check_is_named_with_its_host(job_lab: Lab) -> None:
    node = job_lab.nodes[2]

    def met() -> bool:  # a connection to node01, in the state ESTABLISHED
        return bool(re.search(r": \w+:\w+ 01004D0A:\w+ 01 ", node.sh("cat /proc/net/tcp").stdout))

    with ThreadPoolExecutor(2) as pool:
        own = {"NCHECK_TOKEN": "dies"}
        waiting = pool.submit(ran, job_lab, [Started(0, 1, own), Started(2, 3, own)], 3)
        assert eventually(met, wanted=True, seconds=30)
        (pid,) = (pid for pid, line in node.processes().items() if line.endswith("-m ncheck.hook /run/job.py 0"))
        node.sh(f"kill -KILL {pid}")
        (last,) = ran(job_lab, [Started(1, 2, own)], 3)
        first, killed = waiting.result()

    assert (killed.exit_code, killed.said) == (255, "")  # ssh's own, of a command that was killed
    assert stopped([first, last]).splitlines() == [
        f"{STOPPED}1 error",
        f"NC803 rank-ended on node03: rank 2 ended before the job began (pid {pid})",
        "  look on node03: sudo dmesg -T",
        "  more: ncheck explain NC803",
    ]


def test_a_firewall_that_lets_only_the_jobs_own_ports_through_stops_no_job_whose_exit_codes_are_its_own(
    job_lab: Lab,
) -> None:
    for node in job_lab.nodes:
        faults.firewall(node, f"tcp dport != {{ 22, {PORT}, 32768-60999 }} {faults.SYN} drop")
    *ranks, last = everywhere(*OF_RANKS, *JOB)

    done = ran(job_lab, [*ranks, replace(last, words=(*OF_RANKS, "/run/job.py", "7"))], 3)

    assert ends(done) == [summed(0, 3, 1), summed(1, 3, 2), (7, summed(2, 3, 3)[1])]


def test_two_jobs_with_the_same_master_port_on_the_same_hosts_do_not_meet(job_lab: Lab) -> None:
    def job(name: str) -> list[Started]:
        own = {"TORCHELASTIC_RUN_ID": name, "LOCAL_RANK": "0"}
        return [Started(rank, rank + 1, own, words=(*OF_RANKS, "--", "echo", name)) for rank in range(2)]

    done = ran(job_lab, [*job("a"), *job("b")], 2)

    assert ends(done) == [(0, "a\n"), (0, "a\n"), (0, "b\n"), (0, "b\n")]


def test_variables_that_are_no_numbers_end_every_rank_with_one_line(job_lab: Lab) -> None:
    done = ran(job_lab, everywhere(WORLD_SIZE="x"), 3)

    assert ends(done) == [(2, "ncheck: WORLD_SIZE=x is not a whole number\n")] * 3


# Jobs that wait for ranks do so side by side.

Jobs: TypeAlias = dict[str, list[Launched]]


@pytest.fixture(scope="module")
def jobs(running_lab: Lab) -> Iterator[Jobs]:
    prepare_jobs(running_lab)
    _, second, third, fourth = running_lab.nodes
    second.sh("sed 's/^10.77.0.1 /127.0.0.1 /' /etc/hosts >/run/hosts; cat /run/hosts >/etc/hosts")
    faults.firewall(third, f"tcp dport 20000-29999 {faults.SYN} drop")
    faults.hang_nvidia_smi(fourth)

    def of(name: str, *ranks: Started, **more: str) -> list[Started]:
        own = {"NCHECK_TOKEN": name, "NCHECK_TIMEOUT": "12", **more}
        asked = () if name == "hanging" else OF_RANKS
        return [replace(one, more={**own, **one.more}, words=(*asked, *one.words)) for one in ranks]

    hostname = ("--", "hostname")
    asked = {
        "one missing": of("one missing", Started(0, 1), Started(1, 2)),
        "loopback": of(
            "loopback", Started(0, 1), Started(1, 2), Started(2, 3), MASTER_ADDR="node01", MASTER_PORT="29501"
        ),
        "late": of(
            "late", Started(0, 1), Started(1, 2, after=5), Started(2, 3, after=10), MASTER_PORT="29502",
            NCHECK_TIMEOUT="15",
        ),
        "restarted": of(
            "", Started(1, 2, {"TORCHELASTIC_RESTART_COUNT": "0", "LOCAL_RANK": "1"}, words=hostname),
            Started(0, 2, {"TORCHELASTIC_RESTART_COUNT": "1", "LOCAL_RANK": "0"}, 2, hostname),
            Started(1, 2, {"TORCHELASTIC_RESTART_COUNT": "1", "LOCAL_RANK": "1"}, 2, hostname),
            TORCHELASTIC_RUN_ID="run", WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", GROUP_RANK="0", GROUP_WORLD_SIZE="1",
            MASTER_ADDR="10.77.0.2", MASTER_PORT="29503",
        ),
        "forged": of(
            "", Started(1, 1, words=hostname, user=ADA),  # on the host of rank 0, with the job's own id
            Started(1, 3, {"NCHECK_TOKEN": "guessed"}, words=hostname, user=ADA),
            Started(0, 1, after=2, words=hostname), Started(1, 2, after=2, words=hostname),
            WORLD_SIZE="2", MASTER_PORT="29504", TORCHELASTIC_RUN_ID="run", LOCAL_RANK="0",
        ),
        "filtered": of(
            "filtered", Started(0, 3, words=hostname), Started(1, 2, words=hostname),
            MASTER_ADDR="10.77.0.3", WORLD_SIZE="2", MASTER_PORT="29505",
        ),
        "two sizes": of(
            "", Started(0, 1, {"WORLD_SIZE": "2"}, words=hostname), Started(1, 2, {"WORLD_SIZE": "4"}, words=hostname),
            MASTER_PORT="29507", NCHECK_TIMEOUT="24",
        ),
        "two jobs": of(
            "", *(Started(rank, 1 + rank, words=hostname, after=2 * job) for job in (0, 1) for rank in (0, 1)),
            WORLD_SIZE="3", MASTER_PORT="29508", NCHECK_TIMEOUT="24",
        ),
        "hanging": of(
            "hanging", Started(0, 1, words=("--select", "NC5", *JOB)), Started(1, 4), WORLD_SIZE="2",
            MASTER_PORT="29506", NCHECK_TIMEOUT="25",
        ),
    }  # fmt: skip
    with nothing_left(running_lab), ThreadPoolExecutor(len(asked)) as pool:
        ended = list(pool.map(lambda ranks: ran(running_lab, ranks, 3), asked.values()))
    yield dict(zip(asked, ended, strict=True))
    running_lab.heal()


def test_a_rank_that_never_comes_stops_those_that_did(jobs: Jobs) -> None:
    first, second = jobs["one missing"]

    assert [rank.exit_code for rank in (first, second)] == [1, 1]
    for rank in (first, second):
        # Where the machine is too busy for the checks, that one is missing is known all the same.
        assert re.search(STOPPED + r"(1 error\nNC801 rank-missing .* rank 2 |rank 2 did not come; )", rank.said), rank
        assert "Traceback" not in rank.said


def test_a_master_that_is_loopback_on_one_host_is_named_there(jobs: Jobs) -> None:
    first, astray, third = jobs["loopback"]

    assert [rank.exit_code for rank in (first, astray, third)] == [1, 1, 1]
    assert astray.said.startswith(f"{STOPPED}rank 0 was not found at MASTER_ADDR=node01 (127.0.0.1) within ")
    for rank in (first, third):
        assert re.search(STOPPED + r"(1 error\nNC801 rank-missing .* rank 1 |rank 1 did not come; )", rank.said), rank


def test_ranks_that_start_late_are_waited_for(jobs: Jobs) -> None:
    assert [rank.exit_code for rank in jobs["late"]] == [0, 0, 0]
    assert [rank.said.splitlines()[-1] for rank in jobs["late"]] == [
        f"rank {number} of 3 on node0{number + 1}: 3" for number in range(3)
    ]


def test_a_rank_of_an_earlier_attempt_does_not_meet_those_of_the_next(jobs: Jobs) -> None:
    old, *new = jobs["restarted"]

    assert old.exit_code == 1
    assert [(rank.exit_code, rank.said.splitlines()[-1]) for rank in new] == [(0, "node02")] * 2


def test_another_users_rank_with_a_forged_token_is_not_let_in(jobs: Jobs) -> None:
    """One has guessed the token. It is a warning to a forger where somebody is at rank 0's ports."""
    forged, guessed, *own = jobs["forged"]

    assert [(rank.exit_code, rank.said.splitlines()[-1]) for rank in own] == [(0, "node01"), (0, "node02")]
    assert all("rank 0 was not found at " in rank.said for rank in (forged, guessed)), (forged, guessed)


def test_two_sizes_of_one_job_stop_the_ranks_on_both_nodes(jobs: Jobs) -> None:
    text = stopped(jobs["two sizes"])

    assert re.search(r"NC804 world-size-differs on node02: node02 has WORLD_SIZE 4, node01 2 \(rank 1 ", text), text


def test_all_ranks_of_two_jobs_with_one_master_port_are_stopped_and_say_that_another_job_meets_there(
    jobs: Jobs,
) -> None:
    assert [rank.exit_code for rank in jobs["two jobs"]] == [1] * 4
    for rank in jobs["two jobs"]:
        assert re.search(r"another\s+job\s+\(pids? [\d, ]+\)\s+meets\s+at\s+10\.77\.0\.1:29508", rank.said), rank


def test_a_firewall_in_front_of_all_ports_ends_the_ranks_on_both_sides_of_it(jobs: Jobs) -> None:
    first, second = jobs["filtered"]

    assert (first.exit_code, second.exit_code) == (1, 1)
    assert re.search(STOPPED + r"(1 error\nNC801 rank-missing .* rank 1 |rank 1 did not come; )", first.said), first
    words = r"rank 0 was not found at .* no answer from its ports \(\d+ and 15 others\) and from MASTER_PORT 29505, "
    assert re.match(STOPPED + words + "perhaps because of a firewall\n", second.said), second


def test_a_node_whose_collection_hangs_is_named_in_time(jobs: Jobs) -> None:
    text = stopped(jobs["hanging"])

    assert text.startswith(f"{STOPPED}1 error\nNC505 nvidia-smi-hangs on node04: "), text
    assert max(rank.seconds for rank in jobs["hanging"]) < 40
