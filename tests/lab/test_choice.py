"""The plan's choice among the networks of real hosts: the fast one that all reach, or the next and the reason why."""

from __future__ import annotations

from typing import Any

from . import faults
from .command import Run
from .hosts import Lab
from .promises import examined

FAST, SLOW = "10.78.0.0/24", "10.77.0.0/24"


def chosen(run: Run) -> dict[str, Any]:
    """Return the setting of NCCL's interface."""
    setting: dict[str, Any] = run.report["plan"]["env"]["NCCL_SOCKET_IFNAME"]
    return setting


def test_the_fast_network_is_named_by_a_list_of_names_that_no_host_has_two_of(wide_healthy: Run) -> None:
    assert chosen(wide_healthy)["value"] == "=enp3s0,fast0"
    assert f"the job's network is {FAST}" in chosen(wide_healthy)["reason"]


def test_a_fast_interface_that_is_up_and_goes_nowhere_leaves_the_slow_network_and_says_why(wide_lab: Lab) -> None:
    faults.unplug_fast(wide_lab, wide_lab.nodes[1])

    run = examined(wide_lab)

    assert "--mca btl_tcp_if_include 10.77.0.0/24" in run.report["plan"]["lines"]["mpirun"]
    assert chosen(run)["value"] == "=eth0"
    left_out = [note for note in run.report["plan"]["notes"] if note.startswith(f"{FAST} is not used: ")]
    assert [("node02" in note, "no answer" in note or "no route" in note) for note in left_out] == [(True, True)]
