"""What all commands that examine nodes share: settings from options, the run, and what is printed about it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from ncheck.cli.options import ProgramCommand
from ncheck.errors import EXIT_FINDINGS, InventoryError, SettingsError
from ncheck.hostlist import fold, quoted, unfold
from ncheck.redact import redact
from ncheck.text import LONGEST_COMMAND, printable

if TYPE_CHECKING:
    from ncheck.model.node import Node
    from ncheck.model.report import Report
    from ncheck.observer import Observer
    from ncheck.settings import Ignore, JobEnvironment, Settings

_LONGEST = LONGEST_COMMAND + 100  # characters of one message on standard error: a command in it is never cut


def settings_of(given: Mapping[str, object]) -> Settings:
    """Make settings from options; those that were not given are None or empty. Refuse an --ignore of no known check."""
    from ncheck.settings import Settings, make_settings

    options = {name: value for name, value in given.items() if value not in (None, ())}
    if "level" not in given:  # a command without --level is not made deeper by NCHECK_LEVEL or ncheck.toml
        options["level"] = Settings.level
    folder = _current_folder()
    settings = make_settings(options, os.environ, folder, say)
    settings = replace(settings, run=replace(settings.run, started_in=_shared(folder, settings.environment)))
    _refuse_unknown_checks(settings)
    _refuse_files(settings)
    if settings.failed_of:
        from ncheck.steps.failed_of import narrowed

        return narrowed(settings)
    return settings


def _refuse_unknown_checks(settings: Settings) -> None:
    """Refuse words that name no check: a typo must not be a silent --ignore. Raises SettingsError."""
    if not (settings.ignore or settings.select):
        return
    from ncheck.steps.registry import load_checks

    registry = load_checks(settings.run.own_checks)
    name = "ignore"
    try:
        for ignore in settings.ignore:
            registry.one(ignore.check)
        name = "select"
        for word in settings.select:
            registry.meant(word)
    except SettingsError as error:
        raise SettingsError(f"{settings.named(name)}: {error}") from None


def _refuse_files(settings: Settings) -> None:
    """Refuse files that cannot be written, before any node is asked. Raises SettingsError."""
    named = [("-o", one.path) for one in settings.output]
    named += [("--good-nodes", settings.good_nodes), ("--bad-nodes", settings.bad_nodes)]
    taken = {Path(settings.history).resolve(): "--history"} if settings.history else {}
    for option, path in named:
        if path is None:
            continue
        from ncheck.files import writable

        writable(path, option, settings.nodes_file)
        if other := taken.get(Path(path).resolve()):
            raise SettingsError(f"{option}: {printable(path)} is written by {other} too: choose another file")
        taken[Path(path).resolve()] = option


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise SettingsError(f"the current folder cannot be used: {error.strerror}; change to another: cd") from None


def _shared(folder: Path, environment: JobEnvironment) -> str | None:
    """Return the current folder if it is on a network file system: mpirun changes to it on every node."""
    from ncheck.agent.mount_table import mount_of, own_mounts

    if environment.enter or environment.rsh or not str(folder).isprintable():
        return None
    try:
        on = mount_of(str(folder), own_mounts())
    except OSError:
        return None
    return str(folder) if on and on["network"] else None


def refuse_nodes(context: click.Context, recording: str, nodes: tuple[str, ...], flags: Mapping[str, object]) -> None:
    """Refuse nodes beside a recording, which names its own."""
    if named := [word for word in (*nodes, flags["hosts"], "--slurm" if flags["slurm"] else None) if word]:
        raise click.UsageError(f"--from {recording} names the nodes: remove {named[0]}", context)


def nodes_file(context: click.Context, arguments: tuple[str, ...]) -> str | None:
    """Return the one nodes file of a command line. Raises InventoryError, with a similar name, if it does not exist."""
    if not arguments:
        return None
    path = arguments[0]
    if path != "-" and not _may_exist(path):
        raise InventoryError(_no_such_file(context, path))
    if len(arguments) > 1:
        if isinstance(context.command, ProgramCommand) and not _may_exist(arguments[1]):
            line = f"{context.command_path} {shlex.quote(path)} -- {shlex.join(arguments[1:])}"
            hint = f"a program follows --, as in: {line}"
            raise click.UsageError(f"unexpected argument {quoted(arguments[1])}: {hint}", context)
        raise click.UsageError(f"only one nodes file is allowed: unexpected argument {quoted(arguments[1])}", context)
    return path


def _may_exist(path: str) -> bool:
    """Tell whether a file is there, or may be: in a folder that this user cannot read, opening it says why."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _no_such_file(context: click.Context, path: str) -> str:
    from difflib import get_close_matches

    from ncheck.inventory.read import instead_of_file

    parent = context.parent
    commands = ["--help", "--version"] if parent else []
    if parent and isinstance(parent.command, click.Group):
        commands += parent.command.list_commands(parent)
    folder = Path(path).parent
    files: list[str] = []
    with suppress(OSError):  # no such folder, or one that cannot be listed: no file in it is suggested
        files = [str(folder / entry.name) for entry in folder.iterdir()]
    if path in commands:
        return f"{quoted(path)} is a command, which comes first: ncheck {path}"
    similar = get_close_matches(path, [*commands, *files], n=1, cutoff=0.7)
    hint = f"; did you mean {printable(similar[0])}?" if similar else instead_of_file(path)
    return f"no such file or command: {quoted(path)}{hint}"


