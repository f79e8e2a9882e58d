"""ncheck.preflight() in the ranks of a real job: one verdict for all, and nothing of it is left in the process."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import ncheck
import pytest
from ncheck.errors import SettingsError

from tests.ncheck.hook.ranks import PATIENCE, SCRIPT, Ended, ended, job, marked, plug_in, run, start, wait_for

pytestmark = pytest.mark.slow  # ranks as real processes, or meetings that wait

HOST = socket.gethostname()
WELL = {"findings": [], "nodes": [HOST], "exit_code": 0}
RANKS = "NC8"  # checks that cost nothing

STOPPED = """\
ncheck stopped this job before it started: 1 error
NC801 rank-missing on {host}: rank 1 did not call ncheck.preflight() within {seconds} s
  here: set NCHECK_TIMEOUT=120 for all ranks, if they need longer to start
  more: ncheck explain NC801"""

UNCHANGED = """
import os, sys, threading, signal
def state():
    return {
        "files": sorted(os.listdir("/proc/self/fd")), "threads": threading.active_count(), "argv": sys.argv,
        "folder": os.getcwd(), "variables": dict(os.environ), "path": sys.path,
        "signals": [str(signal.getsignal(number)) for number in signal.valid_signals()],
    }
before, modules = state(), set(sys.modules)
"""
COMPARED = """
said["changed"] = [name for name, value in state().items() if value != before[name]]
new = {name.split(".")[0] for name in loaded - modules}
said["modules"] = sorted(new - sys.stdlib_module_names)
try:
    os.waitpid(-1, os.WNOHANG)
    said["children"] = True
except ChildProcessError:
    said["children"] = False
"""


def test_a_single_process_is_checked_alone_and_keeps_nothing_of_it() -> None:
    (rank,) = run(1, before=UNCHANGED, after=COMPARED, select=RANKS)
    assert rank == Ended({**WELL, "changed": [], "modules": ["ncheck"], "children": False}, "")


def test_the_ranks_of_a_healthy_job_get_the_same_report_and_print_nothing() -> None:
    ranks = run(3, before=UNCHANGED, after=COMPARED, select=RANKS)
    assert ranks == [Ended({**WELL, "changed": [], "modules": ["ncheck"], "children": False}, "")] * 3


def test_all_checks_of_this_machine_run_from_inside_a_job() -> None:
    (rank,) = run(1, timeout=60, on_problem="warn", before="import os", after="""
outcomes = {one.code: one.outcome.value for one in report.verdicts}
said = {"own": report.nodes[0].interpreter.startswith(sys.executable), "how": report.nodes[0].transport,
        "ranks": outcomes["NC801"], "ssh": outcomes["NC134"], "limits": outcomes["NC605"]}
""".replace("sys.", "__import__('sys')."))  # fmt: skip
    assert rank.said == {"own": True, "how": "ranks", "ranks": "passed", "ssh": "skipped", "limits": "passed"}


def test_ranks_that_did_not_come_stop_the_others_with_the_same_words() -> None:
    first, last = run(3, 0, 2, select=RANKS, timeout=8)
    assert first.said == last.said == {"raised": "PreflightError", "message": STOPPED.format(host=HOST, seconds=6)}
    assert last.stderr == ""
    lines = first.stderr.splitlines()
    assert lines[0] == f"x Not ready: {HOST}: ranks did not start"
    assert "x error NC801 rank-missing" in first.stderr
    assert first.stderr.count("error NC801") == 1


def test_on_problem_warn_prints_the_same_report_once_and_lets_the_job_go_on() -> None:
    said = {"findings": ["NC801"], "nodes": [HOST], "exit_code": 1}
    for variables, words in (({}, {"on_problem": "warn"}), ({"NCHECK": "warn"}, {})):
        first, last = run(3, 0, 2, variables=variables, select=RANKS, timeout=8, **words)
        assert (first.said, last) == (said, Ended(said, ""))
        assert first.stderr.count("error NC801") == 1


def test_a_check_that_is_ignored_stops_nothing() -> None:
    first, last = run(3, 0, 2, select=RANKS, timeout=8, ignore="rank-missing")
    assert first.said == last.said == {"findings": ["NC801"], "nodes": [HOST], "exit_code": 0}


def test_a_process_that_imports_the_script_again_is_no_rank(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"""
import multiprocessing, ncheck
report = ncheck.preflight(select={RANKS!r})

