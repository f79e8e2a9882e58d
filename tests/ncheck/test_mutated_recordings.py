"""Recordings with wrong values in them: the run goes on, with one verdict for each node and check.

Every mutation is chosen by a seed, so that a failure repeats. By hand, with many more:
NCHECK_MUTATIONS=20000 pytest -n 2 tests/ncheck/test_mutated_recordings.py
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ncheck.errors import RecordingError
from ncheck.facts.learning import learn
from ncheck.fleet.recording import decode, loaded
from ncheck.launchers import LAUNCHERS
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.report import show
from ncheck.settings import Settings
from ncheck.steps.phases import collection_phases

from tests.every_fact import every_fact
from tests.ncheck.within import Place, at, places, put

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[2] / "fixtures"
CLUSTERS = {
    folder.name: {path.name: path.read_text() for path in sorted(folder.glob("*.json"))}
    for folder in sorted(FIXTURES.iterdir())
    if folder.is_dir()
}
MUTATIONS = int(os.environ.get("NCHECK_MUTATIONS", "300"))
AT_ONCE = 10  # mutations of one replay: a replay costs more than they do
REPLAYS = MUTATIONS // AT_ONCE
FORMATS = ("console", "json") if MUTATIONS <= 300 else ("console", "json", "html")

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**64), 10**400, 0.5, -1.0, 1e308, float("nan"), float("inf"), "", " ",
    "0", "-1", "nan", "a\nb", "\x1b[2J", "\u2028", "\x00", "\ud800", "x" * 100_000, "9" * 400, "1e999", [], {}, [None],
    [[]], [{}], {"": None}, {"error": None}, {"error": "no"}, [[[[[[[[[[[[]]]]]]]]]]]], [0] * 70_000,
)  # fmt: skip


def mutated(document: Any, chance: Random) -> Any:
    """Change one value in a recording, mostly inside what a source answered."""
    replies = document["evidence"].get("replies") or {}
    within: Place = ("evidence",)
    if replies and chance.random() < 0.9:
        within = ("evidence", "replies", chance.choice(sorted(replies)))
        within += (
            ("value",) if "value" in at(document, within) else ("stdout",) if "stdout" in at(document, within) else ()
        )
    place = chance.choice(list(places(at(document, within), within)))
    return put(document, place, chance.choice(CHANGES)(at(document, place), chance))


def any_value(_: Any, chance: Random) -> Any:
    return chance.choice(VALUES)


def of_another_type(value: Any, _: Random) -> Any:
    match value:
        case bool() | None:
            return str(value)
        case int() | float():
            return str(value)
        case str():
            return int(value) if value.isdecimal() else [value]
        case list():
            return dict(enumerate(value))
        case _:
            return list(value.items())


def damaged(value: Any, chance: Random) -> Any:
    """Cut, double or repeat a part: a missing key, a duplicate entry, half a line."""
    if isinstance(value, dict) and value:
        gone = chance.choice(list(value))
        return {key: held for key, held in value.items() if key != gone}
    if isinstance(value, list) and value:
        return chance.choice((value * 2, value[:-1], [chance.choice(value), *value]))
    if isinstance(value, str) and value:
        cut = chance.randrange(len(value))
        return chance.choice(
            (value[:cut], value[cut:], value * 2, value[:cut] + chance.choice("\0\n\x1b,:=9-") + value[cut:])
        )
    return -value if isinstance(value, int | float) else value


CHANGES: tuple[Callable[[Any, Random], Any], ...] = (any_value, of_another_type, damaged)


def recording(cluster: str, chance: Random) -> tuple[Evidence, ...]:
    """Return a cluster's evidence after several mutations; one that no recording can hold is not made."""
    documents = {name: json.loads(text) for name, text in CLUSTERS[cluster].items()}
    for _ in range(AT_ONCE):
        name = chance.choice(sorted(documents))
        try:
            document = mutated(documents[name], chance)
            decode(dumped(document), name)
        except RecordingError:
            continue
        if all(document[key] == documents[name][key] for key in ("position", "of")):
            documents[name] = document
    return loaded([(name, dumped(document)) for name, document in documents.items()])


def dumped(document: Any) -> bytes:
    return json.dumps(document).encode()


def hold_questions(evidence: tuple[Evidence, ...], settings: Settings) -> None:
    """Hold that a live run could go on from here: each later phase makes its questions from what was answered."""
    cluster = Cluster.of({one.node: {} for one in evidence})
    cluster = learn(cluster, evidence, every_fact())
    for phase in collection_phases(cluster, every_fact(), settings):
        if phase.questions:
            phase.questions(cluster, 5.0)


@pytest.mark.parametrize("number", range(REPLAYS))
def test_a_mutated_recording_gives_one_verdict_per_node_and_check_and_ends_well(number: int) -> None:
    chance = Random(number)  # noqa: S311  the same in every run
    evidence = recording(sorted(CLUSTERS)[number % len(CLUSTERS)], chance)
    launcher = chance.choice((None, *LAUNCHERS))
    settings = Settings(launcher=launcher, program=("python", "train.py"), drop_bad=chance.random() < 0.2)
    report = judge_again(evidence, settings, Silent())
    judged = [(node, verdict.code) for verdict in report.verdicts for node in verdict.nodes]
    assert len(judged) == len(set(judged)) == len(report.nodes) * len({code for _, code in judged})
    assert [verdict.reason for verdict in report.verdicts if verdict.outcome.value == "crashed"] == []
    assert report.exit_code in (0, 1)
    hold_questions(evidence, settings)
    for form in FORMATS:
        page = io.StringIO()
        show(report, form, page, {"COLUMNS": "120"}, color=False)
        assert page.getvalue().replace("\n", "").isprintable()
