"""An interpreter that is started once: each program that it is given runs in a fork, and its end harms no other."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from ncheck.agent.warm_interpreter import SERVE, WarmInterpreter

LONG = 60.0
SAY = 'import os, sys; print(os.getppid(), os.environ.get("SAID")); sys.stderr.write(sys.argv[1])'


@pytest.fixture
def standing() -> Iterator[WarmInterpreter]:
    made = WarmInterpreter(
        [sys.executable, "-c", "import json, os, sys\nprint('here')\n" + SERVE], LONG, dict(os.environ)
    )
    assert made.reply["stdout"].startswith("here\n")
    yield made
    made.end()


def test_a_program_gets_words_and_variables_and_its_end_harms_no_other(standing: WarmInterpreter) -> None:
    def ran(text: str, seconds: float = LONG, **more: str) -> dict[str, object]:
        reply = standing.run(text, ["word"], seconds, {**os.environ, **more})
        assert reply
        return {name: value for name, value in reply.items() if name not in {"seconds", "stderr"}}

    assert standing.process
    said = {"status": "ok", "exit_status": 0, "stdout": f"{standing.process.pid} hello\n"}
    assert ran(SAY, SAID="hello") == said
    assert ran("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")["exit_status"] == -11
    assert ran("raise SystemExit('why')")["exit_status"] == 1
    assert ran("no such program")["exit_status"] == 1
    late = ran("import time; time.sleep(600)", 0.2)
    assert (late["status"], late["exit_status"]) == ("timeout", None)
    assert ran(SAY, SAID="hello") == said


def test_what_only_a_new_process_can_have_is_left_to_one(standing: WarmInterpreter) -> None:
    assert standing.run("", (), LONG, {**os.environ, "LD_LIBRARY_PATH": "/elsewhere"}) is None
    with standing.lock:
        assert standing.run("", (), LONG, os.environ) is None
    assert standing.process
    standing.process.kill()
    assert standing.run("", (), LONG, os.environ) is None


def test_a_fork_ends_with_all_that_it_started_and_one_that_holds_no_output_is_ended_in_time(
    standing: WarmInterpreter,
) -> None:
    leaves = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    reply = standing.run(leaves, (), LONG, os.environ)
    assert reply
    assert reply["status"] == "ok"
    wait_for_the_end(int(reply["stdout"]))
    assert reply["seconds"] < LONG / 2
    quiet = "import os, time; os.closerange(1, 99); time.sleep(600)"
    late, next_one = standing.run(quiet, (), 0.3, os.environ), standing.run(SAY, ("word",), LONG, os.environ)
    assert [reply and reply["status"] for reply in (late, next_one)] == ["timeout", "ok"]


def test_an_interpreter_that_hangs_ends_with_its_fork_and_the_program_is_not_run_again(
    standing: WarmInterpreter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ncheck.agent.warm_interpreter._LATE", 0.0)
    written = tmp_path / "pid"
    stops = (
        f"import os, signal, time; open({str(written)!r}, 'w').write(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(600)"
    )
    reply = standing.run(stops, (), 0.5, os.environ)
    assert reply
    assert (reply["status"], reply["exit_status"]) == ("timeout", None)
    wait_for_the_end(int(written.read_text()))


def test_what_a_start_up_file_set_up_has_its_end(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    begins = f"import atexit, json, os, sys\natexit.register(lambda: open({str(ended)!r}, 'w').close())\n"
    WarmInterpreter([sys.executable, "-c", begins + SERVE], LONG, dict(os.environ)).end()
    assert ended.exists()


def wait_for_the_end(pid: int) -> None:
    """Wait until a process has ended: it is nobody's child here."""
    until = time.monotonic() + LONG
    with suppress(FileNotFoundError):
        while " Z " not in Path(f"/proc/{pid}/stat").read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