def nodes(_):
    return [node.name for node in report.nodes]

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(nodes(None), pool.map(nodes, [None]))
""")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NCHECK")}
    process = subprocess.run(
        [sys.executable, str(script)], env={**environ, **job(1), "RANK": "0"}, text=True, timeout=PATIENCE,
        capture_output=True, check=False,
    )  # fmt: skip
    assert (process.stdout, process.stderr, process.returncode) == (f"[{HOST!r}] [[]]\n", "", 0)


def test_a_program_that_a_rank_starts_is_not_stopped_where_the_others_do_not_come_again() -> None:
    program = SCRIPT.format(words=json.dumps({"select": RANKS, "timeout": 4}), before="", after="")
    rank = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}])"
    bare = {name: value for name, value in os.environ.items() if not name.startswith("NCHECK")}
    for number, said in ((0, {**WELL, "findings": ["NC802"]}), (1, {"findings": [], "nodes": [], "exit_code": 0})):
        environ = {**bare, **job(2), "RANK": str(number)}
        done = subprocess.run([sys.executable, "-c", rank], env=environ, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == said
        assert f"also has RANK={number}. If this is a helper process of that rank, set NCHECK=off here" in done.stderr


def test_a_second_call_meets_nobody_and_says_the_same() -> None:
    after = """
again = ncheck.preflight(**words)
said["again"] = again == report
"""
    assert run(2, after=after, select=RANKS) == [Ended({**WELL, "again": True}, "")] * 2
    after = """
try:
    ncheck.preflight(**words)
except NcheckError as error:
    said["again"] = str(error) == said["message"]
"""
    ranks = run(3, 0, 2, after=after, select=RANKS, timeout=8)
    assert [rank.said.get("again") for rank in ranks] == [True, True], ranks
    assert ranks[0].stderr.count("error NC801") == 1


def test_processes_that_execute_another_program_meet_again(tmp_path: Path) -> None:
    """As with python -m ncheck.hook and a script that calls preflight itself: the pids stay the same."""
    after = """
import os, sys
turn = int(os.environ.get("TURN", "0"))
if turn < 2:
    os.environ["TURN"] = str(turn + 1)
    os.execv(sys.executable, [sys.executable, *sys.argv])
