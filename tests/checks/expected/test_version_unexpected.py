"""NC903: versions are compared part by part; what is not installed is not the expected version."""

from __future__ import annotations

import pytest
from ncheck.facts.expected import ExpectedFacts, fits
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.steps.judge import judge
from ncheck_checks.expected.version_unexpected import version_unexpected as check

from tests.checks.expected.nodes import said

NODE: Facts = {
    GpuFacts: GpuFacts((), "550.54.15", "12.4", "nvml"),
    LoadedNcclFacts: LoadedNcclFacts("2.21.5", "/usr/lib/libnccl.so.2"),
    MpiFacts: MpiFacts("Open MPI", "4.1.4"),
    HorovodFacts: Absent("no horovodrun"),
    InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.10.12", "python3 on PATH", {"torch": "2.3.0+cu121"}),
}
RIGHT = {"driver": "550", "cuda": ">=12.2", "nccl": "2.21.5", "mpi": "4.1", "python": "3.10", "torch": ">=2.3"}


def node(expected: dict[str, str], changed: Facts | None = None) -> dict[str, Facts]:
    return {"n1": {**NODE, ExpectedFacts: ExpectedFacts(versions=expected), **(changed or {})}}


@pytest.mark.parametrize(
    ("version", "expected", "is_it"),
    [
        ("550.54.15", "550", True),
        ("550.54.15", "55", False),
        ("2.21.5", "2.21.5", True),
        ("2.21.5", "2.21.50", False),
        ("2.21.5", "2.21.5.1", False),
        ("2.3.0+cu121", "2.3.0", True),
        ("2.10.0", ">=2.9", True),
        ("2.9", ">=2.9.1", False),
        ("4.1.0rc1", ">=4.1.0", True),
        ("4.1.0rc1", "4.1.0rc2", False),
    ],
)
def test_versions_are_compared_part_by_part(version: str, expected: str, is_it: bool) -> None:  # noqa: FBT001  of a table
    assert fits(version, expected) is is_it


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"nccl": "2.19"}, "NCCL 2.21.5, expected 2.19"),
        ({"driver": ">=560"}, "NVIDIA driver 550.54.15, expected at least 560"),
        ({"cuda": "12.8"}, "CUDA of the driver 12.4, expected 12.8"),
        ({"mpi": "5"}, "MPI 4.1.4, expected 5"),
        ({"horovod": "0.28"}, "no Horovod, expected 0.28"),
        ({"python": "3.11"}, "Python 3.10.12, expected 3.11"),
        ({"torch": "2.4"}, "torch 2.3.0+cu121, expected 2.4"),
        ({"deepspeed": "0.14"}, "no deepspeed, expected 0.14"),
    ],
)
def test_another_version_is_an_error(expected: dict[str, str], message: str) -> None:
    assert said(judge([check], node({**RIGHT, **expected}))) == ("failed", [message])


def test_the_driver_of_amds_gpus_is_called_amds_and_has_no_cuda() -> None:
    amd: Facts = {GpuFacts: GpuFacts((), "6.8.5", "", "amd-smi", vendor="AMD", rocm="6.2")}
    (found,) = judge([check], node({"driver": "550"}, amd)).findings
    assert (found.message, found.fix) == ("AMD driver 6.8.5, expected 550", "amd-smi version")
    assert said(judge([check], node({"cuda": "12.4"}, amd))) == ("failed", ["no CUDA of the driver, expected 12.4"])


def test_each_wrong_version_is_a_finding_of_its_own() -> None:
    found = said(judge([check], node({"nccl": "2.19", "torch": "2.4"})))
    assert found == ("failed", ["NCCL 2.21.5, expected 2.19", "torch 2.3.0+cu121, expected 2.4"])


def test_what_could_not_be_read_is_unknown() -> None:
    assert said(judge([check], node({"nccl": "2"}, {LoadedNcclFacts: Unread("it hangs")}))) == (
        "unknown",
        ["NCCL: it hangs"],
    )


def test_it_is_silent_where_all_versions_are_right_or_none_is_expected() -> None:
    assert said(judge([check], node(RIGHT))) == ("passed", [""])
    assert said(judge([check], node({}))) == ("skipped", ["no version is expected: --expect nccl=2.21.5"])
