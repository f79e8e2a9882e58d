"""The history file: what it keeps and gives back, several runs at once, and every way in which it can be unusable."""

from __future__ import annotations

import os
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from ncheck.history.entry import JOB, LINKS, Entry, Figure, Kept, Seen
from ncheck.history.store import History, HistoryError, Span

DAY = 86_400.0
RUN = Entry(
    1_764_000_000.0, "check", "head01", "0.2.0", 1,
    {"good": ("gpu01", "gpu02"), "bad": ("gpu03",), "unknown": (), "unreached": ("gpu04",)},
    checks=("NC402", "NC506"),
    findings=(Seen("NC506", "gpu-xid-reported", "error", ("gpu03",), "Xid 79 of a GPU", hardware=True),),
    kept=(Kept("gpu03", "gpu", "0000:5d:00.0", "GPU-1", "1650"), Kept("gpu03", "boot", "", "b1")),
    figures=(Figure(("gpu01", "gpu02"), "", "all all-reduce", 361.5, "GB/s", 380.0),),
)  # fmt: skip


def later(days: float, **changes: object) -> Entry:
    return replace(RUN, time=RUN.time + days * DAY, **changes)  # type: ignore[arg-type]


def test_what_was_added_comes_back_and_the_same_run_is_added_once(tmp_path: Path) -> None:
    history = History(str(tmp_path / "cluster.db"))
    assert history.add(RUN, 90)
    assert not history.add(later(0, kind="replay"), 90)
    assert history.add(later(1, kept=(Kept("gpu03", "gpu", "0000:5d:00.0", "GPU-1", "1650"),)), 90)
    assert history.runs() == tuple(replace(one, kept=()) for one in (RUN, later(1)))
    gpu, boot = RUN.kept
    assert history.spans() == (Span(boot, RUN.time, RUN.time), Span(gpu, RUN.time, RUN.time + DAY))
    assert (tmp_path / "cluster.db").stat().st_mode & 0o777 == 0o600


def test_a_live_run_is_added_whatever_other_run_its_second_has(tmp_path: Path) -> None:
    """The clock of a report has seconds, and a loop or CI examines the same nodes more than once in one."""
    history = History(str(tmp_path / "cluster.db"))
    added = [history.add(later(0, exit_code=code), 90, live=True) for code in range(3)]
    assert [one and (one.time, one.exit_code) for one in added] == [
        (RUN.time, 0), (RUN.time + 0.001, 1), (RUN.time + 0.001 + 0.001, 2),
    ]  # fmt: skip
    assert history.runs() == tuple(replace(one, kept=()) for one in added if one)
    assert {(one.first, one.last) for one in history.spans()} == {(RUN.time, RUN.time + 0.001 + 0.001)}
    assert history.add(later(0, kind="replay"), 90) is None  # the recording of one of them


def test_a_job_that_ranks_and_launcher_note_is_noted_once(tmp_path: Path) -> None:
    """The first note counts. Ranks may call a node by its host name; a job before or of other nodes is another one."""
    history = History(str(tmp_path / "cluster.db"))
    history.add(later(0, kept=(Kept("10.0.0.3", "host", "", "gpu03"),)), 90)

    def add(nodes: tuple[str, ...], ended: float, began: float) -> bool:
        note = Entry(RUN.time + ended, JOB, exit_code=1, figures=(Figure(nodes, "", LINKS, 8.0, "job"),))
        return history.add(note, 90, live=True, began=RUN.time + began) is not None

    assert [
        add(("gpu02", "gpu03"), ended=60.5, began=5.25),  # by its ranks
        add(("10.0.0.2", "10.0.0.3"), ended=61, began=1),  # the same, by its launcher
        add(("10.0.0.3",), ended=90, began=62),  # the next job
        add(("gpu03",), ended=90.5, began=63.75),
        add(("gpu04",), ended=95, began=1),
    ] == [True, False, True, False, True]
    assert [(one.time - RUN.time, one.kind) for one in history.runs()][1:] == [(60.5, JOB), (90, JOB), (95, JOB)]


def test_runs_that_are_too_old_go_with_all_that_only_they_saw(tmp_path: Path) -> None:
    history = History(str(tmp_path / "cluster.db"))
    for days in (0, 50, 100):
        history.add(later(days, kept=(Kept("gpu03", "boot", "", f"b{days}"),)), keep_days=60)
    assert [run.time for run in history.runs()] == [RUN.time + 50 * DAY, RUN.time + 100 * DAY]
    assert [span.kept.value for span in history.spans()] == ["b50", "b100"]


def test_a_run_of_a_clock_that_is_wrong_removes_no_other(tmp_path: Path) -> None:
    history = History(str(tmp_path / "cluster.db"))
    for days in (0, 36_500, 1):
        history.add(later(days), keep_days=3650)
    assert [run.time for run in history.runs()] == [RUN.time, RUN.time + DAY, RUN.time + 36_500 * DAY]
    for time in (-1.0, float("nan"), 1e300):
        with pytest.raises(HistoryError, match="no valid time"):
            history.add(replace(RUN, time=time), 90)


def test_a_file_in_a_folder_that_nobody_can_write_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.db"
    History(str(path)).add(RUN, 90)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert History(str(path)).runs() == (replace(RUN, kept=()),)


