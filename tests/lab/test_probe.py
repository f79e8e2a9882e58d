"""The probe over real hosts, through real SSH: one rank a GPU, by a stand-in NCCL that is told to be sick.

Its ranks send at a rate of their own, far below what two busy cores carry: figures are the stand-in's alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from .command import Run, begin, listing
from .hosts import Lab
from .node import Node
from .promises import HANGS, PATIENT, nothing_left

SIZES = ("--sizes", "1M")
UNHURRIED = ("--probe-time", "240")  # a bound for what hangs: nothing that is healthy comes near it
ONCE = ("--repeats", "1", "--select", "NC7")  # where only the outcome counts
RATE = 10_000_000  # bytes a second that each rank sends


def told(nodes: Iterable[Node], *words: str) -> None:
    """Tell the hosts' stand-ins what to be."""
    for node in nodes:
        node.write("/etc/standin-nccl", ",".join((f"rate={RATE}", *words)))


def probed(lab: Lab, *argv: str, command: tuple[str, ...] = (), nodes: Sequence[str] = ()) -> Run:
    listing(lab, nodes or lab.names)
    asked = (*command, "nodes.txt", "-o", "json", "--probe", "auto", *SIZES, *UNHURRIED, *PATIENT, *argv)
    with nothing_left(lab):
        return begin(lab, *asked).wait(HANGS)


def codes(run: Run, *but: str) -> dict[str, list[str]]:
    return {one["code"]: sorted(one["nodes"]) for one in run.report["findings"] if one["code"] not in but}


def stages(run: Run) -> set[str]:
    return {one["stage"] for one in run.report["measurements"]}


def reason(run: Run, code: str, node: str = "node01") -> str:
    return run.not_passed(node)[code]


def test_without_the_bad_one_a_cluster_is_measured_and_clean(lab: Lab) -> None:
    told(lab.nodes)
    lab.nodes[1].write("/etc/standin-nccl", f"rate={RATE},version=21903")
    run = probed(lab, "--repeats", "3", "--op", "all-reduce,all-to-all", "--drop-bad", command=("probe",))
    assert (list(run.report["dropped"]), run.exit_code) == (["node02"], 0)
    good = ("node01", "node03", "node04")
    assert {outcome for _, outcome in run.verdicts(*good).items()} <= {"passed", "skipped"}, run.not_passed("node01")
    held_to_be_clean(run, good, repeats=3, wrong=([0, 0], [0]))  # an all-to-all is not in place
    for one in run.report["measurements"]:
        assert one["protocol"]["spread"] > 0


def held_to_be_clean(run: Run, names: Sequence[str], repeats: int, wrong: Sequence[list[int]]) -> None:
    """Hold a run to have measured these nodes, by all ways of grouping them, and to have found nothing.

    `wrong`: for each operation the wrong elements out of place and in place, on all nodes together.
    """
    assert codes(run) == {}
    assert (run.report["probe"]["ran"], run.report["probe"]["means"]) == (True, "nccl")
    assert stages(run) == {"inside", "pair", "scaling", "all"}
    wholes = [one for one in run.report["measurements"] if one["stage"] == "all"]
    assert [[point["wrong"] for point in whole["curve"]] for whole in wholes] == [*wrong]
    assert all((whole["nodes"], whole["ranks"]) == (list(names), 2 * len(names)) for whole in wholes)
    protocol = {"statistic": "median", "repeats": repeats, "warm_ups": 2, "iterations": 1, "wanted": repeats}
    for one in run.report["measurements"]:
        assert one["protocol"] == {**protocol, "spread": one["protocol"]["spread"]}


