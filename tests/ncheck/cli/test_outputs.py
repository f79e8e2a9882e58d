"""-o several times: one report on standard output, the others in files, and nothing is asked for a report in vain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ncheck.cli.main import main

FIXTURES = Path(__file__).parents[3] / "fixtures"
SICK = ("replay", str(FIXTURES / "mixed-nccl"))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(args)
    out, err = capsys.readouterr()
    return code, out, err


def test_files_and_standard_output_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, *SICK, "-o", "html=report.html", "-o", "json=report.json", "-o", "console")
    assert (code, err) == (1, "ncheck: wrote report.html, report.json\n")
    assert "NC201 nccl-version-differs" in out
    assert json.loads(Path("report.json").read_text())["exit_code"] == 1
    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in Path().iterdir()) == ["report.html", "report.json"]


def test_what_the_console_shows_in_detail_is_for_a_file_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, *SICK, "-q", "-o", "console=report.txt", "-o", "json")
    assert (code, json.loads(out)["exit_code"]) == (1, 1)
    assert len(Path("report.txt").read_text().splitlines()) < 3


def test_with_files_alone_standard_output_has_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, *SICK, "-o", "console=report.txt")
    text = Path("report.txt").read_text()
    assert (code, err, text.startswith(out)) == (1, "ncheck: wrote report.txt\n", True)
    assert out.startswith("✗ Not ready: ")
    assert "NC201 nccl-version-differs" in text
    assert all(char.isprintable() or char == "\n" for char in text)


def test_the_columns_of_the_table_are_those_that_are_named_in_that_order(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, *SICK, "-o", "table", "-o", "table=nodes.txt", "--columns", "STATE,node,nccl")
    assert (code, Path("nodes.txt").read_text()) == (1, out)
    heads, *rows, _, _ = (line.split() for line in out.splitlines())
    assert heads == ["STATE", "NODE", "NCCL"]
    assert rows == [
        ["ready", "gpu01", "2.21.5"], ["ready", "gpu02", "2.21.5"], ["failed", "gpu03", "2.20.5"],
        ["ready", "gpu04", "2.21.5"],
    ]  # fmt: skip


def test_columns_of_the_settings_file_are_for_each_table_and_change_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("ncheck.toml").write_text('columns = ["node", "gpus"]')
    plain = told(capsys, *SICK, "--config", "none", "-q")
    assert told(capsys, *SICK, "-q") == plain
    assert told(capsys, *SICK, "-o", "table")[1].splitlines()[0].split() == ["NODE", "GPUS"]


@pytest.mark.parametrize(("words", "why"), [
    (("-o", "json", "-o", "html"), "-o: standard output takes one format, not json and html: write the other"),
    (("-o", "yaml"), "-o: expected one of "),
    (("-o", "yaml=report.yaml"), "-o: expected one of "),
    (("-o", "json="), "-o: it is empty"),
    (("-o", "json=-"), "-o: expected a file; standard output (-) is used by the report"),
    (("-o", "json=gone/report.json"), "-o: gone/report.json: the folder gone does not exist"),
    (("-o", "table", "--columns", "node,rack"), "--columns: 'rack' is not one of node, state, gpus, driver, "),
    (("-o", "table", "--columns", "node,"), "--columns: 'node,' is not a list of names, as in a,b"),
    (("--columns", "node"), "--columns are those of -o table: add it"),
    (("-o", "json=a", "-o", "html=./a"), "-o: ./a is written by -o too: choose another file"),
])  # fmt: skip
def test_what_cannot_be_written_is_refused_before_any_node_is_asked(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    code, out, err = told(capsys, "-H", "nowhere.invalid", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"ncheck: {why}")
    assert list(Path().iterdir()) == []


def test_a_report_is_not_written_over_the_list_of_nodes_or_a_list_of_good_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("nodes.txt").write_text("nowhere.invalid\n")
    code, _, err = told(capsys, "nodes.txt", "-o", "json=nodes.txt")
    assert (code, err) == (2, "ncheck: -o: nodes.txt is the input list and is not overwritten: choose another file\n")
    code, _, err = told(capsys, "nodes.txt", "-o", "json=x", "--good-nodes", "x")
    assert (code, err) == (2, "ncheck: --good-nodes: x is written by -o too: choose another file\n")


def test_a_settings_file_may_choose_a_format_but_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ncheck.toml").write_text('output = "json"\n')
    assert json.loads(told(capsys, *SICK)[1])["exit_code"] == 1
    assert "Not ready: " in told(capsys, *SICK, "-o", "console")[1]
    Path("ncheck.toml").write_text('output = ["console", "json=.bashrc"]\n')
    assert told(capsys, *SICK) == (
        2, "", "ncheck: ncheck.toml: output: a file is not allowed here: give -o FORMAT=FILE as an option of each run\n"
    )  # fmt: skip


def test_the_other_reports_are_written_where_one_cannot_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ncheck.report.html.print_report", full)
    code, out, err = told(capsys, *SICK, "-o", "html=report.html", "-o", "json=report.json", "-o", "console")
    assert (code, err) == (2, "ncheck: -o: report.html: No space left on device\n")
    assert "NC201 nccl-version-differs" in out
    assert [path.name for path in Path().iterdir()] == ["report.json"]
