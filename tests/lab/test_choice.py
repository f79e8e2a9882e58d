"""The plan's choice among the networks of real hosts: the fast one that all reach. test_launch_lines.py breaks it."""

from __future__ import annotations

from typing import Any

from .command import Run

FAST = "10.78.0.0/24"


def chosen(run: Run) -> dict[str, Any]:
    """Return the setting of NCCL's interface."""
    setting: dict[str, Any] = run.report["plan"]["env"]["NCCL_SOCKET_IFNAME"]
    return setting


def test_the_fast_network_is_named_by_a_list_of_names_that_no_host_has_two_of(wide_healthy: Run) -> None:
    assert chosen(wide_healthy)["value"] == "=enp3s0,fast0"
    assert f"the job's network is {FAST}" in chosen(wide_healthy)["reason"]
