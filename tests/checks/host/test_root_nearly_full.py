"""NC654: a root file system with little room, where no other finding tells it."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.folders import Folder, FolderFacts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.host.root_nearly_full import root_nearly_full

GIB = 2**30
ROOT = Folder("/", free=GIB // 2, size=100 * GIB, kind="ext4")
HOME = Folder("/home/ada", free=GIB * 700, size=900 * GIB, kind="nfs4")


def judged(root: Folder | Unread, home: Folder = HOME) -> Judgement:
    shm = Folder("/dev/shm", free=GIB, size=GIB)  # noqa: S108  a name
    return judge([root_nearly_full], {"n1": {FolderFacts: FolderFacts((), home, shm, root)}})


def test_little_room_is_a_warning() -> None:
    assert judged(ROOT).findings == [
        Finding("NC654", "root-nearly-full", Severity.WARNING, ("n1",),
                "the root file system has 512 MiB of 100 GiB free", (), "df -h /; df -i /", kind="look",
                summary="the root file system is almost full"),
    ]  # fmt: skip


def test_room_a_small_disk_that_is_empty_a_read_only_one_and_that_of_the_home_folder_are_no_findings() -> None:
    for root, home in (
        (replace(ROOT, free=2 * GIB), HOME),
        (replace(ROOT, size=GIB), HOME),
        (replace(ROOT, free=0, read_only=True), HOME),
        (ROOT, replace(ROOT, path="/root")),
    ):
        judgement = judged(root, home)
        assert ([one.outcome for one in judgement.verdicts], judgement.findings) == ([Outcome.PASSED], [])
    assert [one.outcome for one in judged(Unread("/: it hangs")).verdicts] == [Outcome.UNKNOWN]
