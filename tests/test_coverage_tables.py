"""The tables of coverage: their figures, and that every check and cause that they name exists and says so itself."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import ncheck.triage.live
import pytest
from coverage_tables import BYTEROBUST, LLAMA3, META_RSC, TABLES, Cause, Level, Table
from ncheck.steps.registry import load_checks
from ncheck.triage import across_lines, join, signatures
from ncheck.triage.causes import CAUSES

every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def sources(package: object, *more: object) -> str:
    """Return the code of a package's modules: a cause that triage names is a string in one of them."""
    names = [one.name for one in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]  # type: ignore[attr-defined]
    return "".join(inspect.getsource(module) for module in (*map(import_module, names), *more))  # type: ignore[arg-type]


LIVE, LOGS = sources(ncheck.triage.live, join), sources(signatures) + sources(across_lines)
CODES = {check.code for check in load_checks().checks}


@every_table
def test_what_a_row_names_exists(table: Table) -> None:
    for cause in table.causes:
        assert {*cause.checks} <= CODES, cause
        assert {*cause.live, *cause.logs} <= {*CAUSES}, cause
        assert [name for name in cause.live if f'"{name}"' not in LIVE] == [], cause
        assert [name for name in cause.logs if f'"{name}"' not in LOGS] == [], cause


@every_table
def test_a_row_says_what_is_missed_and_names_nothing_twice(table: Table) -> None:
    for cause in table.causes:
        assert cause.missed, cause
        assert "|" not in cause.missed + cause.name, cause
        for names in (cause.checks, cause.live, cause.logs):
            assert len({*names}) == len(names), cause
        assert not cause.effect or cause.live or cause.logs, cause


def test_the_figures_are_those_of_the_papers() -> None:
    assert [(table.name, table.total) for table in TABLES] == [
        ("llama3", 419), ("byterobust", 55365), ("meta-rsc", None),
    ]  # fmt: skip
    assert {cause.name: cause.count for cause in LLAMA3.causes if (cause.count or 0) > 20} == {
        "Faulty GPU": 148, "GPU HBM3 memory": 72, "Software bug": 54, "Network switch or cable": 35,
        "Host maintenance": 32,
    }  # fmt: skip
    disks = {"Insufficient disk space": 2755, "File-system mount": 1176, "Disk fault": 47}
    assert disks == {cause.name: cause.count for cause in BYTEROBUST.causes if cause.name in disks}
    assert all(cause.count is None for cause in META_RSC.causes)


def test_a_cause_counts_once_at_each_time_and_an_effect_is_not_the_cause() -> None:
    table = Table("t", "T", "cases", "here", (
        Cause("seen at all times", 5, ("NC001",), ("gpu_fault",), ("gpu_fault",)),
        Cause("effect", 3, (), ("node_failed",), ("node_failed",), effect=True),
        Cause("checked, then an effect", 2, ("NC001",), ("node_failed",), effect=True),
        Cause("unseen", 1),
    ))  # fmt: skip
    assert {level.value: table.count_of(level) for level in Level} == {
        "before": 7, "live": 5, "logs": 5, "effect": 5, "not_seen": 1,
    }  # fmt: skip
    assert (table.total, table.named) == (11, 7)
