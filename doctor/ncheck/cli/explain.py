"""explain, list, read, schema, allow: the commands that need no node."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ncheck.cli.options import SPOKEN, checks, files, options
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS, NcheckError, SettingsError
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.settings.own_checks import OwnCheck
    from ncheck.steps.registry import Registry
    from ncheck.triage.clue import Clue


@click.command(short_help="Explain a check, a cause, a word of a report, or an error text.")
@click.argument("what", nargs=-1, required=True, metavar="CODE|NAME|WORD|TEXT", shell_complete=checks)
@options(SPOKEN)
def explain(what: tuple[str, ...], lang: str) -> int:
    """Print the page of a check, given by code or name: what it finds, why it matters, what to type.

    \b
    ncheck explain NC402                      a check
    ncheck explain wrong_nic                  a cause that ncheck triage names
    ncheck explain busbw                      a word: NV18, PIX, busbw, rail, GID, Xid, verdict, rendezvous, slots ...
    ncheck explain "Address already in use"   an error text: what it means in a log, and the checks that are near
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.cli.examine import language_for
    from ncheck.report.language import speaking
    from ncheck.report.listing import show_page

    with speaking(language_for(lang, sys.stdout)):
        show_page(page_about(" ".join(what).strip()), sys.stdout, os.environ)
    return EXIT_CLEAN


def page_about(text: str) -> str:
    """Return the page of a check, a word or an error text, as Markdown. Raises NcheckError with similar names."""
    from ncheck.glossary import word_of
    from ncheck.report.listing import page_of
    from ncheck.steps.registry import load_checks
    from ncheck.triage.causes import NAMED

    registry = load_checks(_of_this_site(text))
    if registry.find(text):
        return page_of(registry, text)
    if (cause := text.lower().replace("-", "_")) in NAMED:  # wrong-nic
        return _of_text(registry, cause)
    if word := word_of(text):
        return f"# {word.name}\n\n{word.meaning}\n{_checks(registry, word.codes)}"
    if " " in text or not (registry.matching(text) or re.search(r"^NC\d|^X\d|-", text, re.IGNORECASE)):
        return _of_text(registry, text)
    return page_of(registry, text)  # raises with similar names


def _of_this_site(*words: str) -> tuple[OwnCheck, ...]:
    """Return the [[check]] of the ncheck.toml that a run would use here.

    Raises SettingsError where it cannot be read and a word can only be a code in it.
    """
    from ncheck.settings.file import read_settings_file

    try:
        return read_settings_file(None, os.environ, Path()).checks
    except SettingsError:
        if any(re.fullmatch(r"X\d+", word) for word in words):
            raise
        return ()


def _of_text(registry: Registry, text: str) -> str:
    """Return what an error text means in a job's log, and the checks that are near to it, those that it names first."""
    from ncheck.glossary import found, names, near
    from ncheck.report.language import tr
    from ncheck.triage.causes import NAMED, page_of
    from ncheck.triage.log_clues import clues_in

    cause = NAMED.get(text.lower())  # wrong_nic
    about = f"\n*{tr('a cause that ncheck triage names')}*\n\n{page_of(cause)}" if cause else ""
    causes, codes = (
        [_cause(one) for one in clues_in([text])],
        found(registry, text.replace("_", " ") if cause else text),
    )
    if not cause and not causes and not codes:
        more = near(text) or "ncheck list shows all checks, docs/causes.md all causes"
        raise NcheckError(f"{printable(text)!r} is no check, cause or error that ncheck knows; {more}")
    heading = tr("In the log of a job")
    parts = [f"\n## {heading}\n\n" + "\n".join(causes) + "\n" if causes else "", _checks(registry, codes)]
    named = codes and names(registry.select(codes[:1])[0], text)
    body = "".join(reversed(parts) if named else parts)
    return f"# {printable(text)}\n{about}{body}\n{tr('To find the cause of a job: ncheck triage --logs DIR')}\n"


