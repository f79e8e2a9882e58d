"""bundle: a recording, a job, logs and topology files in one zip archive without secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ncheck.cli.examine import say
from ncheck.cli.options import GroupedCommand, GroupedOption, files, options
from ncheck.errors import EXIT_CLEAN, SettingsError


def _option(*names: str, **how: Any) -> Callable[[Any], Any]:  # noqa: ANN401  as of click
    return click.option(*names, cls=GroupedOption, heading="Output", shell_complete=files, **how)


_PARTS = (
    _option("--job", metavar="FILE.zip", help="The job (ncheck triage --save FILE.zip)."),
    _option("--logs", metavar="DIR", help="The folder or file of its logs; of large ones the head and the tail."),
    _option("--topology", metavar="FILE", help="What NCCL wrote to NCCL_TOPO_DUMP_FILE."),
    _option("-o", "path", metavar="FILE.zip", required=True, help="The archive to make; nothing is overwritten."),
)


@click.command(cls=GroupedCommand, short_help="Pack a run, a job and its logs to send them.")
@click.argument("recording", required=False, metavar="[RECORDING]", shell_complete=files)
@options(_PARTS)
def bundle(recording: str | None, job: str | None, logs: str | None, topology: str | None, path: str) -> int:
    """Pack a recording, a job, its logs and NCCL's topology in one zip archive. Secrets are removed; host names and
    addresses remain.

    \b
    ncheck bundle recorded/ -o bundle.zip                         a run (ncheck nodes.txt --record recorded/)
    ncheck bundle recorded/ --job hang.zip --logs logs/ -o bundle.zip
    ncheck replay bundle.zip                                      the same verdict anywhere
    ncheck triage bundle.zip                                      the job in it
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.files import new_place, write_zip
    from ncheck.fleet.bundle import bundled

    if recording is job is logs is topology is None:
        raise click.UsageError("name what to pack: a recording, --job FILE, --logs DIR or --topology FILE")
    new_place(path, "-o")
    texts = {"logs": _files_of(logs, "--logs"), "topology": _files_of(topology, "--topology")}
    parts = bundled(recording, job, texts)
    write_zip(path, "-o", parts)
    counts: dict[str, int] = {}
    for name in parts:
        if "/" in name:
            folder = name.split("/", 1)[0]
            counts[folder] = counts.get(folder, 0) + 1
    inside = ", ".join(f"{folder} ({count} files)" for folder, count in counts.items())
    say(f"wrote {path}, {_size(path)}: {inside}; host names and addresses are in it: look at it before you send it")
    return EXIT_CLEAN


def _files_of(path: str | None, option: str) -> list[Path]:
    """Return a file, or the files beneath a folder. No link, pipe or device beneath it is followed or read."""
    if path is None:
        return []
    if not Path(path).is_dir():
        if not Path(path).is_file():
            raise SettingsError(f"{option}: {path}: no such file or folder")
        return [Path(path)]
    beneath = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sorted(one for one in beneath if stat.S_ISREG(one.lstat().st_mode))


def _size(path: str) -> str:
    size = Path(path).stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{max(1, round(size / 1e3))} kB"  # noqa: PLR2004
