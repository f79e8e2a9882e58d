"""Write what the documents take from the program: `make docs`.

    python release/docs.py            write what changed
    python release/docs.py --check    write nothing; list what is out of date, and end with 1 if anything is

Whole files: docs/checks.md (the checks' pages), docs/causes.md (what triage answers), docs/coverage.md (the tables of
coverage_tables.py), docs/report.schema.json, docs/ncheck.1 (the manual page, from the commands' help), docs/demo.svg (a
real `ncheck demo` in a terminal), doctor/ncheck/settings/given.py (the types of the settings in Python). In others, a
block between `<!-- make docs: KIND WORDS -->` and `<!-- end -->`:

    replay CLUSTER TEXT ...      from `ncheck replay -v fixtures/CLUSTER`: the part that begins with the line with TEXT
    report LANGUAGE CLUSTER      the answer, findings, nodes and topics that `ncheck replay --lang LANGUAGE` prints
    triage FILE                  the first diagnosis that `ncheck triage` prints of a log, or of what --save kept
    read FILE                    what `ncheck read -o text` prints of a tool's output
    history WORD                 after some days of runs (DAYS): what the last report says is new (news), the line
                                 that drains (drain), or what `ncheck history` prints of a node
    plan CLUSTER LAUNCHER        the line that `ncheck plan --for LAUNCHER` prints for that cluster
    file PATH                    a file of docs/examples
    facts                        every fact type, with its fields
    records                      the records of the package, with their fields
    arguments NAME               the arguments of a function of the package
    settings                     the settings that run, replay and diagnose take
    declarations                 what a check may declare
    variables                    the environment variables of the settings
"""

from __future__ import annotations

import fcntl
import html
import inspect
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import TYPE_CHECKING

import api_tables
from given import given_module

if TYPE_CHECKING:
    import click
    from ncheck import Check

TREE = Path(__file__).resolve().parents[1]
PAGES = (*sorted(TREE.glob("README*.md")), *sorted((TREE / "docs").glob("*.md")))
WITH_BLOCKS = [str(page.relative_to(TREE)) for page in PAGES if "<!-- make docs: " in page.read_text(encoding="utf-8")]
CHECKS, DEMO, MANUAL, CAUSES = "docs/checks.md", "docs/demo.svg", "docs/ncheck.1", "docs/causes.md"
COVERAGE, SCHEMA = "docs/coverage.md", "docs/report.schema.json"
GIVEN = "doctor/ncheck/settings/given.py"
COLUMNS, ROWS = 100, 50

_BLOCK = re.compile(r"(?P<begin><!-- make docs: (?P<words>[^>]+) -->\n).*?(?P<end><!-- end -->\n)", re.DOTALL)


def documents() -> dict[str, str]:
    """Return every generated document but the picture: its path in the tree, and its text."""
    texts = {path: (TREE / path).read_text(encoding="utf-8") for path in WITH_BLOCKS}
    return {
        CHECKS: checks_page(),
        CAUSES: causes_page(),
        COVERAGE: coverage_page(),
        MANUAL: manual(),
        SCHEMA: _printed("schema", folder="."),
        GIVEN: given_module(),
        **{path: _BLOCK.sub(_filled, text) for path, text in texts.items()},
    }


def _filled(block: re.Match[str]) -> str:
    kind, *words = block["words"].split()
    return f"{block['begin']}{KINDS[kind](*words).strip()}\n{block['end']}"


# The checks


def checks_page() -> str:
    """Return docs/checks.md: the page of each built-in check under an anchor of its code."""
    topics = checks_by_topic()
    parts = [
        "# Checks\n\n<!-- Written by make docs from the pages in checks/ncheck_checks: change them there. -->\n",
    ]
    number = sum(map(len, topics.values()))
    parts += [f"{number} checks. `ncheck explain CODE` prints the same page in a terminal, `ncheck list` the list.\n"]
    for topic, members in topics.items():
        parts += [table_of_topic(topic, members, lambda code: f"#{code.lower()}"), *map(_check_section, members)]
    return "\n".join(parts)


def checks_by_topic() -> dict[str, list[Check]]:
    """Return the built-in checks under the headings of their topics."""
    from ncheck.report.listing import topic_of
    from ncheck.steps.registry import OURS, load_checks

    topics: dict[str, list[Check]] = {}
    for check in load_checks().checks:
        if check.module.startswith(f"{OURS}."):
            topics.setdefault(topic_of(check.code), []).append(check)
    return topics


def table_of_topic(topic: str, members: list[Check], address: Callable[[str], str]) -> str:
    """Return the heading of a topic and the table of its checks, each with a link to its code's address."""
    rows = [f"| [{c.code}]({address(c.code)}) | {c.name} | {c.severity.value} | {c.title} |\n" for c in members]
    return f"## {topic}\n\n| code | name | severity | what is wrong |\n|---|---|---|---|\n" + "".join(rows)


