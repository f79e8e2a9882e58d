"""What check, plan and launch do alike: examine the nodes, and settle which of them are good enough."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.errors import EXIT_FINDINGS
from ncheck.hostlist import fold, unfold
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.model.report import Report
    from ncheck.observer import Observer
    from ncheck.settings import Settings


_LONGEST = 2000  # characters of one word on standard error


def examined(settings: Settings, observer: Observer) -> Report:
    """Examine the nodes; write those that are good where --good-nodes wants them, and tell what was left out."""
    from ncheck.cli.process import prepare_fan_out
    from ncheck.pipeline import examine

    prepare_fan_out()
    if settings.good_nodes is None:
        return _dropped(examine(settings, observer))
    from ncheck.inventory.good_nodes import writable
    from ncheck.inventory.read import read_inventory

    writable(settings.good_nodes, settings.nodes_file)
    listed = read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    report = _dropped(examine(settings, observer, listed=listed))
    if report.interrupted:
        say(f"interrupted: {settings.good_nodes} was not written")
        return report
    from ncheck.bad_nodes import bad_nodes
    from ncheck.inventory.good_nodes import write_good
    from ncheck.registry import load_checks
    from ncheck.report.console import left_out

    bad = {**report.dropped, **bad_nodes(report, load_checks().select(settings.select), settings)}
    good = [node.name for node in listed if node.name not in bad]
    told = left_out(bad, len(listed)) if bad else f"all of {len(listed)}"
    if not good:
        say(f"{settings.good_nodes} was not written, since no node is good: {told}")
        return replace(report, exit_code=EXIT_FINDINGS)
    write_good(settings.good_nodes, listed, good)
    say(f"{settings.good_nodes}: {told}")
    return report


def all_dropped(report: Report) -> bool:
    """Tell whether --drop-bad left no node to go on with."""
    return bool(report.dropped) and all(node.name in report.dropped for node in report.nodes)


def against(report: Report, settings: Settings) -> list[str]:
    """Return what stands against a plan and a launch, in lines to say; where no node is left, that alone."""
    if all_dropped(report):
        return ["no node is left"]
    from ncheck.blockers import blockers
    from ncheck.registry import load_checks

    found = blockers(report, load_checks().select(()), settings)
    return [line for one in found for line in (one.message, *([f"  try: {one.fix}"] if one.fix else []))]


def say_in_vain(settings: Settings, report: Report) -> None:
    """Tell which nodes --ignore names that are none of this run's: no error, for the next list may have them."""
    here = {*(node.name for node in report.nodes), *report.dropped}
    for ignore in settings.ignore:
        strange = set(unfold(ignore.nodes)) - here if ignore.nodes else set()
        if strange:
            say(f"ignore {ignore.check}={ignore.nodes}: {fold(strange)} is not among the nodes, {fold(here)}")


def say(words: str) -> None:
    """Say it on standard error; what a node wrote in it cannot steer the terminal."""
    click.echo(f"ncheck: {printable(words, _LONGEST)}", err=True)


def _dropped(report: Report) -> Report:
    """Tell what --drop-bad went on without."""
    if report.dropped:
        from ncheck.report.console import left_out

        say(left_out(report.dropped, len({*report.dropped, *(node.name for node in report.nodes)})))
    return report
