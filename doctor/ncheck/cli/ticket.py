"""ticket: what a recording and the history know of one node, as a folder or a zip archive for the vendor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examine import say, settings_of
from ncheck.cli.options import CONFIG, READ_HISTORY, GroupedCommand, GroupedOption, files, options
from ncheck.errors import EXIT_CLEAN, SettingsError
from ncheck.hostlist import fold, quoted

if TYPE_CHECKING:
    from ncheck.history.ticket import KnownOfNode
    from ncheck.settings import Settings

_FROM = click.option(
    "--from", "recording", cls=GroupedOption, heading="Output", metavar="DIR", shell_complete=files,
    help="A recording that has the node (ncheck nodes.txt --record DIR).",
)  # fmt: skip
_PATH = click.option(
    "-o", "path", cls=GroupedOption, heading="Output", metavar="DIR | FILE.zip", shell_complete=files,
    help="The folder or zip archive to make; nothing is overwritten.  [ticket-NODE.zip]",
)  # fmt: skip


@click.command(cls=GroupedCommand, short_help="Collect what a vendor asks for about a node.")
@click.argument("node")
@options((_FROM,), READ_HISTORY, (_PATH,), CONFIG)
def ticket(node: str, recording: str | None, path: str | None, **given: object) -> int:
    """Make a folder or zip archive about one node: what failed and since when, serial numbers, firmware, kernel lines,
    counters, measurements, and the node's answers. Secrets are removed; host names and addresses remain.

    \b
    ncheck ticket gpu03 --from recorded --history cluster.db   ticket-gpu03.zip
    ncheck ticket gpu03 --from recorded -o gpu03/              a folder
    ncheck ticket gpu03 --history cluster.db                   without kernel lines and firmware

    Nothing is asked of the node. The exit code is 0 if the files were written, also for a node without a fault of its
    hardware: the headline of ticket.md then says that none was found.
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.files import new_place, write_folder, write_zip
    from ncheck.history.ticket import headline, ticket_files

    settings = settings_of({**given, "local": True})
    path = path or f"ticket-{node}.zip"
    if recording is None and settings.history is None:
        raise click.UsageError("name what is known of the node: --from DIR, --history FILE, or both")
    known = _known(node, recording, settings)
    write: Callable[[str, str, dict[str, str]], None] = write_zip if path.endswith(".zip") else write_folder
    new_place(path, "-o")
    write(path, "-o", ticket_files(known))
    say(headline(known))
    say(f"wrote {path}; host names and addresses are in it, secrets were removed")
    return EXIT_CLEAN


def _known(node: str, recording: str | None, settings: Settings) -> KnownOfNode:
    """Read what there is. Raises NcheckError, also where neither the recording nor the history has the node."""
    from ncheck.history.ticket import KnownOfNode

    known = _of_history(KnownOfNode(node), settings.history) if settings.history else KnownOfNode(node)
    if recording is not None:
        return _of_recording(known, recording, settings)
    if known.own_past is None:
        raise SettingsError(
            f"no run in {settings.history} examined {quoted(node)}; all nodes: "
            f"ncheck history --history {settings.history}"
        )
    return known


def _of_history(known: KnownOfNode, path: str) -> KnownOfNode:
    from ncheck.history.past import past_of
    from ncheck.history.store import History

    history = History(path)
    spans = history.spans()
    return replace(known, past=past_of(history.runs(), spans), spans=spans)


def _of_recording(known: KnownOfNode, directory: str, settings: Settings) -> KnownOfNode:
    """Judge the recording again: by all checks, and nothing is ignored or added to the history."""
    from ncheck.fleet.recording import Recording
    from ncheck.observer import Silent
    from ncheck.pipeline import replay

    recorded = Recording(directory)
    names = [one.node for one in recorded.heads]
    if known.node not in names:
        raise SettingsError(f"{directory} has no node {quoted(known.node)}; its nodes: {fold(names)}")
    evidence = next(one for one in recorded.evidence() if one.node == known.node)
    report = replay(directory, replace(settings, history=None, notify=None, select=(), ignore=()), Silent())
    return replace(known, report=report, evidence=evidence, recorded=evidence.began)
