"""NC606: what mpirun's daemon needs for its session folder is free, in bytes and in inodes."""

from __future__ import annotations

from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.temporary_folder_full import temporary_folder_full

from .folders import TMP, folder, node

MIB = 2**20


def test_a_full_file_system_is_an_error() -> None:
    assert judge([temporary_folder_full], {"n1": node(folder(TMP, free=512 * 1024))}).findings == [
        Finding("NC606", "temporary-folder-full", Severity.ERROR, ("n1",), f"{TMP} is full: 0.5 MiB free", (),
                "sudo du -xh /tmp | sort -h | tail", kind="look"),
    ]  # fmt: skip


def test_so_is_one_without_inodes_and_the_folder_that_a_variable_names() -> None:
    found = judge([temporary_folder_full], {"n1": node(folder(TMP), folder("/a b", "TMPDIR", files_free=0))}).findings
    assert [(one.message, one.fix) for one in found] == [("/a b (TMPDIR) is full: no inode is free", "df -i '/a b'")]


def test_it_is_silent_about_a_small_one_and_about_one_that_does_not_count_files() -> None:
    nodes = {"n1": node(folder(TMP, free=16 * MIB)), "n2": node(folder(TMP))}
    nodes["n4"] = node(folder("/proc", "TMPDIR", free=0, writable=False))
    nodes["n3"] = node(folder(TMP, files_free=None))  # type: ignore[arg-type]
    assert {verdict.outcome for verdict in judge([temporary_folder_full], nodes).verdicts} == {Outcome.PASSED}


def test_one_that_could_not_be_read_is_unknown() -> None:
    judgement = judge([temporary_folder_full], {"n1": node(Unread("Input/output error"))})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.UNKNOWN]
