"""Running a program on a node: bounded in time and output, and honest about how it went."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from ncheck.agent.commands import LARGEST_OUTPUT, run, thinned

LONG = 60  # seconds for what takes a moment, on a machine with other things to do


def test_output_and_exit_status_come_back() -> None:
    reply = run(["sh", "-c", "echo out; echo err >&2; exit 3"], LONG)
    seconds = reply.pop("seconds")
    assert reply == {"status": "ok", "exit_status": 3, "stdout": "out\n", "stderr": "err\n", "truncated": False}
    assert 0 < seconds < LONG


def test_a_program_gets_nothing_on_its_input_and_a_plain_locale() -> None:
    reply = run(["sh", "-c", "cat; echo $LC_ALL $PYTHONDONTWRITEBYTECODE $GIT_OPTIONAL_LOCKS"], LONG)
    assert reply["stdout"] == "C 1 0\n"


def test_bytes_that_are_not_utf_8_can_be_read_as_text() -> None:
    assert run(["printf", r"caf\351 \303\251 \000"], LONG)["stdout"] == "caf\\xe9 \u00e9 \x00"


def test_a_program_that_is_not_there_is_missing() -> None:
    reply = run(["no-such-program", "--help"], LONG)
    assert (reply["status"], reply["reason"]) == ("missing", "no no-such-program on PATH")


def test_a_program_that_is_there_and_cannot_run_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    assert run([str(tmp_path / "script")], LONG)["status"] == "failed"


def test_what_lies_in_the_systems_own_folders_is_found_by_any_login() -> None:
    assert run(["ldconfig", "--version"], LONG, {"PATH": "/nowhere"})["status"] == "ok"


@pytest.mark.slow
def test_a_program_that_does_not_end_keeps_what_it_said() -> None:
    reply = run(["sh", "-c", "echo first; exec sleep 600"], 3)
    assert (reply["status"], reply["exit_status"], reply["stdout"]) == ("timeout", None, "first\n")
    assert 3 <= reply["seconds"] < LONG


def test_a_child_that_keeps_the_pipe_open_does_not_hold_up_the_answer() -> None:
    began = time.monotonic()
    reply = run(["sh", "-c", "sleep 600 & echo done"], 300)
    assert (reply["status"], reply["stdout"]) == ("ok", "done\n")
    assert time.monotonic() - began < LONG


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_is_cut_off_at_a_mebibyte(stream: str) -> None:
    reply = run(["sh", "-c", "cat /dev/zero" + (" >&2" if stream == "stderr" else "")], LONG)
    printed = reply["stdout"] or reply["stderr"]
    assert (reply["truncated"], reply["exit_status"], len(printed)) == (True, None, LARGEST_OUTPUT)


def test_a_mebibyte_itself_is_whole() -> None:
    reply = run(["head", "-c", str(LARGEST_OUTPUT), "/dev/zero"], LONG)
    assert (reply["truncated"], reply["exit_status"], len(reply["stdout"])) == (False, 0, LARGEST_OUTPUT)


def test_many_programs_leave_no_descriptor_open() -> None:
    run(["true"], LONG)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  the agent's own way of counting
    for argv in (["true"], ["sleep", "600"], ["no-such-program"]):
        run(argv, 0.1)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_of_a_long_log_the_end_is_kept_and_the_program_runs_to_its_own() -> None:
    script = "import sys; sys.stdout.write('early\\n' + 'x' * (5 * 1024 * 1024) + '\\nlate\\n')"
    reply = run([sys.executable, "-c", script], LONG, tail=True)
    assert (reply["status"], reply["exit_status"], reply["truncated"]) == ("ok", 0, True)
    assert len(reply["stdout"]) == LARGEST_OUTPUT
    assert reply["stdout"].endswith("x\nlate\n")


@pytest.mark.slow
def test_a_log_that_does_not_end_is_a_time_out_however_much_it_said() -> None:
    reply = run(["sh", "-c", "yes; :"], 3, tail=True)
    assert (reply["status"], reply["exit_status"], reply["truncated"]) == ("timeout", None, True)
    assert len(reply["stdout"]) == LARGEST_OUTPUT


def test_of_a_log_the_beginning_is_kept_and_the_lines_that_hold_one_of_the_words() -> None:
    begin = "".join(f"line {number}\n" for number in range(10))
    log = begin + "usb 1-1\nNVRM: Xid\nnvidia-nvswitch0: SXid\neth0: up\n"
    assert thinned(log, "NVRM|SXid") == begin + "NVRM: Xid\nnvidia-nvswitch0: SXid\n"
    assert thinned(log, "eth0") == begin + "eth0: up\n"
