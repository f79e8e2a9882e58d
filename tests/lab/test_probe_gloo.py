"""gloo, by a real torch, between hosts that take their own names for 127.0.1.1: verified, and never called NCCL.

Two cores serve all hosts: no figure is judged here.
"""

from __future__ import annotations

import sys

from . import faults
from .hosts import Lab
from .probing import IDLE, met, named, probed, sent, told

BY_GLOO = ("--probe", "gloo", "--python", sys.executable, "--sizes", "1M,8M")
MESH = "32768-60999"  # the ports that the kernel picks for listeners


def test_ranks_on_three_hosts_sum_what_is_verified_over_the_plans_interface(torch_lab: Lab) -> None:
    run = probed(torch_lab, *BY_GLOO, "--probe-time", "200")

    assert (told(run)["ran"], told(run)["means"]) == (True, "gloo"), told(run)
    assert told(run)["version"].startswith("2.")
    rows = run.report["measurements"]
    assert {row["by"] for row in rows} == {f"torch {told(run)['version']} gloo on CPUs"}
    assert not any("NCCL" in row["what"] or "NCCL" in row["by"] for row in rows)
    assert {row["stage"] for row in rows} == {"pair", "scaling", "all"}
    assert {(row["failed"], point["wrong"], point["in_place"]) for row in rows for point in row["curve"]} == {
        ("", 0, True)
    }
    assert {(row["protocol"]["warm_ups"], row["protocol"]["wanted"]) for row in rows} == {(1, 5)}
    assert all(3 <= row["protocol"]["repeats"] <= 5 for row in rows)  # as there is time
    assert met(run) == set(torch_lab.names)
    assert not [one for one in run.report["findings"] if one["code"].startswith("NC70")]
    planned, others = sent(run, planned=True), sent(run, planned=False)
    assert {*planned} == {(node.name, node.nics[0]) for node in torch_lab.nodes}
    assert min(planned.values()) > IDLE  # the smallest size at least: there may be no time for larger ones
    assert max(others.values(), default=0) < IDLE


def test_ranks_that_wait_for_one_that_cannot_be_reached_are_ended_and_say_where_they_stood(torch_lab: Lab) -> None:
    faults.firewall(torch_lab.nodes[0], f"tcp dport {MESH} {faults.SYN} drop")

    run = probed(torch_lab, *BY_GLOO, "--probe-time", "80", "--mesh", "none")

    assert run.exit_code == 1
    assert named(run, "NC701") == ["node01"], run.report["findings"]
    assert "node[02-03] cannot connect to it, but can connect to others: " in run.finding("NC701")["message"]
    assert named(run, "NC713") == ["node01"]
    failed = [row["failed"] for row in run.report["measurements"] if row["failed"]]
    assert failed
    assert all("filtered: 10.78.0.1 port " in words for words in failed)
    assert met(run) == {"node02", "node03"}
