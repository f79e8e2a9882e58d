"""The history file: one SQLite database, which several runs on one machine may use at the same time.

What stays the same from run to run (a boot, a GPU in its slot, a counter) is one row with the first and the last run
that saw it; the nodes of a run are one folded list for each state. So a cluster of a thousand nodes that is examined
every hour costs some kilobytes a run.
"""

from __future__ import annotations

import math
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ncheck.errors import NcheckError
from ncheck.files import followed
from ncheck.history.entry import JOB, LINKS, STATES, Entry, Figure, Kept, Seen
from ncheck.hostlist import fold, unfold
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable

FORMAT = 1
_DAY = 86_400.0
_PATIENCE = 5.0  # seconds to wait for another run that writes
_LARGEST = 256 * 2**20  # bytes: the oldest runs are removed beyond; and characters of one table that are read
_MOST_NODES = 100_000  # of one list in the file, and of all
_MOST_RUNS = 50_000  # the newest: one an hour for five years
_MOST_MADE, _MOST_USED = 2_000_000, 5_000_000  # names in different lists, and in those of all runs
_MOST_ROWS = 2_000_000  # of one table
_LONGEST = 16 * 2**20  # bytes of one value
_SECONDS = 30.0  # for one query, beside what waits for another run
_LATEST = 250_000_000_000.0  # seconds since 1970, in the year 9892: later ones have no date
_OURS = 0x6E63686B  # "nchk", PRAGMA application_id: the file is ours

_TABLES = """
CREATE TABLE run (id INTEGER PRIMARY KEY, time REAL NOT NULL, nodes TEXT NOT NULL, kind TEXT, host TEXT,
    version TEXT, exit_code INTEGER, checks TEXT, good TEXT, bad TEXT, unknown TEXT, unreached TEXT,
    UNIQUE (time, nodes));
CREATE TABLE finding (run INTEGER NOT NULL, code TEXT, name TEXT, severity TEXT, nodes TEXT, summary TEXT,
    hardware INTEGER);
CREATE INDEX finding_of_run ON finding (run);
CREATE TABLE figure (run INTEGER NOT NULL, nodes TEXT, place TEXT, what TEXT, value REAL, unit TEXT, usual REAL);
CREATE INDEX figure_of_run ON figure (run);
CREATE TABLE kept (node TEXT, kind TEXT, place TEXT, value TEXT, detail TEXT, first REAL, last REAL,
    PRIMARY KEY (node, kind, place, value)) WITHOUT ROWID;
"""


class HistoryError(NcheckError):
    """The history file cannot be used; the text names it and says why."""


@dataclass(frozen=True)
class Span:
    """Something that stayed the same, with the first and the last run that saw it, in seconds since 1970."""

    kept: Kept
    first: float
    last: float


