"""bundle: a recording, a job, logs and topology files in one zip archive without secrets."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import click

from ncheck.cli.check import run_and_show
from ncheck.cli.examine import examined, nodes_file, say
from ncheck.cli.options import CONFIG, JOB, PACE, SSH, WHICH, GroupedCommand, GroupedOption, files, options
from ncheck.errors import EXIT_CLEAN, EXIT_INTERRUPTED, SettingsError
from ncheck.hostlist import quoted
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.fleet.bundle import Bundle

_LARGEST = 64 * 2**20  # characters of an answer
_MOST_NOTES = 8


def _option(*names: str, **how: Any) -> Callable[[Any], Any]:  # noqa: ANN401  as of click
    return click.option(*names, cls=GroupedOption, heading="Output", shell_complete=files, **how)


_PARTS = (
    _option("--job", metavar="FILE.zip", help="The job (ncheck triage --save FILE.zip)."),
    _option("--logs", metavar="DIR", help="The folder or file of its logs; of large ones the head and the tail."),
    _option("--topology", metavar="FILE", help="What NCCL wrote to NCCL_TOPO_DUMP_FILE."),
    _option("--history", "past", metavar="FILE", help="A history file, of which what is about these nodes is packed."),
    _option(
        "--anonymous", is_flag=True,
        help="Put other names and addresses in place of all real ones. FILE.names.json beside the archive has the real "
        "ones: keep it.",
    ),
    _option(
        "--restore", metavar="FILE.names.json",
        help="Print a text (an answer; - for standard input) with the real names and addresses, and pack nothing.",
    ),
    _option("-o", "path", metavar="FILE.zip", help="The archive to make; nothing is overwritten."),
)  # fmt: skip


@click.command(cls=GroupedCommand, short_help="Pack a run, a job and its logs to send them.")
@click.argument("source", nargs=-1, metavar="[RECORDING | NODES]", shell_complete=files)
@options(_PARTS, WHICH, SSH, JOB, PACE, CONFIG)
@click.pass_context
def bundle(
    context: click.Context, /, source: tuple[str, ...], path: str | None, restore: str | None, *, anonymous: bool,
    **given: Any,  # noqa: ANN401  as of click
) -> int:  # fmt: skip
    """Pack a recording, a job, its logs and NCCL's topology in one zip archive. Secrets are removed; host names and
    addresses remain, unless --anonymous is given. Nodes are examined first, with the report and the exit code of
    ncheck check.

    \b
    ncheck bundle nodes.txt -o bundle.zip                         examine the nodes, and pack what they answered
    ncheck bundle recorded/ -o bundle.zip                         a run (ncheck nodes.txt --record recorded/)
    ncheck bundle recorded/ --job hang.zip --logs logs/ -o bundle.zip
    ncheck bundle recorded/ --anonymous -o bundle.zip             under other names
    ncheck bundle answer.txt --restore bundle.names.json          the answer, under the real ones
    ncheck replay bundle.zip                                      the same verdict anywhere
    ncheck triage bundle.zip                                      the job in it
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.files import new_place
    from ncheck.fleet.bundle import bundled, files_of

    if restore is not None:
        if len(source) > 1 or path is not None or anonymous or any(value not in (None, ()) for value in given.values()):
            raise click.UsageError("--restore prints one text, and packs nothing: leave out all else")
        click.echo(_restored(source[0] if source else "-", restore), nl=False)
        return EXIT_CLEAN
    parts = {name: given.pop(name) for name in ("job", "logs", "topology", "past")}
    examining = _has_nodes(source, parts, given)
    if path is None:
        raise click.UsageError("name the archive to make: -o FILE.zip")
    new_place(path, "-o")
    keep = f"{path.removesuffix('.zip')}.names.json"
    if anonymous:
        new_place(keep, "--anonymous")
    texts = {name: files_of(parts[name], f"--{name}") for name in ("logs", "topology")}
    code, recording = EXIT_CLEAN, source[0] if source else None
    with tempfile.TemporaryDirectory(prefix="ncheck-") as folder:
        if examining:
            recording = str(Path(folder) / "recorded")
            code = run_and_show(examined, {**given, "nodes_file": nodes_file(context, source), "record": recording})
            if code == EXIT_INTERRUPTED:
                say(f"interrupted: {path} was not written")
                return code
        packed = bundled(recording, parts["job"], texts, parts["past"], SystemRandom() if anonymous else None)
    _write(packed, path, keep)
    for note in packed.notes[:_MOST_NOTES]:
        say(note)
    if (more := len(packed.notes) - _MOST_NOTES) > 0:
        say(f"{more} more notes as these are in MANIFEST.json of the archive")
    counts = Counter(name.split("/", 1)[0] for name in packed.members if "/" in name)
    inside = ", ".join(f"{folder} ({count} files)" for folder, count in counts.items())
    real = "host names and addresses are in it: look at it before you send it"
    replaced = (
        "names and addresses are replaced, numbers in names are not: look at it before you send it; "
        f"keep {keep}, which has the real ones, and do not send it"
    )
    say(f"wrote {path}, {_size(path)}: {inside}; {replaced if packed.names else real}")
    return code


def _write(packed: Bundle, path: str, keep: str) -> None:
    """Write the archive and, beside it, the names that it replaces: both or none. Raises SettingsError."""
    from ncheck.files import write_whole, write_zip

    if packed.names is None:
        write_zip(path, "-o", packed.members)
        return
    document = packed.names.document()
    write_whole(keep, "--anonymous", lambda file: file.write(document), 0o600)
    try:
        write_zip(path, "-o", packed.members)
    except BaseException:
        Path(keep).unlink(missing_ok=True)
        raise


def _has_nodes(source: tuple[str, ...], parts: Mapping[str, str | None], given: Mapping[str, object]) -> bool:
    """Return whether nodes are named, which are examined first. Refuse what makes no bundle."""
    if len(source) > 1:
        raise click.UsageError(f"only one recording or nodes file is allowed: unexpected argument {quoted(source[1])}")
    if given["hosts"] or given["slurm"] or (source and not Path(source[0]).is_dir()):
        return True
    if not (source or any(parts.values())):
        raise click.UsageError("name what to pack: a recording, nodes, --job FILE, --logs DIR or --topology FILE")
    if useless := next((name for name, value in given.items() if value not in (None, ())), ""):
        raise click.UsageError(f"--{useless.replace('_', '-')} is for nodes that are examined, and none are named")
    return False


def _restored(path: str, names: str) -> str:
    """Return the text of a file, or of standard input, under the real names."""
    from ncheck.fleet.anonymous import restored

    shown = path
    try:
        with click.open_file(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LARGEST)
        shown = names
        lines = restored(text, Path(names).read_text("utf-8")).split("\n")
        return "\n".join("\t".join(printable(word, 2 * len(word) + 100) for word in line.split("\t")) for line in lines)
    except (OSError, ValueError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"--restore: {printable(shown)}: {printable(str(reason), 200)}") from None


def _size(path: str) -> str:
    size = Path(path).stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{max(1, round(size / 1e3))} kB"  # noqa: PLR2004
