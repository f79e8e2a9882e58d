from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.interpreter import INTERPRETER
from ncheck.facts.learning import facts_of
from ncheck.facts.nccl import NCCL, LoadedNcclFacts, NcclCopiesFacts, NcclCopy, copies, loaded
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

WHEEL = "/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
SYSTEM = "/usr/lib/x86_64-linux-gnu/libnccl.so.2.23.4"


def value(of: object) -> Reply:
    return Reply(Status.OK, value=of)  # type: ignore[arg-type]


def copy(path: str, origin: str, version: object) -> dict[str, object]:
    return {"path": path, "origin": origin, "seen_as": [path], "version": version, "cuda": "12.6"}


def asked(*found: dict[str, object], loads: dict[str, object] | None, packages: Mapping[str, str]) -> dict[Any, Reply]:
    return {
        NCCL: value({"copies": list(found), "loaded": loads}),
        INTERPRETER: value({"path": "/usr/bin/python3", "version": "3.11.2", "packages": dict(packages)}),
    }


def test_every_copy_is_kept_with_its_origin_and_one_that_does_not_say_is_unread(answered: Answered) -> None:
    found = (copy(WHEEL, "wheel", "2.26.2"), copy(SYSTEM, "system", {"error": "cut file"}))
    replies = asked(*found, loads=None, packages={})
    assert copies(answered(replies)) == NcclCopiesFacts(
        (
            NcclCopy(WHEEL, "2.26.2", "wheel", "12.6"),
            NcclCopy(SYSTEM, Unread(f"{SYSTEM}: cut file"), "system", "12.6"),
        )
    )


def test_the_loaded_copy_is_read_with_its_version_as_code_or_in_words(answered: Answered) -> None:
    for version in ("2.26.2", "22602", 22602, "2.26.2+cuda12.6"):
        replies = asked(loads={"version": version, "path": WHEEL}, packages={"torch": "2.6.0"})
        assert loaded(answered(replies)) == LoadedNcclFacts("2.26.2", WHEEL)


def test_the_codes_of_old_versions_have_four_digits(answered: Answered) -> None:
    replies = asked(loads={"version": 2708, "path": WHEEL}, packages={"torch": "1.6.0"})
    assert loaded(answered(replies)) == LoadedNcclFacts("2.7.8", WHEEL)


def test_no_copy_and_nothing_loaded_is_no_nccl(answered: Answered) -> None:
    replies = asked(loads=None, packages={})
    assert loaded(answered(replies)) == Absent("no NCCL that the job's interpreter would load")
    assert copies(answered(replies)) == Absent("no libnccl on this node")


def test_a_copy_in_another_environment_is_not_the_jobs(answered: Answered) -> None:
    replies = asked(copy(WHEEL, "wheel", "2.26.2"), loads=None, packages={})
    assert loaded(answered(replies)) == Absent(
        f"no framework is installed in the interpreter that ncheck used; {WHEEL} belongs to another environment"
    )


def test_the_systems_copy_is_not_taken_for_the_jobs_beside_another_environment(answered: Answered) -> None:
    found = (copy(WHEEL, "wheel", "2.26.2"), copy(SYSTEM, "loader", "2.23.4"))
    replies = asked(*found, loads={"version": "2.23.4", "path": SYSTEM}, packages={})
    assert isinstance(loaded(answered(replies)), Absent)


def test_the_systems_copy_counts_where_it_is_the_only_one(answered: Answered) -> None:
    replies = asked(copy(SYSTEM, "loader", "2.23.4"), loads={"version": "2.23.4", "path": SYSTEM}, packages={})
    assert loaded(answered(replies)) == LoadedNcclFacts("2.23.4", SYSTEM)


def test_a_copy_that_would_not_load_is_unread(answered: Answered) -> None:
    replies = asked(loads={"error": "libcudart.so.12: cannot open"}, packages={"torch": "2.6.0"})
    fact = loaded(answered(replies))
    assert isinstance(fact, Unread)
    assert "libcudart.so.12: cannot open" in fact.reason


@pytest.mark.parametrize("said", [{}, {"copies": []}, {"loaded": None}, {"copies": None, "loaded": None}])
def test_an_answer_that_lacks_a_half_is_not_no_nccl(answered: Answered, said: dict[str, object]) -> None:
    facts = facts_of(answered({NCCL: value(said)}), (LoadedNcclFacts, NcclCopiesFacts))
    assert any(isinstance(facts[fact], Unread) for fact in (LoadedNcclFacts, NcclCopiesFacts))