"""
    assert run(3, folder=tmp_path, after=after, select=RANKS, timeout=20) == [Ended(WELL, "")] * 3


def test_two_processes_with_one_rank_stop_the_job() -> None:
    found = run(3, 0, 1, 1, select=RANKS, timeout=20)
    assert found[0].said == found[1].said == found[2].said
    assert [line[:5] for line in found[0].said["message"].splitlines() if line.startswith("NC")] == ["NC801", "NC805"]


def test_ranks_that_disagree_about_the_size_of_the_job_are_stopped() -> None:
    environ = job(2)
    first, second = ended([
        start(0, environ, select=RANKS, timeout=20), start(1, {**environ, "WORLD_SIZE": "3"}, select=RANKS, timeout=20),
    ])  # fmt: skip
    assert first.said == second.said
    assert "NC804 world-size-differs" in first.said["message"]


def test_a_rank_that_ends_before_the_others_came_is_named_with_its_process() -> None:
    environ = job(3)
    before = "import threading, os; threading.Timer({}, os._exit, (9,)).start()"
    doomed = start(1, environ, select=RANKS, timeout=20, before=before.format(2.0))
    first = start(0, environ, select=RANKS, timeout=20)
    doomed.wait(PATIENCE)
    last = start(2, environ, select=RANKS, timeout=20)
    found = ended([first, last])
    doomed.communicate()
    assert found[0].said == found[1].said
    assert (
        f"NC803 rank-ended on {HOST}: rank 1 ended before the job began (pid {doomed.pid})" in found[0].said["message"]
    )


def test_off_does_nothing_at_all() -> None:
    after = "import sys; said['loaded'] = 'ncheck.hook.meeting.sockets' in sys.modules or 'subprocess' in sys.modules"
    (rank,) = run(2, 1, variables={"NCHECK": "off"}, after=after)
    assert rank == Ended({"findings": [], "nodes": [], "exit_code": 0, "loaded": False}, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"timeout": 0}, "timeout=0: expected seconds above 0, at most 3600"),
        ({"timeout": -1}, "timeout=-1: expected seconds above 0, at most 3600"),
        ({"timeout": math.nan}, "timeout=nan: expected seconds above 0, at most 3600"),
        ({"timeout": "soon"}, "timeout=soon: expected seconds above 0, at most 3600"),
        ({"timeout": True}, "timeout=True: expected seconds above 0, at most 3600"),
        ({"apply": "no"}, "apply='no' is not True or False"),
        ({"strict": 1}, "strict=1 is not True or False"),
        ({"watch": "yes"}, "watch='yes' is not True or False"),
        ({"on_problem": "cry"}, "on_problem='cry' is not one of raise, warn"),
        ({"probe": "long"}, "probe='long' is not one of none, quick"),
        ({"select": 7}, "select expects names of checks, such as select=('NC3', 'mtu-differs')"),
        ({"ignore": [1]}, "ignore expects names of checks, such as ignore=('NC3', 'mtu-differs')"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_opened(words: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        ncheck.preflight(**words)  # type: ignore[arg-type]
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"NCHECK": "maybe"}, "NCHECK=maybe is not one of off, warn, on, strict"),
        ({"NCHECK_TIMEOUT": "0"}, "NCHECK_TIMEOUT=0: expected seconds above 0, at most 3600"),
        ({"NCHECK_WATCH": "maybe"}, "NCHECK_WATCH=maybe is not one of 1, on, true, 0, off, false"),
        ({"NCHECK_STALLED": "9"}, "NCHECK_STALLED=9: expected 10 to 3600 seconds"),
        ({"WORLD_SIZE": "four"}, "WORLD_SIZE=four is not a whole number"),
    ],
)
def test_wrong_variables_are_refused_on_every_rank(variables: dict[str, str], said: str) -> None:
    ranks = run(2, variables=variables)
    assert [rank.said["message"] for rank in ranks] == [said, said]


def test_an_unknown_check_is_refused_with_the_same_words_on_every_rank() -> None:
    for setting in ("select", "ignore"):
        words: dict[str, Any] = {setting: "mtu-difers"}
        ranks = run(2, **words)
        message = "no check is called 'mtu-difers': did you mean mtu-differs?"
        assert [rank.said for rank in ranks] == [{"raised": "SettingsError", "message": message}] * 2


@pytest.mark.parametrize("text", ["raise OSError('no brush')", "import sys; sys.exit(3)"])
def test_a_broken_plug_in_is_one_warning(tmp_path: Path, text: str) -> None:
    variables = plug_in(tmp_path, text)
    first, second = run(2, variables=variables, select="NC0")
    assert first.said == second.said == {"findings": ["NC003"], "nodes": [HOST], "exit_code": 1}
    assert (first.stderr.count("\n"), second.stderr) == (1, "")
    message = "NC003 plug-in-broken on this machine: the plug-in strange-checks is "
    assert first.stderr.startswith(f"ncheck: warning: {message}")


def test_strict_stops_for_a_broken_plug_in(tmp_path: Path) -> None:
    variables = plug_in(tmp_path, "raise OSError('no brush')")
    strict = run(2, variables={**variables, "NCHECK": "strict"}, select="NC0")
    assert {rank.said["raised"] for rank in strict} == {"PreflightError"}
    assert strict[0].said == strict[1].said


def test_a_plug_in_that_prints_disturbs_nothing(tmp_path: Path) -> None:
    variables = plug_in(tmp_path, "import os; print('hello'); os.system('echo hello')")
    assert run(2, variables=variables, select=RANKS) == [Ended(WELL, "")] * 2


def test_no_rank_waits_for_what_a_plug_in_does_at_the_exit_of_python(tmp_path: Path) -> None:
    done = tmp_path / "done"
    variables = plug_in(tmp_path, f"import atexit; atexit.register(open, {str(done)!r}, 'w')")
    assert run(1, variables=variables, select=RANKS) == [Ended(WELL, "")]
    assert not done.exists()


def test_modules_beside_the_script_with_names_of_the_library_disturb_nothing(tmp_path: Path) -> None:
    for name in ("queue", "ipaddress", "pkgutil"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('it was imported')")
    assert run(2, folder=tmp_path, select=RANKS) == [Ended(WELL, "")] * 2


def test_an_examination_that_crashes_is_one_warning_and_strict_stops_for_it(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    variables = plug_in(tmp_path, f"import os; open({str(gone)!r}, 'w').close(); os._exit(9)")
    first, second = run(2, variables={**variables, "LOCAL_RANK": "0"}, select=RANKS)
    assert first.said == second.said == {"findings": [], "nodes": [], "exit_code": 0}
    warning = "ncheck: warning: the nodes of this job were not checked: the checks ended without a report\n"
    assert first.stderr == warning

    message = "ncheck could not check this job, and strict is set: the nodes of this job were not checked: the checks "
    gone.unlink()
    environ = job(2, **variables)
    early = start(0, environ, select=RANKS, strict=True)
    wait_for(gone.exists)  # the examiner has ended when the last rank comes: it takes no request any more
    strict = ended([early, start(1, environ, select=RANKS, strict=True)])
    assert [rank.said["message"] for rank in strict] == [message + "ended without a report"] * 2


def test_a_job_that_is_killed_leaves_no_child_behind() -> None:
    environ = job(2)
    marker = f"NCHECK_TEST_MARK={os.urandom(8).hex()}"
    name, _, value = marker.partition("=")
    rank = start(0, {**environ, name: value}, timeout=30)
    wait_for(lambda: len(marked(marker)) > 1)
    rank.send_signal(signal.SIGKILL)
    ended([rank])
    wait_for(lambda: not marked(marker))
