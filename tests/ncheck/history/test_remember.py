"""What a run says of its own past, and `ncheck history`: on recordings, through the real commands."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from itertools import cycle
from pathlib import Path
from shutil import copy

import pytest
from ncheck.cli.main import main
from ncheck.history.entry import SETUP, Entry, entry_of
from ncheck.history.store import History
from ncheck.hook import examiner

from tests.recorded.replayed import FIXTURES, replayed

Ncheck = Callable[..., tuple[int, str]]
BEGAN = datetime(2026, 11, 1, 12).astimezone().timestamp()
DAY = 86_400.0


def recorded(folder: Path, cluster: str, days: float | None) -> str:
    """Copy a recording; it began so many days after BEGAN, None: it does not say."""
    began = "" if days is None else f'"began": {BEGAN + days * DAY}, '
    folder.mkdir()
    for path in (FIXTURES / cluster).iterdir():
        text = re.sub(r'"began": [^,]+, ', "", path.read_text(encoding="ascii"), count=1)
        (folder / path.name).write_text(text.replace('"evidence": {', f'"evidence": {{{began}', 1), encoding="ascii")
    return str(folder)


@pytest.fixture
def ncheck(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ncheck:
    """Return a function that runs a command, and returns its exit code and what it prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: object) -> tuple[int, str]:
        code = main([str(word) for word in words])
        return code, "".join(capsys.readouterr())

    return run


def news(output: str) -> list[str]:
    return [line.partition("history: ")[2] for line in output.splitlines() if "history: " in line]


@pytest.mark.slow
def test_a_run_says_what_is_new_and_the_history_shows_all_of_it(tmp_path: Path, ncheck: Ncheck) -> None:
    path = tmp_path / "cluster.db"
    said = []
    for at, (cluster, days) in enumerate((
        ("healthy-4x8-h100", 0), ("port-polling", 2), ("port-polling", 3), ("healthy-4x8-h100", 4),
        ("port-polling", 12),
    )):  # fmt: skip
        code, output = ncheck("replay", recorded(tmp_path / f"r{at}", cluster, days), "--history", path)
        said.append((code, news(output)))
    assert said == [
        (0, []),
        (1, []),
        (1, ["gpu02: NC402 since 2026-11-03"]),
        (0, [
            "gpu02: no longer NC402, which it had since 2026-11-03",
            "gpu[01-04]: not compared with the past, which needs 8 earlier runs that measured the same: there is 1",
        ]),
        (1, ["gpu02: second NC402 in 10 days"]),
    ]  # fmt: skip
    setups = {
        (one.kept.place, one.kept.value): (one.first - BEGAN, one.last - BEGAN)
        for one in History(str(path)).spans()
        if (one.kept.node, one.kept.kind) == ("gpu[01-04]", SETUP)
    }
    assert setups["GPU driver", "550.127.08"] == (0, 12 * DAY)
    assert setups["HCA port rate", "8 x 400"] == (0, 4 * DAY)
    assert setups["HCA port rate", "8 x 400 on gpu[01,03-04]; 10, 7 x 400 on gpu02"] == (2 * DAY, 12 * DAY)
    _, text = ncheck("history", "--history", path)
    assert text.startswith("5 runs from 2026-11-01 12:00 to 2026-11-13 12:00, 4 nodes\n")
    assert "NC402 ib-port-polling 2 times (last 2026-11-13)" in text
    assert [line.split() for line in text.splitlines() if line.startswith("gpu[01,")] == [
        ["gpu[01,03-04]", "5", "0", "0", "good"]
    ]
    _, shown = ncheck("history", "gpu02", "--history", path, "-o", "json")
    (node,) = json.loads(shown)["nodes"]
    assert [(one["seen"]["code"], (one["began"] - BEGAN) / DAY) for one in node["incidents"]] == [
        ("NC402", 2),
        ("NC402", 12),
    ]
    assert (node["runs"], node["bad"], node["flaps"], node["state"]) == (5, 3, 1, "bad")
    for form in ("markdown", "html"):
        code, page = ncheck("history", "--history", path, "-o", form)
        assert code == 0
        assert "NC402 ib-port-polling" in page
    code, several = ncheck("history", "gpu[01-02]", "gpu04", "--history", path)
    assert [line for line in several.splitlines() if line.startswith("gpu0") and ": bad" in line] == [
        "gpu02: bad in 3 of 5 runs, unreached in 0, bad now",
        "gpu01: bad in 0 of 5 runs, unreached in 0, good now",
        "gpu04: bad in 0 of 5 runs, unreached in 0, good now",
    ]


