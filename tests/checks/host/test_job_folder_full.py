"""NC646: a folder of the job with little room."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.job_folder_full import job_folder_full

from .storage import CURRENT, DATA, GIB, HOME, NFS, messages, named, node, outcomes


def test_a_full_home_is_named_on_one_node_too() -> None:
    assert judge([job_folder_full], {"n1": node(replace(HOME, free=300 * 2**20))}).findings == [
        Finding("NC646", "job-folder-full", Severity.WARNING, ("n1",), "/home/me (home): 300 MiB free", (),
                "df -h /home/me; df -i /home/me", kind="look"),
    ]  # fmt: skip


def test_a_shared_file_system_that_is_full_is_one_finding_and_inodes_count_too() -> None:
    nodes = [node(replace(HOME, on=NFS, free=free)) for free in (2**20, 2**19)]
    assert messages(judge([job_folder_full], named(*nodes))) == {"/home/me (home): 512 KiB free": ("n1", "n2")}
    assert messages(judge([job_folder_full], named(node(replace(CURRENT, files_free=3))))) == {
        "/work (current folder): 3 files (inodes) free": ("n1",)
    }


def test_it_is_silent_where_there_is_room_or_nothing_is_written() -> None:
    for folder in (
        HOME,
        replace(HOME, free=GIB, files_free=None),
        replace(HOME, size=64 * 2**20, free=60 * 2**20),
        replace(HOME, free=0, writable=False),
        replace(HOME, free=0, hangs=True),
        replace(DATA, free=0, files_free=0, writable=True),
    ):
        assert outcomes(judge([job_folder_full], named(node(folder)))) == [Outcome.PASSED]
