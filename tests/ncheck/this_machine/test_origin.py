"""A report says when, where, by whom and with which command line it was made."""

from __future__ import annotations

import os
import pwd
import socket
from datetime import datetime, timedelta

import ncheck
import pytest
from ncheck.this_machine.origin import command_line, read_origin

from tests.recorded.replayed import FIXTURES


def test_the_time_has_its_zone_and_host_and_user_are_those_of_this_process() -> None:
    origin = read_origin(["ncheck"])
    made = datetime.fromisoformat(origin.time)
    assert made.utcoffset() is not None
    assert abs(datetime.now().astimezone() - made) < timedelta(minutes=1)
    assert (origin.host, origin.user) == (socket.gethostname(), pwd.getpwuid(os.geteuid()).pw_name)


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["/opt/venv/bin/ncheck", "my nodes.txt", "-p", "10001"], "ncheck 'my nodes.txt' -p 10001"),
        (["/opt/lib/ncheck/__main__.py", "local"], "ncheck local"),
        (["/opt/lib/ncheck/hook/__main__.py", "train.py"], "python -m ncheck.hook train.py"),
        (["", "x"], "python x"),
        ([], "python"),
        (["ncheck", "launch", "n", "--", "train.py", "--api-key", "two words"],
         "ncheck launch n -- train.py --api-key '<redacted>'"),
        (["ncheck", "launch", "n", "--", "env", "HF_TOKEN=two words", "./train.sh"],
         "ncheck launch n -- env 'HF_TOKEN=<redacted>' ./train.sh"),
        (["ncheck", "n", "--notify", "https://chat/x", "--notify=https://chat/x"],
         "ncheck n --notify '<redacted>' '--notify=<redacted>'"),
    ],
)  # fmt: skip
def test_the_command_line_can_be_typed_again_and_has_no_secret(argv: list[str], command: str) -> None:
    assert command_line(argv) == command


def test_a_report_has_all_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["ncheck", "replay", "x"])
    report = ncheck.replay(FIXTURES / "healthy-4x8-h100")
    assert report.command == "ncheck replay x"
    assert all((report.time, report.host, report.user))