def _cause(clue: Clue) -> str:
    from ncheck.report.language import tr, translation
    from ncheck.triage.causes import CAUSES

    known = translation(CAUSES[clue.cause].meaning) if clue.cause in CAUSES else ""
    others = tr(", or: {causes}", causes=", ".join(clue.others)) if clue.others else ""
    typed = tr("; to type: `{command}`", command=clue.command) if clue.command else ""
    return f"- {clue.cause or tr('no cause by itself')}{tr(': ')}{known or clue.meaning}{others}{typed}"


def _checks(registry: Registry, codes: Sequence[str]) -> str:
    from ncheck.report.language import tr

    rows = [registry.one(code) for code in codes]
    listed = "".join(f"- {check.code} {check.name}{tr(': ')}{tr(check.title)}\n" for check in rows)
    return f"\n## {tr('Checks')}\n\n{listed}" if rows else ""


@click.command("list", short_help="List the checks: all, of a topic, or by code.")
@click.argument("words", nargs=-1, metavar="[CODE|TOPIC ...]", shell_complete=checks)
@click.option("-o", "output", type=click.Choice(["console", "json"]), default="console", help="Output format.")
@options(SPOKEN)
def list_checks(words: tuple[str, ...], output: str, lang: str) -> None:
    """List the checks by topic: code, name, severity and title.

    \b
    ncheck list            all of them
    ncheck list NC2        those whose code begins so
    ncheck list versions   those of a topic: ssh, versions, network, infiniband, gpus, host, measured, ranks, expected
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.cli.examine import language_for
    from ncheck.report.language import speaking
    from ncheck.report.listing import as_json, print_list
    from ncheck.steps.registry import load_checks

    registry = load_checks(_of_this_site(*words))
    chosen = {check.code for word in words for check in registry.meant(word)}
    listed = [check for check in registry.listed if not words or check.code in chosen]
    if output == "json":
        click.echo(as_json(listed), nl=False)
    else:
        with speaking(language_for(lang, sys.stdout)):
            print_list(listed, sys.stdout, os.environ)


@click.command(
    short_help="Read the saved output of a tool, and judge it.",
    context_settings={"ignore_unknown_options": True},  # a KIND may be `nvidia-smi -q`
)
@click.argument("words", nargs=-1, metavar="[KIND] [FILE]", shell_complete=files)
@click.option(
    "-o",
    "form",
    type=click.Choice(["text", "json"]),
    help="Output format: text for people, or JSON, the default where the output is not a terminal.",
)
@click.pass_context
def read(context: click.Context, /, words: tuple[str, ...], form: str | None) -> int:
    """Read the saved output of a tool and print its facts and what ncheck says of them.

    \b
    ncheck read topo.txt             paste a matrix, get a judgement; the text shows which tool it is
    nvidia-smi | ncheck read         standard input, also as -
    ncheck read nvidia-smi -q q.txt  KIND is the name of a tool, or of a family of tools

    An unknown KIND lists all kinds. If the tool failed or its output cannot be parsed, the result has an `error`. The
    exit code is 1 if nothing could be read. For the cause of a failed job: ncheck triage --logs DIR.
    """  # noqa: D301  click ends a paragraph's folding at \b
    if words and words[0].startswith("--"):
        raise click.NoSuchOption(words[0], ctx=context)
    kind, file = _kind_and_file(words)
    from ncheck.read.text import read_all, read_any

    text = _text(kind, file)
    readings = read_all(kind, text) if kind else read_any(text)
    from ncheck.read.report import as_json, as_text
    from ncheck.report.json import without_delete

    if (form or ("text" if sys.stdout.isatty() else "json")) == "text":
        click.echo(as_text(readings), nl=False)
    else:
        click.echo(without_delete(as_json(readings)))
    return EXIT_FINDINGS if all(reading.facts.get("error") for reading in readings) else EXIT_CLEAN


def _kind_and_file(words: tuple[str, ...]) -> tuple[str, str]:
    """Return the kind, "" if the text is to tell it, and the file. A single word is a file if one has this name."""
    from ncheck.read.text import reader_of

    if not words:
        return "", _standard_input()
    *kind, last = words
    if last == "-" or _exists(last):
        return " ".join(kind), last
    if last.startswith("-") or (reader_of(" ".join(words)) and (not kind or not reader_of(" ".join(kind)))):
        return " ".join(words), _standard_input()
    return " ".join(kind), last


def _exists(file: str) -> bool:
    try:
        return Path(file).exists()
    except (OSError, ValueError):
        return False  # its message comes when it is opened


def _standard_input() -> str:
    if sys.stdin.isatty():
        raise click.UsageError("give a FILE, or pipe the text: nvidia-smi topo -m | ncheck read")
    return "-"


@click.command(short_help="Print the JSON Schema of the report.")
def schema() -> None:
    """Print the JSON Schema of the report that -o json writes."""
    from ncheck.report.schema import schema_text

    click.echo(schema_text(), nl=False)


@click.command(short_help="Approve the commands and files of an ncheck.toml.")
@click.argument("file", default="ncheck.toml", metavar="[FILE]")
def allow(file: str) -> None:
    """Approve the keys of ./ncheck.toml, or of FILE, that run commands (python, setup, enter, rsh, sudo, ssh-config,
    [[check]]) or name a file: history, and nodes, identity and requirements elsewhere; and docs, whose
    links are followed.

    Without this they are ignored in a file that was only found in the current folder. The approval is for this path
    with this content, with that of checks.d, and of the ssh configuration that it names: a change of any ends it.
    """
    from ncheck.settings.approval import approve
    from ncheck.settings.file import read_file

    path = Path(file).expanduser()
    settings, content = read_file(path, file, None)
    if not settings.to_approve:
        raise SettingsError(f"{printable(file)}: it has no key that needs an approval")
    approve(path, settings.approval_of(content, os.environ), os.environ)
    for name, value in settings.to_approve:
        click.echo(f"{printable(name)} = {printable(value, len(value))}")
    click.echo(f"approved in {printable(str(path.resolve()), 4096)}, until the file changes")


_PACKED = {b"\x1f\x8b": "zcat", b"BZh": "bzcat", b"\xfd7zXZ": "xzcat", b"\x28\xb5\x2f\xfd": "zstdcat"}
_MIB = 2**20
_LARGEST_LOG, _LARGEST = 64 * _MIB, 8 * _MIB  # bytes of most logs, and far above any tool's output


def _text(kind: str, file: str) -> str:
    """Return the text of a file; undecodable bytes are replaced. Raises NcheckError if it cannot be read."""
    from ncheck.parse.capture import decoded

    most = _LARGEST_LOG if kind in ("", "log", "hangs") else _LARGEST
    command = f"ncheck read {kind} -" if kind else "ncheck read -"
    try:
        data = sys.stdin.buffer.read(most + 1) if file == "-" else _start_of(file, most + 1)
    except OSError as error:
        from ncheck.read.text import KINDS

        known = f"; as a KIND it is unknown: choose from {', '.join(KINDS)}" if not kind and "/" not in file else ""
        raise NcheckError(f"{file}: {error.strerror}{known if isinstance(error, FileNotFoundError) else ''}") from error
    for start, program in _PACKED.items():
        if data.startswith(start):
            raise NcheckError(f"{file} is compressed; use: {program} {shlex.quote(file)} | {command}")
    if len(data) > most:
        name, end = ("standard input", "") if file == "-" else (file, f" {shlex.quote(file)}")
        line = f"tail -c {most // _MIB}M{end} | {command}"
        raise NcheckError(f"{name} is larger than {most // _MIB} MiB; to read its end: {line}")
    return decoded(data)


def _start_of(file: str, most: int) -> bytes:
    from ncheck.files import reading

    with reading(file) as stream:
        return stream.read(most)
