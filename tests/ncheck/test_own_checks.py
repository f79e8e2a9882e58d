"""[[check]]: a site's own checks in any language, on real nodes (this machine), judged as ncheck's own are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.errors import SettingsError
from ncheck.settings import make_settings
from ncheck.settings.own_checks import OwnCheck

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "checks"
FIXTURE = Path(__file__).parents[2] / "fixtures" / "healthy-4x8-h100"

# What a check runs, and then its outcome, its reason or message, and its evidence.
COMMANDS: dict[str, tuple[str, str, str, list[str]]] = {
    "X0": ("true", "passed", "", []),
    "X1": ("echo 7 GB are left; echo of 100; exit 1", "warning", "7 GB are left", ["of 100"]),
    "X2": ("echo not mounted >&2; exit 2", "error", "not mounted", []),
    "X3": ("echo no such device; exit 3", "unknown", "no such device", []),
    "X4": (
        "echo off; exit 4", "unknown", "it ended with exit status 4, which is no verdict (0 to 3): off", [],
    ),
    "X5": (
        "no-such-program", "unknown",
        "it ended with exit status 127, which is no verdict (0 to 3): X5: 1: no-such-program: not found", [],
    ),
    "X6": ("kill -9 $$", "unknown", "it ended with exit status -9, which is no verdict (0 to 3)", []),
    "X7": ("""echo '{"status": "failed", "message": "bad", "evidence": ["a", "b"]}'""", "error", "bad", ["a", "b"]),
    "X8": ("""echo '{"status": "skipped", "message": "no disk"}'""", "skipped", "no disk", []),
    "X9": ("""echo '{"status": "passed", "message": "fine"}'; exit 2""", "error", "fine", []),
    "XH": ("""echo '{"status": "warning", "message": "soft"}'; exit 2""", "error", "soft", []),
    "XI": ("""echo '{"status": "unknown", "message": "who knows"}'; exit 1""", "unknown", "who knows", []),
    "XJ": ("""echo '{"status": "failed", "message": "bad"}'; exit 1""", "error", "bad", []),
    "XA": ("""echo '{"message": "half"}'; exit 1""", "warning", "half", []),
    "XB": (
        """echo '{"status": "good"}'""", "unknown",
        "its output begins with { and is not the object that it should be: status: not a value that it can have", [],
    ),
    "XC": ("echo '{'", "unknown", "its output begins with { and is not the object that it should be: Expecting", []),
    "XD": ("exit 2", "error", "check xd", []),
    "XE": ("python3 -c 'print(\"x\" * 9999)'; exit 2", "error", "x" * 400, []),
    "XF": ("printf 'a\\033[31mb\\n'; exit 2", "error", "a\x1b[31mb", []),
    "XG": ("sleep 60", "unknown", "it did not end within 1 s and was killed", []),
}  # fmt: skip


def toml(**commands: str) -> str:
    """Return [[check]] tables of these commands by their codes."""
    return "".join(
        f'[[check]]\ncode = "{code}"\nname = "check-{code.lower()}"\nrun = {json.dumps(run)}\n'
        for code, run in commands.items()
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, of a user with an empty home."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "NCHECK_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def refusal(folder: Path, **flags: str) -> str:
    """Return why there are no settings."""
    with pytest.raises(SettingsError) as error:
        make_settings(flags, os.environ, folder)
    return str(error.value)


def outcomes(path: Path) -> dict[str, tuple[str, str, list[str]]]:
    """Return of each check of a JSON report its severity or outcome, its message or reason, and the evidence."""
    report = json.loads(path.read_text())
    found: dict[str, tuple[str, str, list[str]]] = {
        one["code"]: (one["outcome"], one["reason"], []) for one in report["verdicts"]
    }
    for one in report["findings"]:
        found[one["code"]] = (one["severity"], one["message"], one["evidence"])
    return found


@pytest.mark.slow
def test_the_exit_status_or_the_object_is_the_verdict(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "c.toml").write_text(toml(**{code: row[0] for code, row in COMMANDS.items()}) + "timeout = 1\n")
    options = ["--config", "c.toml", "-o", "json=run.json", "--select", "X"]
    assert main(["local", "--probe", "none", "--record", "run", *options]) == 1
    found = outcomes(here / "run.json")
    longest = {code: len(row[2]) or None for code, row in COMMANDS.items()}  # of a message that Python words
    shown = {code: (kind, message[: longest[code]], lines) for code, (kind, message, lines) in found.items()}
    assert shown == {code: row[1:] for code, row in COMMANDS.items()}
    assert main(["replay", "run", "--config", "c.toml", "-o", "json=again.json", "--select", "X"]) == 1
    assert outcomes(here / "again.json") == found
    out, err = capsys.readouterr()
    assert "\x1b[31mb" not in out + err


@pytest.mark.slow
def test_a_recording_without_the_answer_is_skipped_and_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "c.toml").write_text(toml(X1="true"))
    main(["replay", str(FIXTURE), "--config", "c.toml", "--select", "X1,NC1", "-o", "json=run.json"])
    assert outcomes(here / "run.json")["X1"] == ("skipped", "the recording was made without X1", [])
    capsys.readouterr()


def test_a_found_file_runs_no_check_before_it_is_allowed_and_a_change_in_its_folder_ends_that(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "ncheck.toml").write_text(toml(X1="true"))
    (here / "checks.d").mkdir()
    (here / "checks.d" / "more.toml").write_text(toml(X2="date"))

    def used() -> tuple[tuple[str, str], ...]:
        return tuple((one.code, one.run) for one in make_settings({}, os.environ, here).run.own_checks)

    assert used() == ()
    assert main(["allow"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["check X1 = true", "check X2 = date"]
    assert used() == (("X1", "true"), ("X2", "date"))
    (here / "checks.d" / "more.toml").write_text(toml(X2="touch /tmp/pwned"))
    assert used() == ()
    assert main(["allow"]) == 0
    (here / "checks.d" / "third.toml").write_text(toml(X3="date"))
    assert used() == ()
    capsys.readouterr()


BAD = {
    toml(NC201="true"): "check NC201: code: expected X, then letters and digits, such as X001: NC is ncheck's own, not "
    "'NC201'",
    toml(X1="true") * 2: "check X1 check-x1: another check has this code or this name",
    '[[check]]\ncode = "X1"\nname = "a"\n': "check X1: it has no run",
    '[[check]]\ncode = "X1"\nname = "a"\nrun = ""\n': "check X1: run: expected a shell line of at most 64 kB",
    '[[check]]\ncode = "X1"\nname = "A b"\nrun = "true"\n': "check X1: name: expected words in small letters with - "
    "between them, such as scratch-is-mounted, not 'A b'",
    toml(X1="true") + "root = true\n": "check X1: unknown key 'root'; known: code, name, run, timeout, title, fix",
    toml(X1="true") + "timeout = 0\n": "check X1: timeout: expected a number of seconds above 0, not '0'",
    "check = 1\n": "check: expected tables: [[check]]",
    "".join(toml(**{f"X{number}": "true"}) for number in range(201)): "check X200: more than 200 checks",
}


@pytest.mark.parametrize("text", BAD)
def test_a_table_that_is_wrong_is_named_with_its_check(text: str, here: Path) -> None:
    (here / "c.toml").write_text(text)
    assert refusal(here, config="c.toml") == f"c.toml: {BAD[text]}"


def test_a_file_in_the_folder_has_checks_and_nothing_else(here: Path) -> None:
    (here / "c.toml").write_text("")
    (here / "checks.d").mkdir()
    (here / "checks.d" / "a.toml").write_text('sudo = true\n[[check]]\ncode = "X1"\n')
    with pytest.raises(
        SettingsError, match=r"^c\.toml: checks\.d/a\.toml: 'sudo' is not allowed here, only \[\[check\]\]$"
    ):
        make_settings({"config": "c.toml"}, os.environ, here)


def test_a_file_of_the_folder_that_another_user_could_write_is_refused_also_where_the_settings_were_named(
    here: Path,
) -> None:
    (here / "c.toml").write_text("")
    (here / "checks.d").mkdir()
    (here / "checks.d" / "a.toml").write_text(toml(X1="true"))
    (here / "checks.d" / "a.toml").chmod(0o666)
    refused = "all users can write to it, and it can contain commands that run on the nodes: chmod o-w"
    assert refusal(here, config="c.toml") == f"c.toml: checks.d/a.toml: {refused} checks.d/a.toml"
    (here / "checks.d" / "a.toml").chmod(0o644)
    (here / "checks.d").chmod(0o777)
    assert refusal(here, config="c.toml") == f"c.toml: {refused} checks.d"


def test_what_is_no_file_in_the_folder_is_named_and_an_editors_own_file_is_passed_over(here: Path) -> None:
    (here / "ncheck.toml").write_text("port = 7\n")
    (here / "checks.d").mkdir()
    (here / "checks.d" / ".#a.toml").symlink_to("me@host.1:2")
    assert make_settings({}, os.environ, here).port == 7
    (here / "checks.d" / "b.toml").symlink_to("gone")
    assert refusal(here) == "ncheck.toml: checks.d/b.toml: No such file or directory"
    (here / "checks.d" / "b.toml").unlink()
    (here / "checks.d" / "b.toml").mkdir()
    assert refusal(here).startswith("ncheck.toml: checks.d/b.toml: ")


@pytest.mark.parametrize("name", ["gpus", "nc2", "x1", "nccl-version-differs"])
def test_a_name_that_means_other_checks_is_refused(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "c.toml").write_text(f'[[check]]\ncode = "X1"\nname = "{name}"\nrun = "true"\n')
    assert main(["replay", str(FIXTURE), "--config", "c.toml"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"ncheck: ncheck.toml: check X1 {name}: {name} means other checks already\n")


def test_a_check_that_takes_longer_gets_a_longer_run(here: Path) -> None:
    (here / "c.toml").write_text(toml(X1="true") + "timeout = 120\n")
    assert make_settings({"config": "c.toml"}, os.environ, here).deadline == 240
    assert make_settings({"config": "c.toml", "deadline": "30"}, os.environ, here).deadline == 30


@pytest.mark.slow
def test_two_recordings_are_compared_by_the_checks_of_this_folder(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "ncheck.toml").write_text(
        toml(X1="test -e fine || { echo gone; exit 2; }".replace("fine", str(here / "fine")))
    )
    main(["allow"])
    (here / "fine").touch()
    assert main(["local", "--probe", "none", "--record", "a", "--select", "X"]) == 0
    (here / "fine").unlink()
    assert main(["local", "--probe", "none", "--record", "b", "--select", "X"]) == 1
    capsys.readouterr()
    assert main(["diff", "a", "b"]) == 1
    assert "X1" in capsys.readouterr().out


def test_list_and_explain_know_the_checks_of_this_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "ncheck.toml").write_text((EXAMPLES / "ncheck.toml").read_text())
    main(["allow"])
    capsys.readouterr()
    assert main(["explain", "X001"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# X001 scratch-not-mounted\n")
    assert "    mountpoint -q /scratch || {" in page
    main(["list", "X", "-o", "json"])
    assert [one["code"] for one in json.loads(capsys.readouterr().out)] == ["X001"]


DCGM = {"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [
    {"name": "software", "results": [{"entity_id": 0, "status": "Pass"}]},
    {"name": "pcie", "results": [
        {"entity_id": 3, "status": "Fail", "warnings": [{"warning": "replays", "error_id": 5}]},
        {"entity_id": 4, "status": "Skip"},
    ]},
]}]}}  # fmt: skip
DCGM_3 = {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [
    {"name": "Denylist", "results": [{"gpu_ids": "0,1", "status": "Pass"}]},
    {"name": "NVML Library", "results": [{"gpu_ids": "0,1", "status": "Warn", "warnings": ["old"]}]},
]}]}}  # fmt: skip
TOOLS: list[tuple[dict[str, str], str, tuple[str, str, list[str]]]] = [
    ({}, "XDCGM", ("skipped", "dcgmi is not installed", [])),
    ({}, "XNHC", ("skipped", "nhc is not installed", [])),
    ({"dcgmi": f"echo '{json.dumps(DCGM)}'; exit 226"}, "XDCGM",
     ("error", "1 of 3 tests failed", ["pcie: Fail on GPU 3 replays"])),
    ({"dcgmi": f"echo '{json.dumps(DCGM_3)}'"}, "XDCGM",
     ("warning", "0 of 2 tests failed", ["NVML Library: Warn on GPU 0,1 old"])),
    ({"dcgmi": f"echo '{json.dumps(DCGM_3).replace('Warn', 'Pass')}'"}, "XDCGM", ("passed", "", [])),
    ({"dcgmi": f"echo '{json.dumps(DCGM_3).replace('Warn', 'Skip').replace('Pass', 'Not Run')}'; exit 226"}, "XDCGM",
     ("unknown", "dcgmi diag ran no test: is a GPU in use?", [])),
    ({"dcgmi": "echo Error: cannot connect to the host engine"}, "XDCGM",
     ("unknown", "the output of dcgmi diag cannot be read: Expecting value: line 1 column 1 (char 0)", [])),
    ({"nhc": "exit 0"}, "XNHC", ("passed", "", [])),
    ({"nhc": "echo 'ERROR:  nhc:  Health check failed:  check_fs_mount:  /scratch not mounted'; exit 1"}, "XNHC",
     ("error", "check_fs_mount:  /scratch not mounted", [])),
    ({"nhc": "echo 'ERROR:  nhc:  Unable to read configuration'; exit 2"}, "XNHC",
     ("unknown", "ERROR:  nhc:  Unable to read configuration", [])),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("tools", "code", "wanted"), TOOLS, ids=range(len(TOOLS)))
def test_the_examples_read_what_dcgm_and_nhc_print(
    tools: dict[str, str], code: str, wanted: tuple[str, str, list[str]], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "bin").mkdir()
    for name, script in tools.items():
        (here / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (here / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{here / 'bin'}:{os.environ['PATH']}")
    config = str(EXAMPLES / "ncheck.toml")
    main(["local", "--probe", "none", "--config", config, "--select", code, "-o", "json=run.json"])
    assert outcomes(here / "run.json") == {code: wanted}


def test_the_examples_are_read_whole() -> None:
    made = make_settings({"config": str(EXAMPLES / "ncheck.toml")}, {}, EXAMPLES).run.own_checks
    assert [one.code for one in made] == ["X001", "XDCGM", "XNHC"]
    assert made[0] == OwnCheck(
        "X001", "scratch-not-mounted", "mountpoint -q /scratch || { echo '/scratch is not mounted'; exit 2; }",
        "scratch not mounted", fix="sudo mount /scratch",
    )  # fmt: skip
