"""What a run says of its own past, and `ncheck history`: on recordings, through the real commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.fleet.recording import load, save

from tests.recorded.replayed import FIXTURES

Ncheck = Callable[..., tuple[int, str]]
BEGAN = datetime(2026, 11, 1, 12).astimezone().timestamp()
DAY = 86_400.0


def recorded(folder: Path, cluster: str, days: float | None) -> str:
    """Copy a recording; it began so many days after BEGAN, None: it does not say."""
    began = None if days is None else BEGAN + days * DAY
    save(folder, [replace(one, began=began) for one in load(FIXTURES / cluster)])
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
        (0, ["gpu02: no longer NC402, which it had since 2026-11-03"]),
        (1, ["gpu02: second NC402 in 10 days"]),
    ]
    _, text = ncheck("history", "--history", path)
    assert text.startswith("5 runs from 2026-11-01 12:00 to 2026-11-13 12:00, 4 nodes\n")
    assert "NC402 ib-port-polling 2 times (last 2026-11-13)" in text
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
    assert ncheck("history", "--history", path, "--oldest", 2) == (0, "gpu01\ngpu02\n")


def test_a_run_that_is_in_the_history_is_not_counted_twice(tmp_path: Path, ncheck: Ncheck) -> None:
    folder, path = recorded(tmp_path / "r", "port-polling", 1), tmp_path / "cluster.db"
    ncheck("replay", folder, "--history", path)
    code, output = ncheck("replay", folder, "--history", path)
    assert (code, news(output)) == (1, ["it has this run already"])


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
    ):
        code, output = ncheck(*words)
        assert (code, message in output) == (2, True)
