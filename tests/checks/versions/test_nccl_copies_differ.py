"""NC202: copies compete only where the job might load either."""

from __future__ import annotations

from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts, NcclCopiesFacts, NcclCopy
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.nccl_copies_differ import nccl_copies_differ

WHEEL = NcclCopy("/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2", "2.21.5", "wheel")
HPCX = NcclCopy("/opt/hpcx/lib/libnccl.so.2", "2.19.3", "environment")
SYSTEM = NcclCopy("/usr/lib/x86_64-linux-gnu/libnccl.so.2.18.3", "2.18.3", "loader")
PYTHON = InterpreterFacts("/opt/venv/bin/python", "3.11.2", "active venv", {"torch": "2.3.1"})


def node(*copies: NcclCopy) -> dict[str, Facts]:
    loaded = LoadedNcclFacts("2.21.5", WHEEL.path, route="DT_RUNPATH of torch's library")
    return {"n1": {NcclCopiesFacts: NcclCopiesFacts(copies), LoadedNcclFacts: loaded, InterpreterFacts: PYTHON}}


def test_a_wheel_and_another_version_on_the_library_path_compete() -> None:
    assert judge([nccl_copies_differ], node(WHEEL, HPCX, SYSTEM)).findings == [
        Finding("NC202", "nccl-copies-differ", Severity.WARNING, ("n1",),
                "NCCL 2.19.3 and 2.21.5 compete for the job; the job loads 2.21.5 from "
                f"{WHEEL.path} (DT_RUNPATH of torch's library)",
                (f"2.21.5 at {WHEEL.path} (wheel)", f"2.19.3 at {HPCX.path} (environment)"), "python3 -m pip list",
                kind="look", summary="several copies of NCCL compete"),
    ]  # fmt: skip


def test_a_rival_whose_version_is_not_known_leaves_the_verdict_unknown() -> None:
    broken = NcclCopy("/opt/x/libnccl.so.2", Unread("not a library"), "environment")
    judgement = judge([nccl_copies_differ], node(WHEEL, broken))
    assert [(verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [
        (Outcome.UNKNOWN, "the version of /opt/x/libnccl.so.2 is unknown: not a library"),
    ]


def test_it_is_silent_about_a_system_copy_beside_the_jobs_own() -> None:
    assert judge([nccl_copies_differ], node(WHEEL, SYSTEM)).findings == []


def test_it_is_silent_about_another_conda_environment() -> None:
    other = NcclCopy("/root/miniconda3/lib/libnccl.so.2.19.3", "2.19.3", "conda")
    own = NcclCopy("/opt/venv/lib/libnccl.so.2.19.3", "2.19.3", "conda")
    found = [judge([nccl_copies_differ], node(WHEEL, conda)).findings for conda in (other, own)]
    assert [len(findings) for findings in found] == [0, 1]


def test_it_is_silent_about_two_copies_of_one_version() -> None:
    twin = NcclCopy("/opt/hpcx/lib/libnccl.so.2", "2.21.5", "environment")
    assert judge([nccl_copies_differ], node(WHEEL, twin)).findings == []


def test_it_is_skipped_where_there_is_no_nccl() -> None:
    none = Absent("no libnccl")
    nodes: dict[str, Facts] = {"n1": {NcclCopiesFacts: none, LoadedNcclFacts: none, InterpreterFacts: PYTHON}}
    assert [verdict.outcome for verdict in judge([nccl_copies_differ], nodes).verdicts] == [Outcome.SKIPPED]


def test_copies_of_nccl_and_of_rccl_do_not_compete() -> None:
    rccl = NcclCopy("/opt/rocm/lib/librccl.so.1", "2.22.3", "environment")
    assert judge([nccl_copies_differ], node(WHEEL, rccl)).findings == []