class History:
    """The file. Raises HistoryError where it cannot be used."""

    def __init__(self, path: str) -> None:
        self.path = path

    def prepare(self) -> None:
        """Make the file if there is none, and see whether it can be written."""
        with self._open(new=True) as base, base:
            base.execute("BEGIN IMMEDIATE")

    def add(self, entry: Entry, keep_days: int, *, live: bool = False, began: float | None = None) -> Entry | None:
        """Add a run, and remove what is too old. Return it as it was added; None if it is there already.

        A run is known by its time and its nodes. A `live` one is never there already: where another one has its time,
        it gets the next free millisecond. `began`: of the note of a job, since when it may have run. A newer note of
        one of its nodes is of the same job, whose ranks and whose launcher both make one.
        """
        if not 0 <= entry.time <= _LATEST:
            raise HistoryError(f"the run has no valid time ({entry.time:g} s since 1970)")
        with self._open(new=True) as base, base:
            base.execute("BEGIN IMMEDIATE")
            if began is not None and _noted(base, entry, began):
                return None
            lists = [fold(entry.of(state)) for state in STATES]
            nodes = fold(sorted(chain.from_iterable(entry.nodes.values())))
            same = "SELECT 1 FROM run WHERE time = ? AND nodes = ?"
            while live and base.execute(same, (entry.time, nodes)).fetchone():
                entry = replace(entry, time=entry.time + 0.001)
            added = base.execute(
                "INSERT OR IGNORE INTO run VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    entry.time,
                    nodes,
                    entry.kind,
                    entry.host,
                    entry.version,
                    entry.exit_code,
                    " ".join(entry.checks),
                    *lists,
                ),
            )
            if not added.rowcount:
                return None
            run = added.lastrowid
            base.executemany(
                "INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((run, one.code, one.check, one.severity, fold(one.nodes), one.summary, one.hardware)
                 for one in entry.findings),
            )  # fmt: skip
            base.executemany(
                "INSERT INTO figure VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((run, fold(one.nodes), one.place, one.what, one.value, one.unit, one.usual) for one in entry.figures),
            )
            base.executemany(
                "INSERT INTO kept VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET detail = excluded.detail,"
                " first = min(first, excluded.first), last = max(last, excluded.last)",
                ((one.node, one.kind, one.place, one.value, one.detail, entry.time, entry.time) for one in entry.kept),
            )
            _prune(base, keep_days)
        return entry

    def runs(self) -> tuple[Entry, ...]:
        """Return all runs, the oldest first, without what stays the same from run to run."""
        with self._open() as base:
            names = _Names()
            entries: dict[int, Entry] = {}
            for run, began, _, kind, host, version, exit_code, checks, *lists in _rows(
                base, "run", "itssssisssss", "ORDER BY time DESC"
            ):
                try:
                    states = {state: names.unfolded(text) for state, text in zip(STATES, lists, strict=True)}
                except _TooManyError:
                    if not entries:
                        raise
                    break  # the newest runs count most
                if len(entries) == _MOST_RUNS:
                    break
                entries[run] = Entry(began, kind, host, version, exit_code, states, checks=tuple(checks.split()))
            names.made = names.used = 0
            findings: dict[int, list[Seen]] = {}
            for run, code, name, severity, nodes, summary, hardware in _rows(base, "finding", "isssssi"):
                if run in entries:
                    seen = Seen(code, name, severity, names.unfolded(nodes), summary, bool(hardware))
                    findings.setdefault(run, []).append(seen)
            figures: dict[int, list[Figure]] = {}
            for run, nodes, *values in _rows(base, "figure", "isssfsF"):
                if run in entries:
                    figures.setdefault(run, []).append(Figure(names.unfolded(nodes), *values))
            return tuple(
                replace(entry, findings=tuple(findings.get(run, ())), figures=tuple(figures.get(run, ())))
                for run, entry in reversed(entries.items())
            )

    def spans(self) -> tuple[Span, ...]:
        """Return what stayed the same, by node and kind, the oldest first."""
        with self._open() as base:
            rows = _rows(base, "kept", "ssssstt", "ORDER BY node, kind, place, first")
            return tuple(Span(Kept(*words), first, last) for *words, first, last in rows)

    @contextmanager
    def _open(self, *, new: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connected(new=new)) as base:
                yield base
        except sqlite3.Error as error:
            raise HistoryError(f"{printable(self.path, 300)}: {_reason(error)}") from None
        except (OSError, ValueError, TypeError) as error:
            raise HistoryError(f"{printable(self.path, 300)}: {printable(str(error), 200)}") from None

    def _connected(self, *, new: bool) -> sqlite3.Connection:
        path = followed(Path(self.path))
        for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
            _refuse_of_others(name)
        if not new and not path.exists():
            example = "a run makes it: ncheck nodes.txt --history FILE"
            raise HistoryError(f"{printable(self.path, 300)} does not exist; {example}")
        mode = "mode=rwc" if new else "mode=rw"
        if not new and not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
            mode = "mode=ro&immutable=1"  # to share a file, SQLite would write beside it
        if new:  # made here, so that no link is followed that appears meanwhile
            with suppress(OSError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        base = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_PATIENCE, isolation_level=None)
        _bound(base)
        number = _format(base)
        if number == 0 and new:
            number = _create(base, path)
        if number == FORMAT:
            return base
        base.close()
        newer = f"has format {number}, which is newer than this ncheck reads ({FORMAT})"
        raise HistoryError(f"{printable(self.path, 300)} {newer if number else 'is no history of ncheck'}")