def test_a_run_that_is_in_the_history_is_not_counted_twice(tmp_path: Path, ncheck: Ncheck) -> None:
    folder, path = recorded(tmp_path / "r", "port-polling", 1), tmp_path / "cluster.db"
    ncheck("replay", folder, "--history", path)
    code, output = ncheck("replay", folder, "--history", path)
    assert (code, news(output)) == (1, ["it has this run already"])


@pytest.mark.slow
def test_a_job_that_ended_is_noted_with_the_links_that_counted_since_the_run_before(
    tmp_path: Path, ncheck: Ncheck
) -> None:
    path = tmp_path / "cluster.db"
    folders = [Path(recorded(tmp_path / f"r{at}", "healthy-4x8-h100", at)) for at in range(3)]
    file = folders[1] / "gpu03.json"
    file.write_text(file.read_text().replace('"link_downed": 1', '"link_downed": 4', 1))
    _, first = ncheck("replay", folders[0], "--history", path, "--job-ended", 0)
    _, second = ncheck("replay", folders[1], "--history", path, "--job-ended", 137)
    assert [one.partition(":")[0] for one in news(first)] == ["the job was not noted"]
    assert news(second)[-1] == "gpu[01-04]: a job ended with 137; errors since the run before: gpu03 mlx5_0:1 3"
    _, third = ncheck("replay", folders[2], "--history", path, "--job-ended", 0)
    assert news(third)[-1] == "gpu[01-04]: a job ended with 0; no link counted errors since then"
    shown = json.loads(ncheck("history", "--history", path, "-o", "json")[1])
    assert [(one["link"], one["failed"], one["stands_out"]) for one in shown["suspects"]] == [
        (["gpu03", "mlx5_0:1"], 1, False)
    ]
    assert len(shown["runs"]) == 3
    _, unkept = ncheck("replay", folders[1], "--job-ended", 1)
    assert news(unkept) == ["the job was not noted: --job-ended needs --history FILE"]


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["damaged", "folder", "undated"])
def test_whatever_is_wrong_with_the_file_costs_a_sentence_and_never_the_run(
    tmp_path: Path, broken: str, ncheck: Ncheck
) -> None:
    path = tmp_path / "cluster.db"
    if broken == "damaged":
        path.write_bytes(b"SQLite format 3\0" + b"\xff" * 9000)
    if broken == "folder":
        path.mkdir()
    folder = recorded(tmp_path / "r", "healthy-4x8-h100", None if broken == "undated" else 1)
    code, output = ncheck("replay", folder, "--history", path)
    (sentence,) = news(output)
    assert (code, sentence.partition(":")[0]) == (0, "not in the history")


def test_what_cannot_be_shown_is_a_usage_error(tmp_path: Path, ncheck: Ncheck) -> None:
    path = tmp_path / "cluster.db"
    ncheck("replay", recorded(tmp_path / "r", "healthy-4x8-h100", 1), "--history", path)
    for words, message in (
        (("history",), "name the file"),
        (("history", "--history", tmp_path / "none"), "does not exist"),
        (("history", "gpu99", "--history", path), "no run in"),
        (("history", "gpu[01-06]", "--history", path), "examined gpu[05-06];"),
        (("history", "gpu[01-", "--history", path), "is not a host range"),
        (("history", "--oldest", 2, "a", "b", "--history", path), "takes one nodes file"),
        (("replay", tmp_path / "r", "--history", path, "-o", f"json={path}"), "is written by --history too"),
    ):
        code, output = ncheck(*words)
        assert (code, message in output) == (2, True)


