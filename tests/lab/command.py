"""Running the built ncheck on the head host, as some user, with a hard end."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from . import namespaces
from .hosts import Lab
from .layers import CHECKOUT, ROOT, User, write

ENVIRONMENT = ("PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1")


def built() -> list[str]:
    """Return the command under test: the one named by NCHECK, the one installed beside this python, else the tree's."""
    if named := os.environ.get("NCHECK"):
        return shlex.split(named)
    beside = Path(sys.executable).with_name("ncheck")
    return [str(beside)] if beside.exists() else ["env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-m", "ncheck"]


@dataclass(frozen=True)
class Run:
    """One run of ncheck, ended. `seconds` is the wall clock's, start-up included."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float

    @cached_property
    def report(self) -> dict[str, Any]:
        """The JSON report; a run that printed none shows what it printed instead."""
        try:
            found: dict[str, Any] = json.loads(self.stdout)
        except ValueError as error:
            said = f"{self.stdout[-2000:]}\n{self.stderr[-4000:]}"
            raise AssertionError(f"no report, exit code {self.exit_code}:\n{said}") from error
        return found

    def verdicts(self, *nodes: str) -> dict[tuple[str, str], str]:
        """Map (code, node) to the outcome, of these nodes or of all."""
        pairs = ((v, node) for v in self.report["verdicts"] for node in v["nodes"] if not nodes or node in nodes)
        return {(v["code"], node): v["outcome"] for v, node in pairs}

    def not_passed(self, node: str) -> dict[str, str]:
        """Map the codes that did not pass on a node to "outcome: reason"."""
        verdicts = (v for v in self.report["verdicts"] if node in v["nodes"] and v["outcome"] != "passed")
        return {v["code"]: f"{v['outcome']}: {v['reason']}" for v in verdicts}

    def failed(self) -> dict[str, set[str]]:
        """Map each code that failed anywhere to the nodes where it did."""
        found: dict[str, set[str]] = {}
        for (code, node), outcome in self.verdicts().items():
            if outcome in ("failed", "crashed"):
                found.setdefault(code, set()).add(node)
        return found

    def unknown(self, node: str) -> set[str]:
        return {code for (code, _), outcome in self.verdicts(node).items() if outcome == "unknown"}

    def outcomes(self) -> Counter[str]:
        return Counter(self.verdicts().values())

    def finding(self, code: str) -> Mapping[str, Any]:
        """Return the one finding of this code."""
        (found,) = (finding for finding in self.report["findings"] if finding["code"] == code)
        return dict(found)


def on_head(lab: Lab, argv: Sequence[str], user: User = ROOT) -> list[str]:
    """Return the command that runs `argv` on the head, as somebody who has just logged in there."""
    who = [f"HOME={user.home}", f"USER={user.name}", f"LOGNAME={user.name}"]
    nsenter, *rest = namespaces.enter(lab.pid, ["env", "-i", "-C", user.home, *ENVIRONMENT, *who, *argv])
    return [nsenter, "-S", str(user.uid), "-G", str(user.uid), *rest]


class Running:
    """An ncheck that was started and not yet waited for."""

    def __init__(self, lab: Lab, argv: Sequence[str], user: User, stdin: str, environment: Sequence[str] = ()) -> None:
        entered = on_head(lab, [*environment, *built(), *argv], user)
        self._input = stdin
        self._begun = time.monotonic()
        # A session of its own: ended as one group whatever it started.
        self.process = subprocess.Popen(
            entered, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip

    def wait(self, hard_limit: float) -> Run:
        """Wait for its end; one that does not end in time is killed, and that is a failure of the test."""
        try:
            out, err = self.process.communicate(self._input, hard_limit)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, err = self.process.communicate()
            raise AssertionError(f"ncheck did not end within {hard_limit} s:\n{out[-2000:]}\n{err[-2000:]}") from None
        return Run(self.process.returncode, out, err, time.monotonic() - self._begun)

    def interrupt(self) -> None:
        """Press ^C, unless it has just ended by itself."""
        with suppress(IndexError, ProcessLookupError):
            os.kill(namespaces.child(self.process.pid), signal.SIGINT)

    def kill(self) -> None:
        """End ncheck itself by SIGKILL, as the out-of-memory killer would: nothing of it can clean up."""
        os.kill(namespaces.child(self.process.pid), signal.SIGKILL)


def begin(lab: Lab, *argv: str, user: User = ROOT, stdin: str = "") -> Running:
    """Start ncheck on the head. What is not about the probe goes without it: it would measure TCP each time."""
    unmeasured = argv[0] == "nodes.txt" and "--probe" not in argv
    return Running(lab, (*argv, "--probe", "none") if unmeasured else argv, user, stdin)


def ncheck(lab: Lab, *argv: str, user: User = ROOT, nodes: Sequence[str] = (), hard_limit: float = 60) -> Run:
    """Run ncheck over these nodes (all of the lab's where none are named) and return what it reported as JSON."""
    listing(lab, nodes or lab.names, user)
    return begin(lab, "nodes.txt", "-o", "json", *argv, user=user).wait(hard_limit)


def listing(lab: Lab, nodes: Sequence[str], user: User = ROOT) -> None:
    """Write nodes.txt into the user's home on the head, which is where ncheck is started."""
    write(lab.root / user.home.lstrip("/") / "nodes.txt", "".join(f"{node}\n" for node in nodes), uid=user.uid)
