"""The next step against real logs of failures: what their threads settled on, read case by case."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from ncheck.model.next_step import Action
from ncheck.triage.causes import CAUSES, SYMPTOM

from tests.corpus.test_hangs import Row, rows, triage

LEAST = 0.95

# What was right after each failure; after all others, something had to be mended first. "" of a job that was well.
SETTLED: dict[str, str] = {
    case: action
    for action, cases in {
        "": "060 061 062 078 079 165 h06 h07",
        # killed, its terminal closed, a race that is rare, a name that is there a minute later, or not known
        "restart": "055 057 125 135 145 146 p05 p51 p80",
        "reset-gpu": "081 082 083 p19",
        "reboot": "086 p20",
        "ticket": "112 140 p53 p66",
        # which ranks are missing or late, and their logs say why
        "look": "p04 p09 p10 p12 p16 p21 p34 p76 p79 p84",
    }.items()
    for case in cases.split()
}
# More than one is right.
ALSO = {"p19": ("reboot",), "140": ("fix-first",), "p66": ("fix-first",)}


def right(row: Row) -> Collection[str]:
    """Return the words that are right. Where a log does not decide, so are looking, trying again, and no answer.

    So is the word of a cause that a careful reader could give.
    """
    case = row["case"]
    also = {CAUSES.get(cause, SYMPTOM).action.value for cause in row["also_ok"]}
    open_ = () if row["decidable_from_log"] else ("look", "restart", "")
    return {SETTLED.get(case, "fix-first"), *ALSO.get(case, ()), *open_, *also}


def given(row: Row) -> str:
    found = triage(row).diagnoses
    return found[0].next.action.value if found else ""


def test_the_next_step_is_what_the_thread_settled_on() -> None:
    steps = {row["case"]: (given(row), right(row)) for row in rows()}
    wrong = {case: (step, sorted(good)) for case, (step, good) in steps.items() if step not in good}
    assert len(wrong) <= (1 - LEAST) * len(steps), wrong


@pytest.mark.parametrize("action", [Action.STOP, Action.RESTART_WITHOUT], ids=lambda one: one.value)
def test_no_job_is_stopped_and_no_node_left_out_by_mistake(action: Action) -> None:
    steps = {row["case"]: given(row) for row in rows()}
    assert [case for case, step in steps.items() if step == action and SETTLED.get(case) != action] == []
