"""NC644: a shared folder that some nodes mount from elsewhere, or in another manner."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.storage import JobFolder
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.job_folder_differs import job_folder_differs

from .storage import DATA, DISK, NFS, messages, named, node, outcomes


def data(source: str = "fs01:/data", inode: int = 128, changed: int = 1000, *options: str) -> JobFolder:
    mount = replace(NFS, source=source, options=options or NFS.options)
    return replace(DATA, on=mount, inode=inode, changed=changed)


def test_another_export_is_named() -> None:
    nodes = {"n1": node(data()), "n2": node(data("fs01:/old", 9)), "n3": node(data())}
    assert judge([job_folder_differs], nodes).findings == [
        Finding("NC644", "job-folder-differs", Severity.WARNING, ("n2",),
                "/data (--data) comes from fs01:/data on n[1,3], fs01:/old on n2 (2 to 1)", (), "findmnt -T /data",
                kind="look"),
    ]  # fmt: skip


def test_another_server_with_another_folder_is_named_and_another_address_of_one_server_is_not() -> None:
    assert messages(judge([job_folder_differs], named(node(data()), node(data("fs02:/data", 77)), node(data())))) == {
        "/data (--data) comes from fs01:/data on n[1,3], fs02:/data on n2 (2 to 1)": ("n2",)
    }
    addresses = [node(data(f"10.0.0.{number}:/data")) for number in range(1, 4)]
    assert outcomes(judge([job_folder_differs], named(*addresses))) == [Outcome.PASSED] * 3


def test_options_that_change_a_job_are_named() -> None:
    soft = data("fs01:/data", 128, 1000, "rw", "soft", "vers=3")
    assert messages(judge([job_folder_differs], named(node(data()), node(data()), node(soft)))) == {
        "/data (--data) is mounted with hard,vers=4.2 on n[1-2], soft,vers=3 on n3 (2 to 1)": ("n3",)
    }


def test_it_leaves_read_only_and_local_copies_to_others() -> None:
    read_only = data("fs01:/data", 128, 1000, "hard", "ro", "vers=4.2")
    local = replace(DATA, on=DISK)
    assert (
        outcomes(judge([job_folder_differs], named(node(data()), node(read_only), node(local)))) == [Outcome.PASSED] * 3
    )