@pytest.mark.slow
def test_several_runs_write_at_the_same_time_and_none_is_lost(tmp_path: Path) -> None:
    program = (
        "import sys; from dataclasses import replace; from tests.ncheck.history.test_store import RUN, History\n"
        "sys.stdin.readline()\n"
        "for at in range(20): History(sys.argv[1]).add(replace(RUN, time=float(sys.argv[2]) + at), 90)\n"
    )
    path = str(tmp_path / "cluster.db")
    writers = [Popen([sys.executable, "-c", program, path, str(first)], stdin=PIPE) for first in (0, 100, 200, 300)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    assert len(History(path).runs()) == 80


def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = tmp_path / "good.db"
    History(str(good)).add(RUN, 90)
    cut, other, text, newer, view = (tmp_path / f"{name}.db" for name in ("cut", "other", "text", "newer", "view"))
    cut.write_bytes(good.read_bytes()[:4096] + b"\0" * 8192)
    text.write_text("gpu01\ngpu02\n" * 100)
    with sqlite3.connect(other) as base:
        base.execute("CREATE TABLE notes (text)")
    view.write_bytes(good.read_bytes())
    with sqlite3.connect(view) as base:
        base.execute("CREATE VIEW endless AS WITH RECURSIVE n AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT * FROM n")
    newer.write_bytes(good.read_bytes())
    with sqlite3.connect(newer) as base:
        base.execute("PRAGMA user_version = 9")
    says = {
        cut: "it is damaged", text: "it is damaged", other: "is no history of ncheck",
        view: "is no history of ncheck",
        newer: "format 9, which is newer",
        tmp_path: "no permission to write it", tmp_path / "none" / "x.db": "no permission to write it",
    }  # fmt: skip
    for path, reason in says.items():
        with pytest.raises(HistoryError, match=reason):
            History(str(path)).add(later(3), 90)
    with pytest.raises(HistoryError, match="does not exist"):
        History(str(tmp_path / "never.db")).runs()
    assert not (tmp_path / "never.db").exists()
    monkeypatch.setattr("ncheck.history.store._PATIENCE", 0.05)
    holder = sqlite3.connect(good, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(HistoryError, match="another run kept it locked"):
        History(str(good)).add(later(3), 90)
    holder.close()
    assert History(str(good)).add(later(3), 90)


def test_a_file_that_another_user_owns_or_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    good, foreign, own_link, foreign_link, victim = (tmp_path / name for name in ("g.db", "f.db", "o", "l.db", "v.db"))
    for path in (good, foreign):
        History(str(path)).add(RUN, 90)
    own_link.symlink_to(good)
    foreign_link.symlink_to(victim)
    if os.getuid():
        pytest.skip("only root can give a file to another user")
    os.chown(foreign, 65534, 65534)
    os.chown(foreign_link, 65534, 65534, follow_symlinks=False)
    assert len(History(str(own_link)).runs()) == 1
    for path, why in ((foreign, "belongs to user 65534, not to you: copy it, and name the copy"),
                      (foreign_link, "is a symbolic link of another user: choose another file")):  # fmt: skip
        for use in (History(str(path)).runs, lambda path=path: History(str(path)).add(later(1), 90)):
            with pytest.raises(HistoryError, match=why):
                use()
    assert not victim.exists()
    (tmp_path / "g.db-journal").symlink_to(victim)
    with pytest.raises(HistoryError, match=r"g\.db-journal belongs to user 0, not to you"):
        History(str(good)).add(later(2), 90)
    assert not victim.exists()


def with_lists(path: Path, lists: list[str]) -> History:
    """Return a history with a run for each of these lists of good nodes, as ncheck would not write them."""
    history = History(str(path))
    for number in range(len(lists)):
        history.add(later(number), 3650)
    with sqlite3.connect(path) as base:
        base.executemany("UPDATE run SET good = ? WHERE id = ?", [(text, at + 1) for at, text in enumerate(lists)])
    return history


@pytest.mark.slow
def test_a_strangers_file_is_bounded_in_nodes_runs_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest runs are read, as many as the bounds allow; what no ncheck wrote is refused with words."""
    wide = with_lists(tmp_path / "wide.db", [f"a{number}n[1-90000]" for number in range(6)])
    assert [run.time for run in wide.runs()] == [RUN.time + 5 * DAY]
    monkeypatch.setattr("ncheck.history.store._MOST_MADE", 2000)
    again = with_lists(tmp_path / "again.db", [f"n[1-{number}],n[{number + 1}-999]" for number in range(1, 7)])
    assert [len(run.findings[0].nodes) for run in again.runs()] == [1, 1]
    monkeypatch.setattr("ncheck.history.store._MOST_USED", 4000)
    same = with_lists(tmp_path / "same.db", ["n[1-999]"] * 6)
    assert len(same.runs()) == 3
    monkeypatch.setattr("ncheck.history.store._MOST_NODES", 500)
    with pytest.raises(HistoryError, match="more than 500 hosts"):
        same.runs()
    monkeypatch.setattr("ncheck.history.store._MOST_ROWS", 3)
    with pytest.raises(HistoryError, match="its table run has more than 3 rows"):
        with_lists(tmp_path / "long.db", ["n1"] * 5).runs()


def test_a_text_that_is_too_long_and_a_query_without_an_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = with_lists(tmp_path / "x.db", ["n1"])
    with sqlite3.connect(tmp_path / "x.db") as base:
        base.execute("UPDATE run SET version = CAST(zeroblob(17 * 1048576) AS TEXT)")
    with pytest.raises(HistoryError, match=r"too big|damaged|more than"):
        history.runs()
    monkeypatch.setattr("ncheck.history.store._SECONDS", -1.0)
    many = with_lists(tmp_path / "y.db", ["n1"])
    with sqlite3.connect(tmp_path / "y.db") as base:
        base.execute(
            "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 100000)"
            " INSERT INTO kept SELECT 'n' || value, 'boot', '', '1', '', 1.0, 1.0 FROM n"
        )
    with pytest.raises(HistoryError, match="took longer than"):
        many.spans()
