"""Ranks under the plan's own mpirun line, from a head that is none of the nodes; nccl-tests inside and between them.

Debian's own mpirun starts them by ssh. NCCL and nccl-tests are stand-ins: what they sum lies in host memory.
"""

from __future__ import annotations

from typing import Any

from .command import Run, begin, listing
from .hosts import Lab
from .layers import STANDINS, compiled
from .promises import HANGS, PATIENT, eventually, nothing_left

SMALL = ("--sizes", "1M")  # the bytes go at full speed, and how many they are says nothing here
PROBE = ("nodes.txt", "-o", "json", "--select", "NC7", *SMALL, "--probe-time", "100", *PATIENT)  # 30 s for what hangs
BY_MPIRUN = ("--probe", "nccl", "--probe-launcher", "mpirun")
ALL = "all"


def probed(lab: Lab, *argv: str) -> Run:
    """Run the probe over two nodes of two ranks each."""
    listing(lab, [f"{name} slots=2" for name in lab.names[:2]])
    with nothing_left(lab):
        return begin(lab, *PROBE, *argv).wait(HANGS)


def measured(run: Run, stage: str) -> list[dict[str, Any]]:
    return [one for one in run.report["measurements"] if one["stage"] == stage]


def stages(run: Run) -> set[tuple[str, int]]:
    """Return the stages that were measured, with their ranks."""
    return {(one["stage"], one["ranks"]) for one in run.report["measurements"]}


def outcome(run: Run, code: str) -> set[str]:
    return {outcome for (found, _), outcome in run.verdicts().items() if found == code}


def begun(lab: Lab) -> bool:
    """Tell whether an mpirun of the head starts ranks; what only asks for its version does not."""
    return any("mpirun --allow-run-as-root" in line for line in lab.processes().values())


def with_nccl_tests(lab: Lab, *options: str, compiler: str = "cc") -> None:
    program = compiled(STANDINS / "all_reduce_perf.c", *options, compiler=f"{compiler} -O1")
    for node in lab.nodes[:2]:
        for name in ("all_reduce_perf", "alltoall_perf"):
            node.write(f"/usr/local/bin/{name}", program, 0o755)


def test_all_nodes_are_measured_under_the_line_of_the_plan(lab: Lab) -> None:
    run = probed(lab, *BY_MPIRUN, "--repeats", "3", "--op", "all-to-all")
    (whole,) = measured(run, ALL)
    assert (run.report["probe"]["means"], run.report["probe"]["launcher"]) == ("nccl", "mpirun"), run.report["probe"]
    assert (whole["ranks"], whole["failed"]) == (4, ""), whole
    assert (whole["protocol"]["repeats"], whole["protocol"]["wanted"]) == (3, 3)
    assert whole["measured"] > 0
    assert {traffic["device"] for traffic in run.report["probe"]["traffic"] if traffic["planned"]} == {"eth0"}
    assert {outcome(run, code).pop() for code in ("NC701", "NC702", "NC703", "NC705")} == {"passed"}


def test_a_line_whose_daemon_is_not_there_fails_with_its_own_words(lab: Lab) -> None:
    for node in lab.nodes[:2]:
        node.write("/usr/bin/orted", "", 0o644)
    run = probed(lab, *BY_MPIRUN, "--repeats", "1", "--force")
    (failed,) = (finding for finding in run.report["findings"] if finding["code"] == "NC701")
    assert any("orted" in line for line in failed["evidence"]), failed
    assert run.exit_code == 1


def test_nccl_tests_run_inside_the_nodes_and_between_them(lab: Lab) -> None:
    with_nccl_tests(lab, "-DMPI_SUPPORT", compiler="mpicc")
    run = probed(lab, "--probe", "nccl-tests", "--repeats", "3", "--op", "all-reduce,all-to-all")
    assert stages(run) == {("inside", 2), ("pair", 2), (ALL, 4)}
    halves = [len(one["curve"]) for one in measured(run, ALL)]
    assert (halves[0], halves) == (2 * halves[1], [halves[0], halves[1]])  # an all-to-all is not in place
    protocol = {"statistic": "mean", "repeats": 3, "warm_ups": 1, "iterations": 1, "wanted": 3, "spread": None}
    assert all(one["protocol"] == protocol for one in run.report["measurements"]), run.report["measurements"]
    assert {one["failed"] for one in run.report["measurements"]} == {""}, run.report["measurements"]
    assert (run.report["probe"]["means"], outcome(run, "NC701")) == ("nccl-tests", {"passed"})


def test_a_build_without_mpi_is_no_test_of_the_network(lab: Lab) -> None:
    with_nccl_tests(lab)
    run = probed(lab, "--probe", "nccl-tests", "--repeats", "1")
    assert stages(run) == {("inside", 2)}
    assert outcome(run, "NC701") == {"unknown"}, run.not_passed("node01")
    assert "was built without MPI" in run.not_passed("node01")["NC701"]
    assert run.exit_code == 1


def test_a_rank_that_hangs_under_the_line_is_ended_with_the_step_and_nothing_is_left(lab: Lab) -> None:
    lab.nodes[1].write(
        "/etc/standin-nccl", "hang=collective,rank=3\n"
    )  # that rank is there when all nodes run together
    run = probed(lab, *BY_MPIRUN, "--repeats", "1")
    (whole,) = measured(run, ALL)
    assert whole["measured"] is None, whole
    assert outcome(run, "NC701") & {"failed", "unknown"}, run.not_passed("node02")
    assert run.exit_code == 1


def test_a_segment_that_a_rank_leaves_which_dies_under_the_line_is_removed_and_told(lab: Lab) -> None:
    lab.nodes[1].write("/etc/standin-nccl", "shm=leave,die=collective,at=4,rank=3\n")
    run = probed(lab, *BY_MPIRUN, "--repeats", "1")
    left = [one for one in run.report["findings"] if one["code"] == "NC705" and "node02" in one["nodes"]]
    assert any("/dev/shm/nccl-" in line and "was removed" in line for one in left for line in one["evidence"]), left  # noqa: S108
    assert not list(lab.nodes[1].path("/dev/shm").glob("nccl-*"))  # noqa: S108


def test_an_interrupt_while_mpirun_runs_leaves_no_mpirun_no_daemon_and_no_rank(lab: Lab) -> None:
    lab.nodes[1].write("/etc/standin-nccl", "hang=collective,rank=3\n")
    listing(lab, [f"{name} slots=2" for name in lab.names[:2]])
    with nothing_left(lab):
        running = begin(lab, *PROBE, *BY_MPIRUN)
        eventually(lambda: begun(lab) or running.process.poll() is not None, wanted=True, seconds=HANGS)
        assert begun(lab), running.wait(HANGS).report["findings"]
        running.interrupt()
        run = running.wait(HANGS)
    assert run.exit_code == 130