def _check_section(check: Check) -> str:
    title, _, rest = check.page.strip().partition("\n")
    body = re.sub(r"^## (.*)$", r"**\1**\n", rest.strip(), flags=re.MULTILINE)
    head = f'<a id="{check.code.lower()}"></a>\n\n### {check.code} {check.name}\n'
    return f"{head}\n{title} ({check.severity.value}).\n\n{body}\n"


# The causes


def causes_page() -> str:
    """Return docs/causes.md: what each cause means that triage names, the command that shows it, and its fix."""
    from ncheck.triage.causes import NAMED, page_of

    head = (
        "# Causes\n\n<!-- Written by make docs from doctor/ncheck/triage/causes.py: change them there. -->\n\n"
        "What `ncheck triage` answers: `cause` of each diagnosis is one of these names, and one name is one repair. "
        "`kind` says more of a program's failure: exception, assertion, import, file, permission, memory, killed, "
        "segfault, disk, nan, exit, time-limit, preempted, cancelled. `next` is what to do after it; the lines of a "
        "failure may say more: doctor/ncheck/triage/next_step.py.\n"
    )
    parts = [head]
    for name, cause in NAMED.items():
        parts.append(f'<a id="{name}"></a>\n\n## {name}\n\n{page_of(cause)}')
    return "\n".join(parts)


def coverage_page() -> str:
    """Return docs/coverage.md."""
    from coverage_tables import as_markdown

    return as_markdown()


# Output of the program


def replay(cluster: str, *text: str) -> str:
    """Return one part of a replayed report: from the line in which the text begins to the next line as little indented.

    The text's words may be on two lines.
    """
    printed = _printed("replay", "-v", "--no-color", cluster, folder="fixtures")
    begin = re.search(r"\s+".join(map(re.escape, text)), printed)
    if begin is None:
        raise SystemExit(f"ncheck replay fixtures/{cluster} prints nothing like {' '.join(text)!r}")
    lines, start = printed.splitlines(), printed.count("\n", 0, begin.start())
    depth = _indent(lines[start])
    end = next((n for n in range(start + 1, len(lines)) if _indent(lines[n]) <= depth), len(lines))
    return _as_block("\n".join(lines[start:end]))


def triage(path: str) -> str:
    """Return the cause, the lines that show it and what to type, of a log or of what `ncheck triage --save` kept."""
    folder, _, name = path.rpartition("/")
    printed = _printed("triage", *([name] if name.endswith(".zip") else ["--logs", name]), folder=folder)
    if not re.match(r"\w+ \(\d+% sure\)", printed):
        raise SystemExit(f"ncheck triage of {path} names no cause: {printed}")
    return _as_block("\n\n".join(printed.split("\n\n")[:2]))


def read(path: str) -> str:
    """Return what is read in the output of a tool that somebody saved."""
    folder, _, name = path.rpartition("/")
    printed = _printed("read", "-o", "text", name, folder=folder)
    if printed.startswith("unknown:"):
        raise SystemExit(f"ncheck read {path}: {printed}")
    return _as_block(printed)


# Which recording was made on which day of November 2026.
DAYS = {2: "healthy-4x8-h100", 9: "port-polling", 10: "port-polling", 12: "healthy-4x8-h100", 20: "port-polling"}
NODE = "gpu02"  # whose history is printed


def history(word: str) -> str:
    """Return what the last day's report says of the days before ("news"), its -o slurm ("drain"), or of a node."""
    news, drain, node = _days()
    if word in ("news", "drain"):
        report, begin = {"news": (news, "· history: "), "drain": (drain, "scontrol ")}[word]
        return _as_block("\n".join(line for line in report.splitlines() if line.startswith(begin)))
    if word != NODE:
        raise SystemExit(f"the history of {NODE} is printed, not of {word}")
    return _as_block(node.partition("\nMeasured")[0])


@cache
def _days() -> tuple[str, str, str]:
    """Replay all days into one history; return the last day's report, its -o slurm, and the history of NODE."""
    from ncheck.fleet.recording import load, save

    with TemporaryDirectory() as folder:
        for day, cluster in DAYS.items():
            began = datetime(2026, 11, day, 12, tzinfo=timezone.utc).timestamp()
            save(Path(folder, f"day{day}"), [replace(one, began=began) for one in load(TREE / "fixtures" / cluster)])
            report = _printed("replay", f"day{day}", "--history", "cluster.db", "--no-color", folder=folder)
        return (
            report,
            _printed("replay", f"day{day}", "-o", "slurm", folder=folder),
            _printed("history", NODE, "--history", "cluster.db", folder=folder),
        )


