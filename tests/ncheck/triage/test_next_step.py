"""The next step: one expected word for each cause, and what lines of evidence make of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.model.next_step import Action, NextStep
from ncheck.triage.causes import CAUSES, SYMPTOM
from ncheck.triage.diagnosis import Diagnosis, EvidenceLine
from ncheck.triage.next_step import step_after

from tests.ncheck.triage.test_logs import report

# Every cause, by the word for it where its lines say no more.
EXPECTED = {
    "fix-first": """
        wrong_nic no_interface nic_names_differ routing firewall container_isolation mtu_mismatch hostname_loopback
        gloo_bad_address dns_failure numeric_hostname same_hostname port_in_use rendezvous_misconfig launcher_mismatch
        ssh_auth mpi_daemon_missing pod_unschedulable container_start clock_skew version_mismatch driver_insufficient
        arch_unsupported net_plugin software_bug roce_gid ib_wrong_hca ib_partition roce_congestion ibverbs_missing
        memlock_limit gpudirect_rdma ptrace_refused shm_too_small p2p_acs_iommu p2p_unsupported peer_limit gpu_mapping
        fabric_manager nvls_failure gpu_oom collective_mismatch nofile_limit process_limit disk_full storage_hang
        rank_stopped host_memory algorithm_differs""",
    "restart": "rank_crashed slow_rank_timeout job_ended node_failed data_loader deadlock network_stalled",
    "look": "diverged rank_missing checkpoint_write slow_rank gpu_idle healthy unknown",
    "ticket": "ib_fabric",
    "reset-gpu": "gpu_fault",
}


def found(cause: str, *lines: str, confidence: float = 0.95, **more: Any) -> Diagnosis:
    evidence = tuple(EvidenceLine("job.log", at, text) for at, text in enumerate(lines, 1))
    return replace(Diagnosis(cause, confidence, "", "", evidence, (), (), "", ()), **more)


def test_every_cause_has_its_word() -> None:
    words = {cause: step_after(found(cause)).action.value for cause in (*CAUSES, "unknown")}
    assert words == {cause: word for word, causes in EXPECTED.items() for cause in causes.split()}
    assert SYMPTOM.action is Action.LOOK


ECC = "uncorrectable ECC error encountered"
NVLINK = "NVRM: Xid (PCI:0000:3b:00): 145, {} {} XC0 i0 Link 11 (0x{} 0x{})"
OFF, HANGS = ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
              "NVRM: Xid (PCI:0000:3b:00): 119, Timeout waiting for RPC from GSP!")  # fmt: skip
TYPE, FILE = "TypeError: forward() got an unexpected argument 'mask'", "FileNotFoundError: [Errno 2] '/data/train.bin'"
NODE = "srun: error: Node failure on n7"
LATE = "NET/IB : Got completion from peer 10.1.0.4<38560> with error 12, opcode 0, len 0, vendor err 129"

# A diagnosis, and the step with its nodes and confidence.
STEPS: dict[str, tuple[Diagnosis, tuple[str, tuple[str, ...], float]]] = {
    # stop: what a second start must print again
    "a TypeError of several ranks": (found("rank_crashed", TYPE, ranks=(0, 1)), ("stop", (), 0.95)),
    "a TypeError where no line names a rank": (found("rank_crashed", TYPE), ("stop", (), 0.95)),
    "a TypeError of one rank alone": (found("rank_crashed", TYPE, ranks=(3,)), ("restart", (), 0.85)),
    "a TypeError that may follow from something else": (
        found("rank_crashed", TYPE, confidence=0.5), ("restart", (), 0.5)),
    "an error that depends on the data": (
        found("rank_crashed", "ValueError: no more data", ranks=(0, 1)), ("restart", (), 0.85)),
    "a file that is missing": (found("rank_crashed", FILE, kind="file"), ("stop", (), 0.95)),
    "a file that is missing on several nodes": (
        found("rank_crashed", FILE, kind="file", ranks=(0, 8), nodes=("n1", "n2")), ("stop", (), 0.95)),
    "a program that is missing": (found("rank_crashed", "bash: line 1: tran: command not found"), ("stop", (), 0.95)),
    "a file that comes and goes": (
        found("rank_crashed", FILE.replace("/data", "/data/.cache"), kind="file"), ("restart", (), 0.85)),
    "a file that is missing on one node": (
        found("rank_crashed", FILE, kind="file", nodes=("n1",)), ("fix-first", (), 0.95)),
    "a file that one rank did not find": (
        found("rank_crashed", FILE, kind="file", ranks=(3,)), ("restart", (), 0.85)),
    "a file of a server that did not answer": (
        found("rank_crashed", "NewConnectionError: Max retries exceeded with url", kind="file"), ("restart", (), 0.85)),
    "an option that the program does not know": (
        found("rank_crashed", "train.py: error: unrecognized arguments: --lr-x", kind="exception"), ("stop", (), 0.95)),
    # memory, ends, and hangs
    "host memory": (found("rank_crashed", "Killed process 77 (python3)", kind="memory"), ("fix-first", (), 0.95)),
    "a kill without a reason": (found("rank_crashed", "[0]<stderr>:Killed", kind="killed"), ("restart", (), 0.85)),
    "a time limit": (found("job_ended", kind="time-limit"), ("restart", (), 0.85)),
    "a preemption": (found("job_ended", kind="preempted"), ("restart", (), 0.85)),
    "a job that somebody cancelled": (found("job_ended", kind="cancelled"), ("look", (), 0.95)),
    "a rank that works": (found("deadlock", works=True, confidence=0.4), ("look", (), 0.36)),
    "a loss of a peer, and nothing more": (found("rank_crashed", confidence=0.3), ("restart", (), 0.27)),
    "a guess": (found("firewall", confidence=0.3), ("look", (), 0.27)),
    "ranks that did not come, for an unknown reason": (
        found("rendezvous_misconfig", confidence=0.5), ("look", (), 0.5)),
    # restart-without: a machine that is broken, and named
    "a broken GPU on a node": (found("gpu_fault", ECC, ranks=(12,), nodes=("n7",)), ("restart-without", ("n7",), 0.95)),
    "a broken GPU that may be another cause": (
        found("gpu_fault", ECC, nodes=("n7",), confidence=0.75), ("look", (), 0.75)),
    "a broken GPU somewhere": (found("gpu_fault", ECC), ("reset-gpu", (), 0.85)),
    "a GPU that fell off the bus": (found("gpu_fault", OFF), ("reboot", (), 0.95)),
    "a GPU that fell off the bus of a node": (
        found("gpu_fault", OFF, nodes=("n7",)), ("restart-without", ("n7",), 0.95)),
    "two Xids, of which one asks for more": (found("gpu_fault", OFF, HANGS), ("reboot", (), 0.95)),
    "an Xid that asks for a reset": (found("gpu_fault", HANGS), ("reset-gpu", (), 0.95)),
    "an NVLink that recovers": (
        found("gpu_fault", NVLINK.format("SAW_MVB", "Nonfatal", "00000000", "00000004"), nodes=("n7",)),
        ("restart", (), 0.95)),
    "an NVLink whose cable is to be checked": (
        found("gpu_fault", NVLINK.format("NETIR_BER_EVENT", "Fatal", "00000000", "00000001")), ("ticket", (), 0.95)),
    "a node that failed": (found("node_failed", NODE, nodes=("n7",)), ("restart-without", ("n7",), 0.95)),
    "a node that failed, as another one prints": (
        found("node_failed", "n1: slurmstepd: JOB 8 ON n1 CANCELLED DUE TO NODE FAILURE", nodes=("n1",)),
        ("restart", (), 0.85)),
    "a node whose disk failed": (
        found("node_failed", "Nov 22 16:14:51 n7 kernel: nvme nvme0: controller is down", nodes=("n7",)),
        ("restart-without", ("n7",), 0.95)),
    "a node whose kernel was busy": (
        found("node_failed", "Nov 22 16:14:51 n7 kernel: watchdog: BUG: soft lockup - CPU#3 stuck", nodes=("n7",)),
        ("restart", (), 0.85)),
    "a node that the controller does not reach": (
        found("node_failed", "slurmctld: error: Nodes n7 not responding, setting DOWN", nodes=("n7",)),
        ("restart", (), 0.85)),
    "a node with a longer name": (found("node_failed", NODE + "1", nodes=("n7",)), ("restart", (), 0.85)),
    "a rank that works for longer than the others wait": (
        found("slow_rank_timeout", "Running tokenizer on dataset:  88%|####  | 383/433 [29:55<03:25]"),
        ("fix-first", (), 0.95)),
    # the network in between
    "a network that may be another cause": (found("ib_fabric", confidence=0.5, nodes=("n7",)), ("look", (), 0.45)),
    "a port that is down": (found("ib_fabric", "State: Down", nodes=("n7",)), ("ticket", ("n7",), 0.85)),
    "a peer that did not answer in time": (found("ib_fabric", LATE, nodes=("n7",)), ("restart", (), 0.95)),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_the_evidence_decides(name: str) -> None:
    diagnosis, (action, nodes, confidence) = STEPS[name]
    assert step_after(diagnosis) == NextStep(Action(action), nodes, confidence)


@pytest.mark.parametrize("cause", sorted({*CAUSES} - {"gpu_fault", "node_failed"}))
def test_no_node_is_left_out_for_what_is_no_fault_of_its_hardware(cause: str) -> None:
    lines = (OFF, ECC, NODE, LATE, "n7 kernel: nvme nvme0: controller is down")
    assert step_after(found(cause, *lines, nodes=("n7",))).action is not Action.RESTART_WITHOUT


def test_the_node_that_prints_the_failure_of_another_one_is_not_blamed(tmp_path: Path) -> None:
    line = "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO NODE FAILURE, SEE LOG ***\n"
    best = report(tmp_path, {"job.log": line}).diagnoses[0]
    assert (best.cause, best.nodes, best.next) == ("node_failed", (), NextStep(Action.RESTART, (), 0.85))


def test_the_machine_that_keeps_the_kernel_logs_of_others_is_not_blamed(tmp_path: Path) -> None:
    line = f"mgmt: Nov 22 16:14:51 n7 kernel: {OFF}\n"
    best = report(tmp_path, {"job.log": line}).diagnoses[0]
    assert best.next == NextStep(Action.RESTART_WITHOUT, ("n7",), 0.95)


@pytest.mark.parametrize(("nodes", "lines", "step"), [
    (1, (f"n7:77:80 [0] NCCL WARN Cuda failure 214 '{ECC}'",), NextStep(Action.RESET_GPU, ("n7",), 0.85)),
    (2, (f"n7:77:80 [0] NCCL WARN Cuda failure 214 '{ECC}'",), NextStep(Action.RESTART_WITHOUT, ("n7",), 0.95)),
    (1, (f"Nov 22 16:14:51 n7 kernel: {OFF}",), NextStep(Action.REBOOT, ("n7",), 0.95)),
    (1, (NODE,), NextStep(Action.RESTART, (), 0.85)),
])  # fmt: skip
def test_a_job_on_one_node_is_not_restarted_without_it(
    tmp_path: Path, nodes: int, lines: tuple[str, ...], step: NextStep
) -> None:
    said = f"n7:77:80 [0] NCCL INFO comm 0x1 rank 0 nRanks {8 * nodes} nNodes {nodes} localRanks 8 localRank 0 MNNVL 0"
    assert report(tmp_path, {"job.log": "\n".join((said, *lines, ""))}).diagnoses[0].next == step
