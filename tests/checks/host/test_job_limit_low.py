"""NC605: limits under which no job runs, those of a launched one; the defaults of every distribution are healthy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncheck.facts.environment import Assignment
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts, SharedMemory
from ncheck.facts.login import IdentityFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.host.job_limit_low import job_limit_low

MIB, GIB = 2**20, 2**30
SHM = SharedMemory(GIB, GIB)


def node(user: int = 1000, container: str = "", gpus: int = 0, **limits: Any) -> dict[str, Facts]:
    boards = tuple(Gpu(index, "H100", memory_total=80 * GIB) for index in range(gpus))
    return {
        "n1": {
            LimitsFacts: LimitsFacts(None, SHM, **limits),
            IdentityFacts: IdentityFacts("n1", "b00t", "net:[4026531840]", user),
            InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {}, container),
            GpuFacts: GpuFacts(boards, "550", "12.4", "nvml") if boards else Absent("no NVIDIA GPU"),
            RanksFacts: Absent("no job"),
        }
    }


def messages(nodes: dict[str, Facts]) -> list[str]:
    return [finding.message for finding in judge([job_limit_low], nodes).findings]


def test_few_open_files_are_an_error_with_a_line_that_allows_more() -> None:
    fix = r"printf '* soft nofile 1048576\n* hard nofile 1048576\n' | sudo tee /etc/security/limits.d/90-nofile.conf"
    assert judge([job_limit_low], node(open_files=64)).findings == [
        Finding("NC605", "job-limit-low", Severity.ERROR, ("n1",),
                "open files (nofile) limited to 64; a job needs 1024", (), fix),
    ]  # fmt: skip


def test_few_open_files_that_are_enough_for_the_ranks_of_a_job_are_a_warning() -> None:
    enough = "open files (nofile) limited to 512; enough for this job, a larger one needs 1024"
    few = "open files (nofile) limited to 512; a job needs 1024"
    for size, gpus, found in (
        (2, 0, (Severity.WARNING, enough)),
        (16, 8, (Severity.WARNING, enough)),
        (64, 8, (Severity.ERROR, few)),
        (105, 0, (Severity.ERROR, few)),
    ):
        nodes = {"n1": {**node(open_files=512, gpus=gpus)["n1"], RanksFacts: RanksFacts(size, (0,))}}
        assert [(one.severity, one.message) for one in judge([job_limit_low], nodes).findings] == [found], (size, gpus)
    kernels_own = {**node(open_files=1024)["n1"], RanksFacts: RanksFacts(100_000, (0,))}
    assert messages({"n1": kernels_own}) == []


def test_each_limit_has_a_least() -> None:
    assert messages(node(processes=100)) == ["processes and threads (nproc) limited to 100; a job needs 512"]
    assert messages(node(address_space=GIB)) == ["address space (as) limited to 1024 MiB; a job needs 4096 MiB"]
    assert messages(node(cpu_seconds=60)) == ["CPU time of each process (cpu) limited to 60 s; a job needs 604800 s"]
    assert messages(node(file_size=MIB)) == ["the size of a file (fsize) limited to 1 MiB; a job needs 1024 MiB"]
    assert messages(node(stack=128 * 1024)) == [
        "the stack of each thread (stack) limited to 128 KiB; a job needs 1024 KiB"
    ]
    assert messages(node(data=GIB)) == ["memory of each process (data) limited to 1024 MiB; a job needs 4096 MiB"]
    assert messages(node(stack=8 * MIB, data=64 * GIB)) == []


def test_where_a_file_sets_the_limit_the_fix_edits_it_in_a_container_too() -> None:
    nodes = node(container="docker", stack=128 * 1024, cpu_seconds=60)
    set_in = {"stack": (Assignment("~/.bashrc", 3, ("stack",)),)}
    nodes["n1"] = {**nodes["n1"], LimitsFacts: replace(nodes["n1"][LimitsFacts], set_in=set_in)}  # type: ignore[type-var]
    edit = "/^[[:space:]]*ulimit( +-[SH]+)* +-[SH]*s +[0-9a-z]+ *(#.*)?$/d"
    assert [(one.fix, one.evidence) for one in judge([job_limit_low], nodes).findings] == [
        ("start the container again with --ulimit cpu=-1", ()),
        (f"sed -i --follow-symlinks -E '{edit}' ~/.bashrc", ("set in ~/.bashrc, line 3",)),
    ]


def test_an_address_space_smaller_than_the_memory_of_the_gpus_is_too_small() -> None:
    assert messages(node(gpus=8, address_space=64 * GIB)) == [
        "address space (as) limited to 65536 MiB; a job needs 655360 MiB"
    ]
    assert messages(node(gpus=0, address_space=64 * GIB)) == []


def test_a_container_is_started_with_another_limit() -> None:
    fixes = [
        one.fix for one in judge([job_limit_low], node(container="docker", open_files=64, cpu_seconds=60)).findings
    ]
    assert fixes == [
        "start the container again with --ulimit nofile=1048576", "start the container again with --ulimit cpu=-1"
    ]  # fmt: skip


def test_it_is_silent_about_the_defaults_of_distributions_and_about_root_where_it_is_exempt() -> None:
    ubuntu, rocky = node(open_files=1024, processes=127521), node(open_files=1024, processes=4096)
    for nodes in (node(), ubuntu, rocky, node(user=0, processes=100), node(gpus=8)):
        assert [verdict.outcome for verdict in judge([job_limit_low], nodes).verdicts] == [Outcome.PASSED]


def test_limits_that_could_not_be_read_are_unknown() -> None:
    nodes = {"n1": {**node()["n1"], LimitsFacts: Unread("no answer")}}
    assert [verdict.outcome for verdict in judge([job_limit_low], nodes).verdicts] == [Outcome.UNKNOWN]