# What a column may hold, by a letter: SQLite takes any value in any column, and the file may be somebody else's.
_KINDS: Mapping[str, Callable[[object], bool]] = {
    "s": lambda value: isinstance(value, str),
    "i": lambda value: isinstance(value, int),
    "f": lambda value: isinstance(value, float) and math.isfinite(value),
    "F": lambda value: value is None or _KINDS["f"](value),
    "t": lambda value: isinstance(value, float) and 0 <= value <= _LATEST,
}


def _rows(base: sqlite3.Connection, table: str, kinds: str, order: str = "") -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table. Raises ValueError at one that no ncheck wrote."""
    fits, size = [_KINDS[kind] for kind in kinds], 0
    for count, row in enumerate(base.execute(f"SELECT * FROM {table} {order}")):  # noqa: S608  our own words
        size += sum(len(value) for value in row if isinstance(value, str))
        if count == _MOST_ROWS or size > _LARGEST:
            most = f"{_MOST_ROWS:,} rows or {_LARGEST >> 20} MiB"
            raise ValueError(f"its table {table} has more than {most}: move it away, and begin a new one")
        if len(row) != len(fits) or not all(fit(value) for fit, value in zip(fits, row, strict=True)):
            raise ValueError(f"its table {table} has a row that ncheck did not write")
        yield row


def _format(base: sqlite3.Connection) -> int:
    """Return the format of a history; 0 of an empty file, or of somebody else's."""
    ours = base.execute("PRAGMA application_id").fetchone()[0] == _OURS
    if base.execute("SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone()[0]:
        return 0
    return int(base.execute("PRAGMA user_version").fetchone()[0]) if ours else 0


def _create(base: sqlite3.Connection, path: Path) -> int:
    """Make the tables in an empty file, unless another run has just made them; return the format."""
    base.execute("PRAGMA auto_vacuum = INCREMENTAL")
    with base:
        base.execute("BEGIN IMMEDIATE")
        if _format(base) or base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return _format(base)
        path.chmod(0o600)
        for statement in (*_TABLES.split(";"), f"PRAGMA application_id = {_OURS}", f"PRAGMA user_version = {FORMAT}"):
            base.execute(statement)
    if not _on_network(path):  # its shared memory needs one machine
        with suppress(sqlite3.OperationalError):  # another run uses the file by now: it stays as it is
            base.execute("PRAGMA journal_mode = WAL")
    return FORMAT


def _on_network(path: Path) -> bool:
    from ncheck.agent.mount_table import mount_of, own_mounts

    on = mount_of(str(path.absolute()), own_mounts())
    return bool(on and on["network"])


def _noted(base: sqlite3.Connection, job: Entry, began: float) -> bool:
    """Return whether the file has a note of one of the job's nodes that is newer than `began`.

    Ranks call a node by its host name, and a launcher as its list does: the file has both names.
    """
    own: dict[str, set[str]] = {}
    for node, _, _, host, *_ in _rows(base, "kept", "ssssstt", "WHERE kind = 'host'"):
        own.setdefault(node, {node}).add(host)

    def called(nodes: Iterable[str]) -> set[str]:
        return set(chain.from_iterable(own.get(node, (node,)) for node in nodes))

    ours, names = called(chain.from_iterable(one.nodes for one in job.figures)), _Names()
    newer = _rows(base, "run", "itssssisssss", f"WHERE kind = '{JOB}' AND time > {began!r}")
    figures = chain.from_iterable(_rows(base, "figure", "isssfsF", f"WHERE run = {run}") for run, *_ in newer)
    return any(what == LINKS and ours & called(names.unfolded(nodes)) for _, nodes, _, what, *_ in figures)


def _prune(base: sqlite3.Connection, keep_days: int) -> None:
    """Remove runs that are older than the newest by `keep_days`, and the oldest tenth while the file is too large.

    A run from the future, of a clock that was wrong, makes none too old.
    """
    newest, oldest = base.execute("SELECT max(time), min(time) FROM run").fetchone()
    newest = min(newest, max(oldest, time.time()))
    limit = newest - keep_days * _DAY
    size, page = base.execute("PRAGMA page_count").fetchone()[0], base.execute("PRAGMA page_size").fetchone()[0]
    if size * page > _LARGEST:
        limit = max(limit, oldest + (newest - oldest) / 10)
    if oldest < limit:
        base.execute("DELETE FROM finding WHERE run IN (SELECT id FROM run WHERE time < ?)", (limit,))
        base.execute("DELETE FROM figure WHERE run IN (SELECT id FROM run WHERE time < ?)", (limit,))
        base.execute("DELETE FROM run WHERE time < ?", (limit,))
        base.execute("DELETE FROM kept WHERE last < ?", (limit,))
        base.execute("PRAGMA incremental_vacuum(1000)")


class _TooManyError(ValueError):
    """The lists of a file name too many nodes."""


class _Names:
    """The nodes of the lists in a file, which may be somebody else's: ten bytes can stand for a hundred thousand."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.lists: dict[str, tuple[str, ...]] = {"": ()}  # most runs have the same nodes: then these are one tuple
        self.made = self.used = 0

    def unfolded(self, text: str) -> tuple[str, ...]:
        """Return the nodes of a list. Raises _TooManyError where these and the ones before take too long to read."""
        names = self.lists.get(text)
        if names is None:
            names = unfold(text, _MOST_NODES)
            self.made += len(names)
            new = sum(name not in self.known for name in names)
            if self.made > _MOST_MADE or len(self.known) + new > _MOST_NODES:
                raise _TooManyError(f"it names too many nodes: more than {_MOST_NODES:,}, or in too many lists")
            names = self.lists[text] = tuple(self.known.setdefault(name, name) for name in names)
        self.used += len(names)
        if self.used > _MOST_USED:
            raise _TooManyError(f"it names nodes more than {_MOST_USED:,} times")
        return names


def _refuse_of_others(path: Path) -> None:
    """Raise ValueError for a file of another user, or a link: it could say anything, or lead anywhere."""
    try:
        status = path.lstat()
    except OSError:
        return
    mine = {0, os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        mine.add(int(os.environ["SUDO_UID"]))
    if status.st_uid not in mine or stat.S_ISLNK(status.st_mode):
        raise ValueError(f"{path.name} belongs to user {status.st_uid}, not to you: copy it, and name the copy")


def _bound(base: sqlite3.Connection) -> None:
    """Bound what a file can cost that another program wrote: the length of a value, the file, the time of a query."""
    if sys.version_info >= (3, 11):
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    ends = time.monotonic() + _SECONDS
    base.set_progress_handler(lambda: time.monotonic() > ends, 100_000)


def _reason(error: sqlite3.Error) -> str:
    """Say what a user can do about it."""
    text = str(error)
    if "locked" in text:
        return f"another run kept it locked for {_PATIENCE:g} s"
    if "readonly" in text or "unable to open" in text:
        return f"no permission to write it, or to its folder ({text})"
    if "interrupted" in text:
        return f"it took longer than {_SECONDS:g} s to read: move it away, and the next run makes a new one"
    if "full" in text:
        return "the file system is full"
    if "malformed" in text or "not a database" in text:
        return f"it is damaged ({text}): move it away, and the next run makes a new one"
    return printable(text, 200)