def examined(settings: Settings, observer: Observer, listed: tuple[Node, ...] = ()) -> Report:
    """Examine the nodes, those `listed` where the caller has read the inventory. Print which were left out, and write
    the files of --good-nodes and --bad-nodes.
    """
    from ncheck.cli.process import prepare_fan_out, process_seconds
    from ncheck.pipeline import examine
    from ncheck.timeline import Stopwatch

    watch = Stopwatch(before=process_seconds())
    if not listed:
        _say_nobody_named(settings)
    # A shell on this machine inherits the limit, a Slurm step is given it, and there it is judged.
    prepare_fan_out(many=not settings.local and settings.via == "ssh")

    if settings.good_nodes is None and settings.bad_nodes is None:
        return say_dropped(examine(settings, observer, watch, listed))
    from ncheck.inventory.read import read_inventory

    listed = listed or read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    report = say_dropped(examine(settings, observer, watch, listed))
    if report.interrupted:
        files = [path for path in (settings.good_nodes, settings.bad_nodes) if path]
        say(f"interrupted: {' and '.join(files)} {'was' if len(files) == 1 else 'were'} not written")
        return report
    return write_lists(report, listed, settings)


def write_lists(report: Report, listed: tuple[Node, ...], settings: Settings) -> Report:
    """Write which nodes are good and which are bad. An empty list of good ones is not written: a job would use it."""
    from ncheck.files import write_whole
    from ncheck.inventory.good_nodes import listing_of
    from ncheck.report.summary import left_out

    reasons = {**report.dropped, **{bad.node: bad.reason for bad in report.bad}}
    bad = [node.name for node in listed if node.name in reasons]
    good = [node.name for node in listed if node.name not in reasons]
    summary = left_out(reasons, len(listed)) if bad else f"all {len(listed)} nodes"
    if settings.bad_nodes:
        text = listing_of(listed, bad) if bad else ""
        write_whole(settings.bad_nodes, "--bad-nodes", lambda file: file.write(text))
        say(f"wrote {settings.bad_nodes}: {fold(bad) if bad else 'no node'}")
    if settings.good_nodes is None:
        return report
    if not good:
        say(f"{settings.good_nodes} was not written because no node is good: {summary}")
        return replace(report, exit_code=EXIT_FINDINGS)
    write_whole(settings.good_nodes, "--good-nodes", lambda file: file.write(listing_of(listed, good)))
    say(f"wrote {settings.good_nodes}: {summary}")
    return report


