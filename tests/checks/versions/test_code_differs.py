"""NC220: commits, then contents. What git and digests agree on is the same code."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.code import CodeFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.code_differs import code_differs as check

ONE, OTHER = "97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d", "cf30153c4c131c8164ee7798e5022d810682e2cb"
CLEAN = CodeFacts("/code", commit=ONE, branch="main", digest="aa", listed={"train.py": "11", "lib.py": "22"})
EDITED = replace(CLEAN, changed={"train.py": "33"}, digest="bb", listed={"train.py": "33", "lib.py": "22"})
PLAIN = CodeFacts("/code", digest="aa", listed=CLEAN.listed)


def nodes(*code: CodeFacts) -> dict[str, Facts]:
    return {f"n{number}": {CodeFacts: own} for number, own in enumerate(code, 1)}


def test_another_commit_is_an_error_on_the_odd_node() -> None:
    behind = replace(CLEAN, commit=OTHER, branch="dev", digest="cc")
    assert judge([check], nodes(CLEAN, CLEAN, behind)).findings == [
        Finding("NC220", "code-differs", Severity.ERROR, ("n3",),
                "the code is at different commits: 97ff6cfd9c86 on n[1-2], cf30153c4c13 on n3 (2 to 1)", (),
                "git -C /code status --short --branch", kind="look", summary="the job's code differs"),
    ]  # fmt: skip


def test_an_edited_file_is_named_on_the_node_that_has_it() -> None:
    assert judge([check], nodes(CLEAN, EDITED, CLEAN)).findings == [
        Finding("NC220", "code-differs", Severity.ERROR, ("n2",), "files differ between n[1,3] and n2: train.py",
                ("changed since the commit on n2: train.py",), "git -C /code status --short --branch", kind="look",
                summary="the job's code differs"),
    ]  # fmt: skip


def test_a_tracked_file_that_is_no_source_file_counts_too() -> None:
    notes = replace(CLEAN, changed={"vocab.txt": "44"})
    assert [one.message for one in judge([check], nodes(CLEAN, notes, CLEAN)).findings] == [
        "files differ between n[1,3] and n2: vocab.txt"
    ]


def test_copies_without_git_are_compared_by_their_contents() -> None:
    other = replace(PLAIN, digest="dd", listed={"train.py": "11"})
    (found,) = judge([check], nodes(PLAIN, PLAIN, other)).findings
    assert (found.message, found.nodes, found.fix) == (
        "files differ between n[1-2] and n3: lib.py", ("n3",), "find /code -name '*.py' -exec sha256sum {} +",
    )  # fmt: skip


def test_files_that_the_nodes_did_not_list_are_not_named() -> None:
    many = replace(PLAIN, listed={})
    (found,) = judge([check], nodes(many, many, replace(many, digest="dd"))).findings
    assert found.message == "files differ between n[1-2] and n3: too many source files to name those that do"


def test_it_is_silent_where_all_have_the_same_code_with_git_or_without_edited_or_not() -> None:
    for same in ((CLEAN, CLEAN), (EDITED, EDITED), (PLAIN, CLEAN), (PLAIN, PLAIN)):
        assert judge([check], nodes(*same)).findings == []
    elsewhere = replace(CLEAN, branch="release")
    assert judge([check], nodes(CLEAN, elsewhere)).findings == []


def test_a_folder_too_large_to_compare_is_unknown_unless_git_calls_it_clean() -> None:
    huge = replace(CLEAN, digest="ee", cut="too many files", listed={})
    assert [one.outcome for one in judge([check], nodes(huge, huge)).verdicts] == [Outcome.PASSED] * 2
    unasked = replace(huge, unasked="no git on PATH")
    judgement = judge([check], nodes(unasked, unasked))
    assert {(one.outcome, one.reason) for one in judgement.verdicts} == {
        (Outcome.UNKNOWN, "the source files were not all compared: too many files")
    }


def test_it_leaves_a_missing_folder_to_another_check() -> None:
    assert judge([check], nodes(CLEAN, CLEAN, CodeFacts("/code", exists=False))).findings == []