def test_the_nodes_to_examine_next_are_those_that_no_run_tried_for_longest(tmp_path: Path, ncheck: Ncheck) -> None:
    """A node that no run ever tried comes first; one that is dead takes its turn, and not each turn."""
    path, nodes = tmp_path / "cluster.db", tmp_path / "nodes.txt"
    nodes.write_text("gpu[01-06] slots=8  # the rack\n")
    history, turns = History(str(path)), []
    for time in range(1, 5):
        code, chosen = ncheck("history", "--oldest", 2, nodes, "--history", path)
        assert code == 0
        turns.append(chosen)
        names = {"gpu[01-02]": ("gpu01", "gpu02"), "gpu[03-04]": ("gpu03", "gpu04"), "gpu[05-06]": ("gpu05", "gpu06")}
        alive, dead = names[chosen.split()[0]]
        history.add(Entry(time, "check", nodes={"good": (alive,), "unreached": (dead,)}), 90)
    rest = "slots=8  # the rack\n"
    assert turns == [f"gpu[01-02] {rest}", f"gpu[03-04] {rest}", f"gpu[05-06] {rest}", f"gpu[01-02] {rest}"]
    assert ncheck("history", "--oldest", 3, "--history", path) == (0, "gpu03\ngpu04\ngpu05\n")
    assert ncheck("history", "--oldest", 3, nodes, "--history", tmp_path / "none" / "cluster.db")[0] == 2


@pytest.mark.slow
def test_a_node_that_was_left_out_is_in_the_history_with_its_fault(tmp_path: Path, ncheck: Ncheck) -> None:
    path = tmp_path / "cluster.db"
    for days in (1, 2):
        folder = recorded(tmp_path / f"r{days}", "port-polling", days)
        code, output = ncheck("replay", folder, "--drop-bad", "--history", path)
    assert (code, news(output)) == (0, ["gpu02: NC402 since 2026-11-02"])


HOSTILE = (None, "\x1b[31m\x07\n|<script>", b"\xff\xfe", -1, 10**18, 1e308, float("inf"), "9" * 5000, "n[1-99999999]")
COLUMNS = {
    "run": "time nodes kind host version exit_code checks good bad unknown unreached",
    "finding": "run code name severity nodes summary hardware",
    "figure": "run nodes place what value unit usual",
    "kept": "node kind place value detail first last",
}  # fmt: skip


@pytest.mark.slow
def test_whatever_somebody_wrote_into_the_file_is_shown_without_escapes_or_refused(
    tmp_path: Path, ncheck: Ncheck
) -> None:
    path, changed = tmp_path / "cluster.db", tmp_path / "changed.db"
    forms = cycle(((), ("gpu02", "-o", "html"), ("-o", "json"), ("--oldest", "3")))
    folder = recorded(tmp_path / "r", "port-polling", 1)
    ncheck("replay", folder, "--history", path)
    for table, columns in COLUMNS.items():
        for column in columns.split():
            for value in HOSTILE:
                copy(path, changed)
                with sqlite3.connect(changed) as base:
                    base.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))  # noqa: S608
                base.close()
                words = next(forms)
                code, output = ncheck("history", "--history", changed, *words)
                assert code in (0, 2), (table, column, value, output)
                assert not {"\x1b", "\x07"} & set(output), (table, column, value)
                assert "<script>" not in output or "html" not in words or code == 2


def test_a_narrow_terminal_shows_every_letter_of_a_name(
    tmp_path: Path, ncheck: Ncheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.db"
    ncheck("replay", recorded(tmp_path / "r", "port-polling", 1), "--history", path)
    monkeypatch.setenv("COLUMNS", "40")
    _, output = ncheck("history", "--history", path)
    assert "gpu02" in output
    assert "…" not in output
    assert max(map(len, output.splitlines())) <= 40


def test_a_run_that_was_interrupted_accuses_no_node_that_it_had_not_reached() -> None:
    whole = replayed("one-node-down")
    assert {state: len(names) for state, names in entry_of(whole).nodes.items()} == {"good": 3, "unreached": 1}
    cut = replace(whole, interrupted=True, bad=(), findings=())
    assert entry_of(cut).nodes == {"unknown": entry_of(whole).of("good")}


def test_a_job_that_checks_itself_waits_for_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process of the job examines all nodes, and the ranks wait for it: it reads no settings of the environment."""
    monkeypatch.setenv("NCHECK_HISTORY", str(tmp_path / "cluster.db"))
    request = {"probe": "", "select": [], "ignore": [], "strict": False, "launcher": "torchrun"}
    assert examiner._settings(request, {}, 10.0).history is None
