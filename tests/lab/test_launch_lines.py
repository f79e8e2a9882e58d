"""The line that is printed runs a real all-reduce with Debian's own mpirun; where it is not followed, the trap shuts.

Every test shows both: the line as it was printed, then the trap that it goes round.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import faults
from .conftest import once
from .hosts import Lab
from .launching import Launched, Watch, launched
from .layers import ADA, ROOT, User
from .promises import nothing_left, planned

PROGRAM = ("--for", "mpirun", "--", "allreduce")
RANKS = {f"rank {number - 1} on node0{number}" for number in (1, 2, 3)}
BEGUN, SMALL, LARGE = "rank 0 on node01", "8 bytes over 3 ranks", "8388608 bytes over 3 ranks"
# What Open MPI says when it tried an address that is another host's too; its line breaks after "process".
ASTRAY = r"connect\(\) to (172\.17\.0\.1|192\.168\.49\.1):\d+ failed|cannot find a corresponding (process|endpoint)"
REFUSED = "An invalid value was given for btl_tcp_if_include"


def ended_well(run: Launched) -> bool:
    """Tell whether every rank summed all; what mpirun remarks beside that stands there too."""
    return run.exit_code == 0 and set(run.said.splitlines()) >= RANKS | {SMALL, LARGE}


def without_interfaces(line: str) -> str:
    return re.sub(r"--mca (btl|oob)_tcp_if_include \S+ ", "", line)


def held_to(line: str, network: str) -> str:
    """Return the line with MPI's own traffic on this network, and the launch as it was."""
    return re.sub(r"(--mca btl_tcp_if_include) \S+", rf"\1 {network}", line)


@pytest.fixture(scope="session")
def line(running_wide_lab: Lab, of_all_workers: Path) -> str:
    """Return the line for the healthy lab."""
    return once(of_all_workers / "wide-line", lambda: planned(running_wide_lab, *PROGRAM)).stdout


@pytest.mark.parametrize("user", [ROOT, ADA], ids=lambda user: user.name)
def test_docker0_alike_everywhere_stops_mpirun_and_the_printed_line_does_not(
    wide_lab: Lab, user: User, line: str
) -> None:
    node = wide_lab.nodes[0]
    if user is ADA:
        line = planned(wide_lab, *PROGRAM, user=user).stdout

    with nothing_left(wide_lab):
        done = launched(node, line, user=user)
    assert ended_well(done), done

    trapped = launched(node, without_interfaces(line), Watch(enough=ASTRAY), user=user)
    assert re.search(ASTRAY, trapped.said), trapped
    assert LARGE not in trapped.said
    wide_lab.remake(*wide_lab.nodes)


@pytest.mark.parametrize("user", [ROOT, ADA], ids=lambda user: user.name)
def test_the_line_for_port_10001_needs_no_other_port(wide_lab: Lab, user: User) -> None:
    for node in wide_lab.nodes:
        faults.firewall(node, "tcp dport 22 reject with tcp reset")
    line = planned(wide_lab, "-p", "10001", *PROGRAM, user=user).stdout

    done = launched(wide_lab.nodes[0], line, user=user)
    assert ended_well(done), done

    refused = launched(wide_lab.nodes[0], line.replace("-p 10001", ""), user=user)
    assert "Connection refused" in refused.said
    assert refused.exit_code not in (0, None)


def test_the_line_runs_from_a_head_that_is_on_the_other_network_alone(wide_lab: Lab, line: str) -> None:
    assert re.findall(r"_if_include (\S+)", line) == ["10.78.0.0/24", "10.77.0.0/24"]

    with nothing_left(wide_lab):
        done = launched(wide_lab, line)

    assert ended_well(done), done
    # mpirun's own race with each ssh that it starts, told now and then, is none of the line's.
    said = [line for line in done.said.splitlines() if "Warning: setpgid(" not in line]
    assert not [line for line in said if "warning" in line.lower()], done


def test_one_subnet_under_two_names_is_named_by_its_addresses(wide_lab: Lab, line: str) -> None:
    assert "--mca btl_tcp_if_include 10.78.0.0/24" in line

    by_name = launched(wide_lab.nodes[0], held_to(line, "fast0"), Watch(enough=REFUSED, then=3))

    assert REFUSED in by_name.said, by_name
    assert LARGE not in by_name.said
    wide_lab.remake(*wide_lab.nodes)


def test_a_nic_that_is_up_and_goes_nowhere_is_named_and_gone_round(wide_lab: Lab) -> None:
    faults.unplug_fast(wide_lab, wide_lab.nodes[2])

    told, line, done, forced = told_and_tried(wide_lab, BEGUN)

    assert "10.78.0.0/24 is not used: node03 cannot reach any node on 10.78.0.0/24, and no node can reach it" in told
    assert "--mca btl_tcp_if_include 10.77.0.0/24" in line
    assert "NCCL_SOCKET_IFNAME==eth0" in line
    assert ended_well(done), done
    assert BEGUN in forced.said, forced
    assert SMALL not in forced.said, forced


def test_a_switch_that_loses_large_packets_is_named_and_gone_round(wide_lab: Lab) -> None:
    faults.shrink_switch_port(wide_lab, wide_lab.nodes[2])

    told, line, done, forced = told_and_tried(wide_lab, SMALL)

    assert "large packets from and to node03 are lost on 10.78.0.0/24" in told
    assert "--mca btl_tcp_if_include 10.77.0.0/24" in line
    assert ended_well(done), done
    assert SMALL in forced.said, forced
    assert LARGE not in forced.said, forced


def test_a_filter_in_one_direction_is_named_with_its_direction_and_gone_round(wide_lab: Lab) -> None:
    # Rank 0 is the first to speak, and to rank 1: these two may meet only if it is the other who calls.
    faults.firewall(wide_lab.nodes[1], "ip saddr 10.78.0.1 tcp flags & (syn | ack) == syn drop")

    told, line, done, forced = told_and_tried(wide_lab, BEGUN)

    assert "node02 reaches node01 on 10.78.0.0/24, but node01 does not reach node02" in told
    assert "--mca btl_tcp_if_include 10.77.0.0/24" in line
    assert ended_well(done), done
    assert BEGUN in forced.said, forced
    assert SMALL not in forced.said, forced


def told_and_tried(lab: Lab, comes_as_far_as: str) -> tuple[str, str, Launched, Launched]:
    """Return what is told of a network that is not whole, the line, its run, and its run on that network."""
    plan = planned(lab, "--force", *PROGRAM)  # the network that is used instead is slower: NC329
    done = launched(lab.nodes[0], plan.stdout)
    # What goes well says all at once: what is not said in two seconds is never said. Ranks that wait use the CPU.
    forced = launched(lab.nodes[0], held_to(plan.stdout, "10.78.0.0/24"), Watch(enough=comes_as_far_as, then=2))
    lab.remake(*lab.nodes)
    return plan.stderr, plan.stdout, done, forced
