"""--failed-of: only what failed is checked again, and nothing is called gone that was not proved to be."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from io import StringIO
from pathlib import Path

import ncheck
import pytest
from ncheck.cli.main import main
from ncheck.errors import InventoryError, SettingsError
from ncheck.fleet.recording import load
from ncheck.model.earlier import Earlier
from ncheck.model.evidence import Evidence
from ncheck.model.finding import Outcome, Verdict
from ncheck.model.node import Node
from ncheck.model.report import EarlierProblem, Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.report import junit
from ncheck.report.json import as_json
from ncheck.report.summary import headline, looked_again
from ncheck.report.text import fold_findings
from ncheck.settings import Ignore, Settings
from ncheck.steps.failed_of import narrowed

FIXTURES = Path(__file__).parents[3] / "fixtures"
NCCL = "nccl-version-differs"
NC201 = EarlierProblem("NC201", NCCL, ("gpu03",), ("gpu03",), ("gpu01", "gpu02", "gpu04"))


def judged(nodes: Iterable[Evidence], settings: Settings | None = None) -> Report:
    return judge_again(tuple(nodes), settings or Settings(), Silent())


def saved(folder: Path, report: Report) -> Settings:
    """Return the settings of a run that names this report, and nothing else."""
    path = folder / "report.json"
    path.write_text(as_json(report))
    return Settings(failed_of=str(path))


def words_of(report: Report) -> list[str]:
    """Return the parts of the answer behind its state."""
    return list(headline(report, fold_findings(report.findings)).details)


def copied(node: Evidence, *names: str) -> list[Evidence]:
    """Return nodes that answer as this one."""
    return [replace(node, node=name) for name in names]


def test_what_was_fixed_is_gone_and_what_was_not_remains(tmp_path: Path) -> None:
    nodes = load(FIXTURES / "mixed-nccl")
    earlier = judged(nodes)
    settings = narrowed(saved(tmp_path, earlier))
    assert (settings.hosts, settings.select) == ("gpu[01-04]:8", ("NC201",))
    assert settings.run.earlier
    assert settings.run.earlier.nodes == frozenset(
        {"gpu01", "gpu02", "gpu03", "gpu04"}
    )  # a node alone differs from nobody
    now = judged([*nodes[:2], *copied(nodes[0], "gpu03"), nodes[3]], settings)
    assert now.again
    assert now.again.problems == (replace(NC201, gone=("gpu03",)),)
    assert now.exit_code == 0
    assert words_of(now) == ["1 check passed", "1 of 1 earlier problem gone"]
    time = earlier.time.replace("T", " ")
    assert list(looked_again(now)) == [f"1 of 1 problem of {time} gone; gone: NC201 {NCCL} on gpu03"]
    written = StringIO()
    junit.print_report(now, written, {})
    said = f"1 of 1 problem of {time} gone; gone: NC201 {NCCL} on gpu03"
    assert f'<property name="ncheck.again" value="{said}" />' in written.getvalue()
    still = judged(nodes, settings)
    assert still.again
    assert still.again.problems == (replace(NC201, remains=("gpu03",)),)
    assert (still.exit_code, words_of(still)) == (
        1, ["gpu03: NCCL differs", "0 of 1 earlier problem gone"],
    )  # fmt: skip


def test_a_node_alone_or_among_those_that_failed_too_is_unknown_and_not_well(tmp_path: Path) -> None:
    nodes = load(FIXTURES / "mixed-nccl")
    settings = narrowed(saved(tmp_path, judged(nodes)))
    alone = judged(nodes[2:3], settings)
    assert alone.again
    assert alone.again.problems == (replace(NC201, unknown=("gpu03",)),)
    assert (alone.exit_code, alone.state.value) == (1, "Not verified")
    assert alone.verdicts[0].reason == ("it failed before, and was not checked now: only one node: nothing to compare")
    twice = judged(nodes[2:3], narrowed(saved(tmp_path, alone)))  # what was not proved once is not by asking twice
    assert (twice.exit_code, twice.again) == (1, replace(alone.again, time=alone.time))
    tied = [*nodes[:2], *copied(nodes[2], "gpu03", "gpu04")]
    settings = narrowed(saved(tmp_path, judged(tied, Settings(select=("NC201",)))))
    assert settings.run.earlier
    assert settings.run.earlier.failed["NC201"] == {"gpu01", "gpu02", "gpu03", "gpu04"}
    once = judged(tied[2:], settings)
    both = judged(tied[2:], narrowed(saved(tmp_path, once)))
    assert once.verdicts == both.verdicts
    assert (both.exit_code, {one.reason for one in both.verdicts}) == (
        1, {"it was not passed before, and the nodes that it was compared with are not checked now"},
    )  # fmt: skip


def test_where_another_node_is_the_odd_one_now_the_problem_remains(tmp_path: Path) -> None:
    nodes = load(FIXTURES / "mixed-nccl")
    settings = narrowed(saved(tmp_path, judged(nodes)))
    now = judged([*copied(nodes[2], "gpu01", "gpu02", "gpu03"), nodes[3]], settings)
    assert now.again
    assert now.again.problems == (replace(NC201, remains=("gpu04",), unknown=("gpu03",)),)


def test_what_nodes_see_of_each_other_is_gone_only_among_the_same_nodes(tmp_path: Path) -> None:
    nodes = load(FIXTURES / "one-way-and-hole")
    earlier = judged(nodes, Settings(select=("NC313",)))
    (found,) = earlier.findings
    settings = narrowed(saved(tmp_path, earlier))
    assert settings.run.earlier
    assert settings.run.earlier.nodes == frozenset(one.node for one in nodes)
    one_less = judged([one for one in nodes if one.node not in found.nodes[:1]], settings)
    assert (one_less.exit_code, one_less.again and one_less.again.problems[0].gone) == (1, ())


def test_nodes_of_one_kind_are_compared_with_all_that_they_were_compared_with(tmp_path: Path) -> None:
    nodes = load(FIXTURES / "healthy-4x8-h100")
    report = judged(nodes, Settings(select=("driver-differs",)))
    (passed,) = report.verdicts
    doubt = replace(passed, nodes=("gpu01", "gpu02"), outcome=Outcome.UNKNOWN, reason="timed out")
    verdicts = (doubt, replace(passed, nodes=("gpu03", "gpu04")))
    settings = narrowed(saved(tmp_path, replace(report, verdicts=verdicts)))
    some, all_ = judged(nodes[:3], settings), judged(nodes, settings)
    assert [one.again and one.again.problems[0].gone for one in (some, all_)] == [(), ("gpu01", "gpu02")]
    assert (some.exit_code, all_.exit_code) == (1, 0)


def test_from_the_command_line_a_fault_is_found_fixed_and_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check = f"code = 'X001'\nname = 'scratch-not-mounted'\nrun = 'test -e {tmp_path}/scratch || exit 2'\n"
    Path("own.toml").write_text(f"[[check]]\n{check}")
    assert main(["local", "--config", "own.toml", "--select", "X001,NC601", "-o", "json=report.json"]) == 1
    again = ["--config", "own.toml", "--failed-of", "report.json", "-o", "concise"]
    assert main(again) == 1
    assert f"again: 0 of 1 problem of {datetime.now().year}" in capsys.readouterr().out  # noqa: DTZ005
    Path("scratch").touch()
    assert main(again) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f" gone; gone: X001 scratch-not-mounted on {socket.gethostname()}")
    assert lines[-1] == ("Only X001 checked: 1 check passed; this machine alone; 1 of 1 earlier problem gone")
    with pytest.raises(SettingsError, match=r"^--failed-of report\.json: no such check now: X001$"):
        ncheck.run(failed_of="report.json")
    report = ncheck.run(failed_of="report.json", config="own.toml")
    assert report.again
    assert [problem.is_gone for problem in report.again.problems] == [True]


def test_a_node_that_was_not_reached_is_checked_whole_with_those_that_it_is_compared_with(tmp_path: Path) -> None:
    nodes = load(FIXTURES / "one-node-down")
    earlier = judged(nodes)
    settings = narrowed(saved(tmp_path, earlier))
    assert set(settings.select) == {one.code for one in earlier.verdicts}
    back = judged([*nodes[:2], *copied(nodes[0], "gpu03"), *nodes[3:]], settings)
    assert back.again
    assert back.again.problems == (
        EarlierProblem("NC111", "connection-refused", ("gpu03",), ("gpu03",), gone=("gpu03",)),
    )
    let_pass = judged(nodes, Settings(ignore=(Ignore("NC111"), Ignore("NC001"))))
    passed = narrowed(saved(tmp_path, let_pass))
    assert (passed.select, passed.run.earlier and passed.run.earlier.names) == ((), {})
    still = judged(nodes, settings)
    assert still.exit_code == 1
    assert "0 of 1 earlier problem gone" in words_of(still)


def test_of_a_fault_that_a_node_has_by_itself_only_that_node_is_looked_at(tmp_path: Path) -> None:
    report = judged(load(FIXTURES / "healthy-4x8-h100"))
    memlock = next(one for one in report.verdicts if one.check == "memlock-limited")
    doubt = replace(memlock, nodes=("gpu02",), outcome=Outcome.UNKNOWN, reason="timed out")
    failed = tuple(one for one in report.verdicts if one is not memlock)
    failed = (*failed, doubt, replace(memlock, nodes=("gpu01", "gpu03", "gpu04")))
    settings = narrowed(saved(tmp_path, replace(report, verdicts=failed)))
    assert settings.run.earlier
    assert (settings.select, settings.run.earlier.nodes) == ((memlock.code,), frozenset({"gpu02"}))
    listed = tuple(map(Node, ("gpu01", "gpu02", "gpu09")))
    assert settings.run.earlier.among(listed) == listed[1:2]
    with pytest.raises(InventoryError, match=r"report\.json: this list has none of the nodes that failed: gpu02$"):
        settings.run.earlier.among(listed[2:])
    both = replace(saved(tmp_path, replace(report, verdicts=failed)), hosts="gpu01,gpu02", select=("NC6",))
    picked = narrowed(both)
    assert (picked.hosts, picked.select) == ("gpu01,gpu02", (memlock.code,))
    with pytest.raises(
        SettingsError, match=r"report\.json: of --select NC2 nothing failed there: remove one of the two$"
    ):
        narrowed(replace(both, select=("NC2",)))


def test_where_nothing_failed_all_is_checked(tmp_path: Path) -> None:
    nodes = load(FIXTURES / "healthy-4x8-h100")
    settings = narrowed(saved(tmp_path, judged(nodes)))
    assert (settings.hosts, settings.select) == ("gpu[01-04]:8", ())
    now = judged(nodes, settings)
    assert now.exit_code == 0
    assert "nothing had failed in the earlier report, so all was checked" in words_of(now)
    assert list(looked_again(now)) == []


def test_the_run_is_as_deep_as_that_of_the_report_or_nothing_skipped_is_gone(tmp_path: Path) -> None:
    """The storage was measured in vain, and a run without that option would skip it."""
    report = judged(load(FIXTURES / "mixed-nccl"))
    late = Verdict("storage-slow-on-node", "NC651", ("gpu01",), Outcome.UNKNOWN, "it did not end")
    of_code = [one for one in report.verdicts if one.code != "NC651"]
    deep = replace(
        report, verdicts=(*of_code, late), level="standard", beside_level=("storage-probe true", "repeats 7")
    )
    named = saved(tmp_path, deep)
    again = narrowed(named)
    assert (again.storage_probe, again.repeats, again.beside_level) == (True, 7, ("repeats 7", "storage-probe true"))
    assert again.run.earlier
    assert again.run.earlier.as_deep
    shallow = narrowed(replace(named, level="quick", probe="none"))
    assert (shallow.storage_probe, shallow.level) == (False, "quick")
    assert shallow.run.earlier
    skipped = replace(late, outcome=Outcome.SKIPPED, reason="no --storage-probe")
    why = "it was unknown before, and was not checked now, by other options: no --storage-probe"
    assert [one for one in shallow.run.earlier.held([skipped], ("gpu01",)) if one.code == "NC651"] == [
        replace(late, reason=why)
    ]
    broken = narrowed(saved(tmp_path, replace(deep, beside_level=("repeats many", "nothing 1"))))
    assert broken.run.earlier
    assert not broken.run.earlier.as_deep


def test_what_is_skipped_or_unlisted_or_has_no_check_any_more_is_not_gone() -> None:
    earlier = Earlier(
        "r", "t", failed={"NC1": frozenset("ab"), "X1": frozenset("a")}, unknown={"NC2": frozenset("bz")},
        names={"NC1": "one", "NC2": "two", "X1": "gone-check"},
    )  # fmt: skip
    verdicts = [
        Verdict("one", "NC1", ("a",), Outcome.SKIPPED, "no GPU", needs_root=True),
        Verdict("one", "NC1", ("b", "c"), Outcome.PASSED),
        Verdict("two", "NC2", ("a", "b", "c"), Outcome.SKIPPED, "no GPU"),
        Verdict("three", "NC3", ("a",), Outcome.SKIPPED, "no GPU"),
    ]
    held = list(earlier.held(verdicts, "abc"))
    assert held == [
        Verdict("one", "NC1", ("a",), Outcome.UNKNOWN, "it failed before, and was not checked now: no GPU"),
        *verdicts[1:],
        Verdict(
            "gone-check", "X1", ("a",), Outcome.UNKNOWN, "it was not passed before, and there is no such check now"
        ),
    ]
    report = judged(load(FIXTURES / "mixed-nccl"))
    nodes = tuple(replace(report.nodes[0], name=name) for name in "abc")
    again = earlier.again(replace(report, nodes=nodes, verdicts=tuple(held)))
    assert [(one.code, one.gone, one.remains, one.unknown, one.unlisted) for one in again.problems] == [
        ("NC1", ("b",), (), ("a",), ()), ("NC2", ("b",), (), (), ("z",)), ("X1", (), (), ("a",), ()),
    ]  # fmt: skip
    mute = tuple(replace(one, reached=False) for one in nodes)
    again = earlier.again(replace(report, nodes=mute, verdicts=tuple(held)))
    assert [one.gone for one in again.problems] == [
        (),
        (),
        (),
    ]  # what passes on a node that does not answer is no proof


NODE = {"name": "a", "reached": True, "transport": "paramiko", "cause": "", "slots": None, "recorded": False}
WHOLE = {"schema": "ncheck.report/2", "time": "2026", "nodes": [NODE], "verdicts": [], "findings": []}
FAILED = {"check": "gone-check", "code": "X1", "nodes": ["a"], "severity": "error", "ignored": False, "see": []}


@pytest.mark.parametrize(("content", "why"), [
    ("", "it is not JSON; a run writes it: ncheck nodes.txt -o json=FILE"),
    ("[" + "[]," * 4_000_001, "larger than any report"),
    ("[" * 100_000, "it is not JSON; a run writes it: ncheck nodes.txt -o json=FILE"),
    ("[]", "it is no report of ncheck; this ncheck reads ncheck.report/2"),
    ('{"schema": "ncheck.report/3"}', "'ncheck.report/3' is another format; this ncheck reads ncheck.report/2"),
    ('{"schema": "ncheck.report/2"}', "it is no report of ncheck: time: missing"),
    (WHOLE | {"nodes": []}, "it has no node"),
    (WHOLE | {"nodes": [NODE | {"name": "-oProxyCommand=id"}]},
     "it is no report of ncheck: nodes[0].name: '-oProxyCommand=id' is the name of no node"),
    (WHOLE | {"findings": [FAILED | {"code": "X 1"}]},
     "it is no report of ncheck: findings[0].code: 'X 1' is not the name of a check"),
    (WHOLE | {"verdicts": [{"check": "x", "code": "X1", "nodes": ["$(id)"], "outcome": "failed"}]},
     "it is no report of ncheck: verdicts[0].nodes[0]: '$(id)' is the name of no node"),
    (WHOLE | {"findings": [FAILED]}, "no such check now: X1"),
    (WHOLE | {"nodes": [NODE | {"transport": "local"}]}, "it is of ncheck local on another machine, a"),
])  # fmt: skip
def test_a_file_that_is_no_report_is_refused_before_any_node_is_asked(
    content: object, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(SettingsError) as caught:
        narrowed(Settings(failed_of=str(path)))
    assert str(caught.value) == f"--failed-of {path}: {why}"


def test_what_was_let_pass_or_is_only_worth_knowing_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    found = [FAILED | {"ignored": True}, FAILED | {"severity": "info"}]
    local = NODE | {"name": socket.gethostname(), "transport": "local"}
    path.write_text(json.dumps(WHOLE | {"nodes": [local], "findings": found}))
    settings = narrowed(Settings(failed_of=str(path)))
    assert (settings.local, settings.select, settings.run.earlier) == (True, (), Earlier(str(path), "2026"))
