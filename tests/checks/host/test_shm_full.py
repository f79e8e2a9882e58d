"""NC631: shared memory without room for what NCCL passes between GPUs."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.limits import LimitsFacts, SharedMemory
from ncheck.facts.run import JobFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck_checks.host.shm_full import shm_full

MIB = 2**20


def node(shm: SharedMemory | Unread, gpus: int = 8, *, running: bool = False) -> dict[str, Facts]:
    cards = tuple(Gpu(index, "H100") for index in range(gpus))
    card_facts, job = GpuFacts(cards, "550", "12.4", "nvml"), JobFacts(running=running)
    return {"n1": {LimitsFacts: LimitsFacts(None, shm), GpuFacts: card_facts, JobFacts: job}}


def test_one_that_is_small_and_full_is_an_error() -> None:
    assert judge([shm_full], node(SharedMemory(64 * MIB, 0))).findings == [
        Finding("NC631", "shm-full", Severity.ERROR, ("n1",), "shared memory (/dev/shm) has 0 MiB free of 64 MiB", (),
                "ls -lhS /dev/shm", kind="look", summary="shared memory is full"),
    ]  # fmt: skip


def test_it_is_silent_about_a_small_one_skipped_with_one_gpu_or_in_a_job_and_unknown_where_it_could_not_be_read() -> (
    None
):
    cases = (
        node(SharedMemory(64 * MIB, 64 * MIB)), node(SharedMemory(64 * MIB, 0), gpus=1), node(Unread("not mounted")),
        node(SharedMemory(64 * MIB, 0), running=True),
    )  # fmt: skip
    outcomes = [judge([shm_full], case).verdicts[0].outcome for case in cases]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED, Outcome.UNKNOWN, Outcome.SKIPPED]