def report(language: str, cluster: str) -> str:
    """Return a report in another language, without what changes from run to run: time, host and seconds."""
    printed = _printed("replay", "--no-color", "--lang", language, cluster, folder="fixtures")
    _, *parts = printed.rstrip().split("\n\n")
    return _as_block("\n\n".join([parts[-1].splitlines()[-1], *parts[:3]]))


def _as_block(text: str) -> str:
    return f"```text\n{dedent(text).strip()}\n```"


@cache
def _printed(*words: str, folder: str) -> str:
    """Return what an ncheck command prints that is typed in a folder of the tree."""
    from ncheck.cli.main import main as run

    paper, here, environ = io.TextIOWrapper(io.BytesIO(), "utf-8"), Path.cwd(), dict(os.environ)
    os.chdir(TREE / folder)
    _set_environ({**_environ(), "COLUMNS": "80"})
    try:
        with redirect_stdout(paper):
            code = run(words)
    finally:
        os.chdir(here)
        _set_environ(environ)
    if code not in (0, 1):
        raise SystemExit(f"ncheck {' '.join(words)} in {folder}: exit code {code}")
    paper.seek(0)
    return paper.read()


def _set_environ(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()


def _environ() -> dict[str, str]:
    """Return the environment without settings of ncheck's and of the terminal's."""
    own = ("NCHECK_", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    if "PYTHONPATH" in kept:  # commands are typed in other folders
        kept["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, kept["PYTHONPATH"].split(os.pathsep)))
    return {**kept, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "", "TZ": "UTC"}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def plan(cluster: str, launcher: str) -> str:
    """Return the line, or the lines of each node, for one launcher."""
    import ncheck

    report = ncheck.replay(str(TREE / "fixtures" / cluster), launcher=launcher, program=("python", "train.py"))
    return f"```sh\n{report.plan.lines[launcher]}\n```"


def file(path: str) -> str:
    """Return a file of docs/examples as a code block."""
    language = {"Dockerfile": "dockerfile", ".sh": "sh"}.get(Path(path).suffix or Path(path).name, "text")
    return f"```{language}\n{_written(f'docs/examples/{path}')}```"


# The command line


def variables() -> str:
    """Return the table of the variables, each with the option that it stands for."""
    rows = (f"| `{name}` | {_markdown(meaning)} |\n" for name, meaning in _variables())
    return "| variable | meaning |\n|---|---|\n" + "".join(rows)


def _markdown(meaning: str) -> str:
    return re.sub(r"(?<![\w-])(-[\w-]+)", r"`\1`", meaning)


def _variables() -> Iterator[tuple[str, str]]:
    from ncheck.settings import VARIABLES

    options = {option.name: option.opts[0] for _, option in _options("check")}
    yield "NCHECK_CONFIG", "as --config"
    for name, field in VARIABLES.items():
        yield name, f"as {options[field]}"
    yield "NCHECK_DEBUG", "1 prints the traceback of a bug in ncheck"
    yield "NO_COLOR", "not empty: no colors, as --no-color"


def manual() -> str:
    """Return the manual page in roff, from the commands' own help. It has no date: the same program, the same page."""
    import ncheck
    from ncheck.cli.main import commands

    top = commands.make_context("ncheck", [], resilient_parsing=True)
    found = {name: commands.get_command(top, name) for name in commands.list_commands(top)}
    parts = [
        f'.TH NCHECK 1 "" "ncheck {ncheck.__version__}" "User Commands"',
        ".SH NAME", "ncheck \\- check a multi\\-node GPU cluster before a job starts",
        ".SH SYNOPSIS", *(_synopsis(name, command, top) for name, command in found.items() if command),
        ".SH DESCRIPTION", _roff(inspect.cleandoc(commands.help or "")),
        ".SH COMMANDS",
    ]  # fmt: skip
    for name, command in found.items():
        parts += [f'.SS "{_text(name)}"', _roff(inspect.cleandoc(command.help or "") if command else "")]
    parts += [".SH OPTIONS", *_option_list(list(found))]
    for words, meaning in (("-h, --help", "Show the help and exit."), ("--version", "Show the version and exit.")):
        parts.append(f".TP\n.B {_text(words)}\n{_text(meaning)}")
    parts += [".SH ENVIRONMENT", *(f".TP\n.B {_text(name)}\n{_text(meaning)}" for name, meaning in _variables())]
    files = "ncheck.toml", "Settings, in the current folder or named by --config: see docs/guide.md."
    parts += [".SH FILES", f".TP\n.I {_text(files[0])}\n{_text(files[1])}"]
    parts += [".SH EXIT STATUS", *(f".TP\n.B {code}\n{_text(meaning)}" for code, meaning in _EXIT_CODES.items())]
    return "\n".join(parts) + "\n"


_EXIT_CODES = {
    0: "Clean.",
    1: "Findings that count: see --fail-on.",
    2: "Usage error.",
    3: "A bug in ncheck.",
    130: "Interrupted.",
}


def _synopsis(name: str, command: click.Command, top: click.Context) -> str:
    import click

    usage = command.get_usage(click.Context(command, info_name=name, parent=top))
    words = " ".join(usage.removeprefix("Usage: ncheck").split())
    return f".B ncheck {_text(words)}\n.br"


def _options(*names: str) -> Iterator[tuple[str, click.Option]]:
    """Yield each option of these commands, with the command."""
    import click
    from ncheck.cli.main import commands

    for name in names:
        command = commands.get_command(click.Context(commands), name)
        for option in command.params if command else ():
            if isinstance(option, click.Option):
                yield name, option


def _option_list(names: list[str]) -> Iterator[str]:
    """Yield the options under their headings, each once, with the commands that have it."""
    import click

    users: dict[tuple[str, str, str], list[str]] = {}
    for name, option in _options(*names):
        written, meaning = option.get_help_record(click.Context(click.Command(name))) or ("", "")
        users.setdefault((getattr(option, "heading", "Other"), written, meaning), []).append(name)
    headings = dict.fromkeys(heading for heading, _, _ in users)
    for heading in headings:
        yield f'.SS "{_text(heading)}"'
        for (own, written, meaning), commands in users.items():
            if own == heading:
                yield f".TP\n.B {_text(written)}\n{_text(meaning)} ({_text(', '.join(commands))})"


def _roff(text: str) -> str:
    """Return paragraphs; one that click must not wrap is shown line by line."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        raw, body = paragraph.startswith("\b"), paragraph.removeprefix("\b").strip("\n")
        shown = "\n".join(map(_text, body.splitlines()))
        parts.append(f".PP\n.nf\n{shown}\n.fi" if raw else f".PP\n{shown}")
    return "\n".join(parts)


def _text(text: str) -> str:
    """Escape what roff reads: backslashes, hyphens that somebody copies, and a dot or quote that begins a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


KINDS: Mapping[str, Callable[..., str]] = {
    "replay": replay, "report": report, "triage": triage, "read": read, "history": history, "plan": plan, "file": file,
    "variables": variables,
    "facts": api_tables.facts, "records": api_tables.records, "arguments": api_tables.arguments,
    "settings": api_tables.settings, "declarations": api_tables.declarations,
}  # fmt: skip


# The picture


def picture() -> str:
    """Run the demo in a terminal, and return what it shows as SVG. It fetches nothing: no font from elsewhere."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    with Path(os.devnull).open("w") as nowhere:
        paper = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="standard")
        paper.print(Text.from_ansi(_in_terminal("demo")))
        page = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        return paper.export_svg(title="ncheck demo", code_format=page, unique_id="ncheck")


# ncheck, run by this user on this machine: its report says by whom and where it was made.
_ELSEWHERE = """
import socket, sys
socket.gethostname = lambda: "login1"
import ncheck.this_machine.origin
ncheck.this_machine.origin.user_name = lambda number: "ada"
sys.argv[0] = "ncheck"
from ncheck.__main__ import main
sys.exit(main())
"""


def _in_terminal(*words: str) -> str:
    """Return all that a command prints to a terminal on standard output."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    argv = [sys.executable, "-c", _ELSEWHERE, *words]
    with subprocess.Popen(argv, cwd=TREE, stdout=theirs, stderr=subprocess.DEVNULL, env=_environ()):
        os.close(theirs)
        with os.fdopen(ours, "rb", closefd=True) as screen:
            printed = b"".join(_until_closed(screen.fileno()))
    return printed.decode().replace("\r\n", "\n")


def _until_closed(screen: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:  # Linux's word for a terminal whose last writer is gone
            return
        if not part:
            return
        yield part


def words_of(svg: str) -> str:
    """Return what a picture says, without what differs from run to run: ports and times."""
    text = html.unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).replace("\xa0", " ")
    # port 46351, ssh -p 34073, 0.5 s, 2026-11-22, 10:31
    return re.sub(r"(?:port|-p)\s\d{4,5}|\d+\.\d s\b|\d{4}-\d\d-\d\d|\d\d:\d\d(?::\d\d)?", "...", text)


def main(words: list[str]) -> int:
    """Write, or with --check only list, the documents that differ from what the program says now."""
    made = {path: text for path, text in documents().items() if text != _written(path)}
    drawn = picture()
    if words_of(drawn) != words_of(_written(DEMO)):
        made[DEMO] = drawn
    for path, text in made.items():
        sys.stdout.write(f"{'out of date' if '--check' in words else 'written'}: {path}\n")
        if "--check" not in words:
            (TREE / path).write_text(text, encoding="utf-8")
    return int("--check" in words and bool(made))


def _written(path: str) -> str:
    file = TREE / path
    return file.read_text(encoding="utf-8") if file.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