def say_dropped(report: Report) -> Report:
    """Print which nodes --drop-bad left out, and return the report."""
    if report.dropped:
        from ncheck.report.summary import left_out

        say(left_out(report.dropped, len({*report.dropped, *(node.name for node in report.nodes)})))
    return report


def all_dropped(report: Report) -> bool:
    """Return whether --drop-bad left out every node."""
    return bool(report.dropped) and all(node.name in report.dropped for node in report.nodes)


def blocking_reasons(report: Report) -> list[str]:
    """Return why the launch plan must not be used, in lines to print."""
    from ncheck.report.language import tr
    from ncheck.report.text import fix_label

    if all_dropped(report):
        return [tr("no node is left")]
    fixes = {
        one: ["  " + tr("{label}: ", label=fix_label(one)) + one.fix] if one.fix else [] for one in report.plan.blockers
    }
    return [line for one, fix in fixes.items() for line in (one.message, *fix)]


def say_unused_ignores(ignores: Sequence[Ignore], report: Report) -> None:
    """Print which nodes of --ignore are not in this run. That is no error: the next list may have them."""
    here = {*(node.name for node in report.nodes), *report.dropped}
    for ignore in ignores:
        unknown = set(unfold(ignore.nodes)) - here if ignore.nodes else set()
        if unknown:
            say(f"ignore {ignore.check}={ignore.nodes}: {fold(unknown)} is not among the nodes {fold(here)}")


def language_for(wanted: str, stream: TextIO) -> str:
    """Return the language to print on this stream; say so where it is not the one that was wanted."""
    if wanted == "en":
        return wanted
    from ncheck.report.language import language_of

    language, why = language_of(wanted, os.environ, stream)
    if why:
        say(why)
    return language


def say(message: str) -> None:
    """Print a message on standard error. Text from a node in it cannot control the terminal."""
    click.echo(f"ncheck: {printable(redact(message), _LONGEST)}", err=True)


Shown = TypeVar("Shown")


def print_in(forms: Mapping[str, Callable[[Shown], str]], outputs: Sequence[str], value: Shown) -> None:
    """Print a value in each of the forms that -o names, as FORMAT or FORMAT=FILE; as text where it names none."""
    chosen = [(form, path) for form, _, path in (one.partition("=") for one in outputs or ("text",))]
    if unknown := [form for form, _ in chosen if form not in forms]:
        raise click.UsageError(f"-o: expected one of {', '.join(forms)}, not {unknown[0]!r}")
    for form, path in chosen:
        text = forms[form](value)
        if path:
            from ncheck.files import write_whole

            write_whole(path, "-o", lambda file, text=text: file.write(text))  # type: ignore[misc]
            say(f"wrote {path}")
        else:
            click.echo(text, nl=False)


def _say_nobody_named(settings: Settings) -> None:
    """Print, before anything is examined, that nothing names a node, and how to examine a list that lies here."""
    from ncheck.inventory.read import names_nobody

    if names_nobody(settings, os.environ):
        command = (click.get_current_context().info_name or "").removeprefix("check")
        here = next((name for name in _LISTS if Path(name).is_file()), "")
        how = f"{'for the list in this folder' if here else 'for others'}: {f'ncheck {command}'.strip()}"
        say(f"no nodes are named, so this is about this machine alone; {how} {here or 'nodes.txt'}")


_LISTS = ("nodes.txt", "hostfile", "hosts.txt", "hosts", "machinefile")  # as a list of nodes is usually called


def observer_for(stream: TextIO, environ: Mapping[str, str], limit: float = 0.0) -> Observer:
    """Return a live table on a terminal, plain lines elsewhere (a log, a pipe, TERM=dumb).

    `limit` is how many seconds the run may take.
    """
    if not stream.isatty() or environ.get("TERM", "dumb") == "dumb":
        from ncheck.report.progress import PlainLines

        return PlainLines(stream, limit=limit)
    from ncheck.report.live_table import LiveTable

    return LiveTable(stream, environ, limit=limit)
