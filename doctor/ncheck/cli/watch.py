"""triage --watch: what is printed, saved and run while a job is watched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examine import say
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS, SettingsError
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.text import clock, printable

if TYPE_CHECKING:
    from ncheck.settings import Settings
    from ncheck.triage.watch import Alarm, WatchNote

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


@dataclass(frozen=True)
class Watching:
    """What the options of --watch say. `save`: where the evidence of an alarm is kept, None for a name by its time."""

    stalled: float
    on_stall: str | None
    save: str | None
    as_json: bool


def watching_of(stalled: str | None, on_stall: str | None, save: str | None, *, as_json: bool) -> Watching:
    """Return what the options say. Raises SettingsError."""
    from ncheck.model.job import LEAST_STALLED, MOST_STALLED
    from ncheck.triage.watch import STALLED, WATCHDOG

    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|m|min|h)?", stalled or f"{STALLED}", re.ASCII)
    seconds = float(found[1]) * _UNITS[found[2] or ""] if found else 0.0
    if not LEAST_STALLED <= seconds <= MOST_STALLED:
        expected = f"expected {LEAST_STALLED:.0f} to {MOST_STALLED:.0f} seconds, such as 120 or 2m"
        raise SettingsError(f"--stalled: {quoted(stalled or '')}: {expected}")
    if seconds >= WATCHDOG:
        say(f"--stalled {seconds:.0f}: PyTorch may end the job before that, {WATCHDOG:.0f} s after its last step")
    return Watching(seconds, on_stall, save, as_json)


def watched(settings: Settings, how: Watching) -> int:
    """Watch the job until it has ended, or stands still; with --on-stall go on after that. Return the exit code."""
    from ncheck.cli.process import prepare_fan_out
    from ncheck.fleet.engines import engines
    from ncheck.inventory.read import read_inventory
    from ncheck.observer import Silent
    from ncheck.triage.diagnosis_history import kept
    from ncheck.triage.watch import WatchNote, watch

    prepare_fan_out(many=not settings.local and settings.via == "ssh")
    nodes = read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    code = EXIT_CLEAN
    with closing(watch(settings, nodes, lambda: engines(settings, nodes=nodes), Silent(), how.stalled)) as events:
        for event in events:
            if isinstance(event, WatchNote):
                _print_note(event, how)
                code = EXIT_FINDINGS if event.blind else code
                continue
            code = EXIT_FINDINGS
            alarm = replace(event, report=kept(event.report, settings, event.since))
            path = _saved(alarm, how)
            _print_alarm(alarm, path, how)
            if event.slow:
                continue
            if how.on_stall is None:
                break
            _run(how.on_stall, alarm, path)
    return code


def _print_note(note: WatchNote, how: Watching) -> None:
    if how.as_json:
        click.echo(json.dumps({"event": "note", "time": time.time(), "text": note.text}))
    else:
        click.echo(f"{clock(time.time())} {printable(note.text, 400)}")
    sys.stdout.flush()


def _print_alarm(alarm: Alarm, path: str, how: Watching) -> None:
    from ncheck.triage.report import print_triage

    kind = "slow" if alarm.slow else "still"
    if how.as_json:
        line = {"event": kind, "time": time.time(), "since": alarm.since, "text": alarm.text, "saved": path}
        click.echo(json.dumps(line | {"report": asdict(alarm.report)}))
    else:
        click.echo(f"{clock(time.time())} {alarm.text} (since {clock(alarm.since)})")
        print_triage(alarm.report, sys.stdout, os.environ)
        if path:
            click.echo(f"saved: ncheck triage {path}")
    sys.stdout.flush()


def _saved(alarm: Alarm, how: Watching) -> str:
    """Save the evidence, and return where; "" if that failed. A file of --save is replaced by the newest alarm."""
    from ncheck.errors import NcheckError
    from ncheck.fleet.archive import save_archive

    path = how.save or time.strftime("ncheck-stall-%Y%m%d-%H%M%S.zip", time.localtime())
    try:
        save_archive(path, alarm.evidence, alarm.job)
    except NcheckError as error:
        say(f"what was seen could not be saved: {error}")
        return ""
    return path


def _run(command: str, alarm: Alarm, path: str) -> None:
    """Run the user's command by a shell, with what was found in its environment."""
    best = alarm.report.diagnoses[0] if alarm.report.diagnoses else None
    found = {
        "NCHECK_CAUSE": best.cause if best else "unknown",
        "NCHECK_NEXT": best.next.action.value if best else "look",
        "NCHECK_RANKS": ",".join(map(str, best.ranks)) if best else "",
        "NCHECK_NODES": ",".join(best.nodes) if best else "",
        "NCHECK_SAVED": os.path.abspath(path) if path else "",  # noqa: PTH100  the command may run elsewhere
    }
    status = subprocess.run(["/bin/sh", "-c", command], env={**os.environ, **found}, check=False).returncode
    if status:
        say(f"--on-stall: the command ended with exit status {status}")