def test_a_slow_host_is_named_after_it_met_two_beneath_its_slow_gpu_and_beside_one_whose_rank_dies(lab: Lab) -> None:
    told(lab.nodes)
    told(lab.nodes[:1], "die=collective")
    lab.nodes[2].write("/etc/standin-nccl", f"rate={RATE // 4}")
    for node in lab.nodes:  # a GPU that is tested alone needs more memory than one in an all-reduce of 1 MiB
        node.write("/etc/standin-cuda", f"devices=2,memory={1 << 30}{',host=0.4@1' if node is lab.nodes[2] else ''}\n")
    asked = ("--sizes", "256K", "--repeats", "3", "--select", "NC7", "--gpu-test", "quick")
    run = probed(lab, *asked, "--record", "recording/probed")
    assert (codes(run)["NC701"], codes(run)["NC710"]) == (["node01"], ["node03"])
    assert {code: nodes for code, nodes in codes(run).items() if code.startswith("NC75")} == {"NC753": ["node03"]}
    assert (run.finding("NC710")["see"], run.finding("NC753")["see"]) == (["NC753"], [])
    assert [code for code in run.not_passed("node01") if code.startswith("NC75")] == []
    assert run.exit_code == 1
    replayed = begin(lab, "replay", "recording/probed", "--select", "NC7", "-o", "json").wait(HANGS)
    assert (replayed.exit_code, replayed.verdicts()) == (1, run.verdicts())
    assert replayed.report["measurements"] == run.report["measurements"]
    assert replayed.report["probe"] == run.report["probe"]
    assert {tuple(sorted(pair["nodes"])) for pair in run.report["probe"]["pairs"]} >= {
        ("node03", "node04"), ("node02", "node03"),
    }  # fmt: skip


def test_hosts_that_hang_are_ended_and_the_rest_is_measured_and_wrong_sums_are_an_error_of_their_host(lab: Lab) -> None:
    told(lab.nodes)
    told(lab.nodes[1:2], "hang=init")
    told(lab.nodes[2:3], "hang=collective")
    told(lab.nodes[3:], "wrong=3")
    run = probed(lab, *ONCE, "--probe-time", "80")
    assert (codes(run)["NC701"], codes(run)["NC702"]) == (["node02", "node03"], ["node04"])
    assert run.exit_code == 1
    (whole,) = (one for one in run.report["measurements"] if one["stage"] == "all")
    assert whole["nodes"] == ["node01", "node04"]


def test_libraries_that_differ_are_refused_before_anything_starts(lab: Lab) -> None:
    told(lab.nodes)
    lab.nodes[1].write("/etc/standin-nccl", f"rate={RATE},version=21903")
    run = probed(lab, "--select", "NC2,NC7", nodes=lab.names[:3])
    assert codes(run, "NC002", "NC202") == {"NC201": ["node02"]}
    assert run.report["probe"]["ran"] is False
    assert run.report["probe"]["reason"] == "fix NC201 first"
    assert run.exit_code == 1


def test_who_presses_ctrl_c_hears_what_is_known_and_leaves_nothing(lab: Lab) -> None:
    names, hanging = lab.names[:2], lab.nodes[1]
    told(lab.nodes)
    told([hanging], "hang=collective")
    listing(lab, names)
    with nothing_left(lab):
        running = begin(lab, "probe", "nodes.txt", "-o", "json", *SIZES, *UNHURRIED, *PATIENT)
        _wait_for(hanging, "ncheck.probe.agent.nccl_rank.main")
        running.interrupt()
        run = running.wait(HANGS)
    assert (run.exit_code, run.report["interrupted"]) == (130, True)
    assert {outcome for (code, _), outcome in run.verdicts().items() if code == "NC701"} == {"unknown"}
    assert {node["name"] for node in run.report["nodes"]} == set(names)


def _wait_for(node: Node, called: str) -> None:
    end = time.monotonic() + HANGS
    while not any(called in line for line in node.processes().values()):
        assert time.monotonic() < end, node.processes()
        time.sleep(0.05)


def test_a_run_without_the_probe_says_so(healthy: Run) -> None:
    assert (healthy.report["probe"]["ran"], healthy.exit_code) == (False, 0)
    assert reason(healthy, "NC701") == "skipped: --probe none"
