"""How fast each node reads the job's data, alone and with all others: only with --storage-probe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import AtMost, Count, Key, Path, Seconds
from ncheck.facts.definition import READING_FILES, Fact
from ncheck.facts.login import LoginFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.fact import Unread
from ncheck.model.phase import NotAsked
from ncheck.text import LONGEST_MESSAGE, moved, printable

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Rates:
    """What one node read at one time, None where there was too little to measure. `large`: bytes per second of a
    large file; `small`: files per second, small ones; `entries`: entries per second of a folder, with their sizes.
    `direct`: the page cache of the node was passed by.
    """

    large: float | None = None
    small: float | None = None
    entries: float | None = None
    direct: bool = False


@dataclass(frozen=True)
class DataRates:
    """The rates of one path, while other nodes were quiet and while all read."""

    path: Path
    alone: Annotated[Rates | Unread, _rates]
    together: Annotated[Rates | Unread, _rates]


@dataclass(frozen=True)
class StorageProbeFacts:
    """One item for each path."""

    paths: Annotated[tuple[DataRates, ...], Key("readings"), AtMost(_MOST)]


@dataclass(frozen=True)
class TimedRead:
    """What was read, and in how many seconds."""

    entries: Count
    listed: Seconds
    small_files: Count
    small_seconds: Seconds
    large_bytes: Count
    large_seconds: Seconds
    direct: bool


STORAGE_PROBE = Answer("storage-probe", shape=StorageProbeFacts)

_MOST_TURNS = 8  # beyond as many nodes, several have the same turn
_UNIT, _LEAST_UNIT = 1.0, 0.3  # seconds of a turn
_PATIENCE = 4.0  # seconds for what hangs, and for the connection
_MOST = 64
# Less is over too soon to be measured.
_LEAST_BYTES, _LEAST_SMALL, _LEAST_ENTRIES = 4 << 20, 8, 50


def _rates(reading: TimedRead | Unread | None) -> Rates | Unread:
    if reading is None:
        return Unread("reading did not end in time")
    if isinstance(reading, Unread):
        return Unread(printable(reading.reason, LONGEST_MESSAGE))
    return Rates(
        _rate(reading.large_bytes, _LEAST_BYTES, reading.large_seconds),
        _rate(reading.small_files, _LEAST_SMALL, reading.small_seconds),
        _rate(reading.entries, _LEAST_ENTRIES, reading.listed),
        reading.direct,
    )


def _rate(count: int, least: int, seconds: float) -> float | None:
    return count / seconds if count >= least and seconds > 0 else None


def rates_by_path(facts: Mapping[str, StorageProbeFacts]) -> dict[str, dict[str, DataRates]]:
    """Return what each node measured, by path and node."""
    found: dict[str, dict[str, DataRates]] = {}
    for node, own in facts.items():
        for one in own.paths:
            found.setdefault(one.path, {})[node] = one
    return found


def rate(measured: DataRates, kind: str, when: str) -> float | None:
    """Return one rate (large, small, entries) of one time (alone, together) that can be compared between nodes.

    A large file that the page cache may have served cannot.
    """
    rates = measured.alone if when == "alone" else measured.together
    if isinstance(rates, Unread) or (kind == "large" and not rates.direct):
        return None
    return {"large": rates.large, "small": rates.small, "entries": rates.entries}[kind]


def shown(kind: str, value: float) -> str:
    """Return a rate for people: "1.2 GB/s", "310 small files/s"."""
    return f"{moved(value)}/s" if kind == "large" else f"{value:.0f} {'small files' if kind == 'small' else 'names'}/s"


def read_paths(settings: Settings) -> tuple[str, ...]:
    """Return what is read: --data, else the folder that ncheck was started in, if it is shared."""
    return settings.data or ((settings.run.started_in,) if settings.run.started_in else ())


def _exempt(cluster: Cluster, settings: Settings) -> Mapping[str, str]:
    if settings.storage_probe and read_paths(settings):
        return {}
    why = "there is nothing to read: name it with --data" if settings.storage_probe else "no --storage-probe"
    return dict.fromkeys(cluster.names, why)


def _questions(cluster: Cluster, settings: Settings, left: float) -> Questions:
    names = [node.name for node in cluster.connected]
    turns = min(_MOST_TURNS, len(names))
    unit = min(_UNIT, (left - _PATIENCE) / (turns + 1))
    if unit < _LEAST_UNIT:
        late = NotAsked(STORAGE_PROBE, "there was no time left for it: give a longer --deadline", failed=True)
        return dict.fromkeys(names, (late,))
    paths: list[JsonValue] = [*read_paths(settings)]
    return {
        name: (
            Answer(
                STORAGE_PROBE.name, (turns + 1) * unit + _PATIENCE,
                {"paths": paths, "place": place, "turn": place % turns, "turns": turns, "unit": unit},
                shape=StorageProbeFacts,
            ),
        )
        for place, name in enumerate(names)
    }  # fmt: skip


FACTS = (
    Fact(
        StorageProbeFacts, (STORAGE_PROBE,), phase=READING_FILES, needs=(LoginFacts,), questions=_questions,
        exempt=_exempt,
    ),
)  # fmt: skip
