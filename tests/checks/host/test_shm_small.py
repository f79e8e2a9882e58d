"""NC604: shared memory matters between the GPUs of one node; a machine without them needs less of it."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts, SharedMemory
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.host.shm_small import shm_small

MIB, GIB = 2**20, 2**30


def node(
    total: int, free: int | None = None, container: str = "", gpus: int = 8, *, running: bool = False
) -> dict[str, Facts]:
    return {
        "n1": {
            LimitsFacts: LimitsFacts(None, SharedMemory(total, total if free is None else free)),
            GpuFacts: GpuFacts(tuple(Gpu(index, "H100") for index in range(gpus)), "550", "12.4", "nvml"),
            JobFacts: JobFacts(running=running),
            InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {}, container),
        }
    }


def without_gpus(total: int, free: int | None = None) -> dict[str, Facts]:
    (facts,) = node(total, free, "docker").values()
    return {"n1": {**facts, GpuFacts: Absent("no NVIDIA device")}}


CONTAINER = "start the container again with --shm-size=1g or --ipc=host"


def found(message: str, fix: str, kind: str, summary: str) -> list[Finding]:
    return [Finding("NC604", "shm-small", Severity.WARNING, ("n1",), message, (), fix, kind=kind, summary=summary)]


def outcomes(nodes: dict[str, Facts]) -> list[Outcome]:
    return [verdict.outcome for verdict in judge([shm_small], nodes).verdicts]


def test_the_default_size_in_a_container_is_reported_with_the_option_for_a_larger_one() -> None:
    assert judge([shm_small], node(64 * MIB, container="docker")).findings == found(
        "shared memory (/dev/shm) has 64 MiB; a job on several GPUs may need 1 GiB",
        CONTAINER,
        "do",
        "shared memory is too small",
    )


def test_on_the_machine_itself_it_is_mounted_larger() -> None:
    assert judge([shm_small], node(64 * MIB)).findings == found(
        "shared memory (/dev/shm) has 64 MiB; a job on several GPUs may need 1 GiB",
        "sudo mount -o remount,size=50% /dev/shm",
        "fix",
        "shared memory is too small",
    )


def test_a_large_but_full_one_is_reported_with_the_command_that_shows_its_files() -> None:
    assert judge([shm_small], node(64 * GIB, 200 * MIB)).findings == found(
        "shared memory (/dev/shm) has 200 MiB free of 65536 MiB", "ls -lhS /dev/shm", "look", "shared memory is full"
    )


def test_it_is_silent_where_there_is_enough_of_it_and_some_of_it_in_use() -> None:
    assert outcomes(node(GIB, GIB - 300 * MIB, "docker")) == outcomes(node(500 * GIB)) == [Outcome.PASSED]


def test_the_default_size_in_a_container_is_no_news_with_one_gpu_or_with_none() -> None:
    assert outcomes(node(64 * MIB, gpus=1)) == outcomes(without_gpus(64 * MIB)) == [Outcome.PASSED]


def test_what_is_too_small_for_a_data_loader_is_reported_without_gpus_too() -> None:
    assert [judge([shm_small], case).findings for case in (without_gpus(16 * MIB), without_gpus(GIB, MIB))] == [
        found(
            "shared memory (/dev/shm) has 16 MiB; one batch of a data loader may need more",
            CONTAINER,
            "do",
            "shared memory is too small",
        ),
        found(
            "shared memory (/dev/shm) has 1 MiB free of 1024 MiB", "ls -lhS /dev/shm", "look", "shared memory is full"
        ),
    ]


def test_what_is_full_beside_several_gpus_is_an_error_but_not_inside_a_job() -> None:
    for total in (64, 65536):
        findings = judge([shm_small], node(total * MIB, MIB)).findings
        assert findings == [
            Finding("NC604", "shm-small", Severity.ERROR, ("n1",),
                    f"shared memory (/dev/shm) has 1 MiB free of {total} MiB", (), "ls -lhS /dev/shm",
                    kind="look", summary="shared memory is full"),
        ]  # fmt: skip
        (warning,) = judge([shm_small], node(total * MIB, MIB, running=True)).findings
        assert warning.severity is Severity.WARNING


def test_gpus_that_could_not_be_read_leave_it_unknown() -> None:
    nodes = node(16 * MIB)
    nodes["n1"] = {**nodes["n1"], GpuFacts: Unread("nvidia-smi hangs")}
    assert outcomes(nodes) == [Outcome.UNKNOWN]


def test_one_that_could_not_be_read_is_unknown() -> None:
    nodes = node(GIB)
    nodes["n1"] = {**nodes["n1"], LimitsFacts: LimitsFacts(None, Unread("not mounted"))}
    assert judge([shm_small], nodes).verdicts == [
        Verdict("shm-small", "NC604", ("n1",), Outcome.UNKNOWN, "not mounted")
    ]
