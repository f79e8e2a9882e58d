"""`ncheck bundle`: a recording, a job, logs and topology files in one zip archive, without secrets.

It is what a person sends who asks for help: `ncheck replay` and `ncheck triage` judge it as they would at home.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ncheck.errors import SettingsError
from ncheck.fleet.archive import JOB, MANIFEST, RECORDING, job_member, load_archive, node_members
from ncheck.fleet.recording import load
from ncheck.lazy_dataclass import dataclass
from ncheck.redact import redact
from ncheck.text import printable
from ncheck.version import __version__

if TYPE_CHECKING:
    from random import Random

    from ncheck.fleet.anonymous import Names

FORMAT = 1
HISTORY = "history/history.json"
ALL_TEXTS = 16 * 2**20  # bytes of all files of a folder: with a recording, a job of 512 ranks is below 20 MB
LARGEST_TEXT, _LEAST = 2**20, 2**14  # bytes of one file: of a longer one its head and its tail


Files = tuple[tuple[Path, ...], int]  # the files of a part, and how many entries are left out


@dataclass(frozen=True)
class Bundle:
    """The members of an archive, the manifest first, what is to be said of them, and the names in it, if replaced."""

    members: Mapping[str, str]
    notes: tuple[str, ...]
    names: Names | None


def bundled(
    recording: str | None,
    job: str | None,
    texts: Mapping[str, Files],
    history: str | None = None,
    random: Random | None = None,
) -> Bundle:
    """Return what to pack. `texts`: the files of each part. `history`: the file of which what is about these nodes is
    packed. `random`, if it is there, chooses other names.

    Raises NcheckError.
    """
    parts: dict[str, str] = {}
    notes: list[str] = []
    nodes: set[str] = set()
    if recording is not None:
        evidence = load(recording)
        nodes.update(one.node for one in evidence)
        parts |= {RECORDING + name: content for name, content in node_members(evidence).items()}
    if job is not None:
        evidence, target = load_archive(job)
        nodes.update(one.node for one in evidence)
        parts |= {JOB + name: content for name, content in {**job_member(target), **node_members(evidence)}.items()}
    if history is not None:
        parts[HISTORY] = _history_of(nodes, history)
    for folder, (paths, left) in texts.items():
        if left:
            notes.append(f"{folder}: {left} left out: links, pipes, devices, or folders that cannot be read")
        most = min(LARGEST_TEXT, max(_LEAST, ALL_TEXTS // max(1, len(paths))))
        taken = paths[: ALL_TEXTS // _LEAST]
        for at, path in enumerate(taken):
            name = f"{folder}/{at:05d}-{_plain(path.name)}"
            parts[name], cut = _text(path, most)
            if cut:
                notes.append(f"{name}: {cut} bytes cut from its middle")
        if len(taken) < len(paths):
            notes.append(f"{folder}: {len(paths) - len(taken)} files left out")
    names = None
    if random is not None:
        from ncheck.fleet.anonymous import anonymous

        parts, notes, names = anonymous(parts, notes, random)
    sizes = {name: len(content.encode("utf-8", "replace")) for name, content in parts.items()}
    manifest = {"ncheck_bundle": FORMAT, "version": __version__, "sizes": sizes, "notes": notes}
    return Bundle({MANIFEST: json.dumps(manifest, indent=1) + "\n", **parts}, tuple(notes), names)


def _history_of(nodes: set[str], path: str) -> str:
    """Return what the history file has about these nodes, as ncheck history -o json prints it."""
    from ncheck.history.past import past_of
    from ncheck.history.show import as_json
    from ncheck.history.store import History

    if not nodes:
        raise SettingsError(
            "--history: name a recording, nodes or --job too: only the history of their nodes is packed"
        )
    kept = History(path)
    return redact(as_json(past_of(kept.runs(), kept.spans()).only(nodes), nodes))


def files_of(path: str | None, option: str) -> Files:
    """Return a file, or the files beneath a folder, and how many entries are left out: no link, pipe or device beneath
    it is followed or read. Raises SettingsError.
    """
    if path is None:
        return (), 0
    if not Path(path).is_dir():
        if not Path(path).is_file():
            raise SettingsError(f"{option}: {printable(path)}: no such file or folder")
        return (Path(path).resolve(),), 0
    unread: list[OSError] = []
    beneath = [Path(at, name) for at, *names in os.walk(path, onerror=unread.append) for name in chain(*names)]
    kinds = [one.lstat().st_mode for one in beneath]
    files = [one for one, kind in zip(beneath, kinds, strict=True) if stat.S_ISREG(kind)]
    return tuple(sorted(files)), len(beneath) - len(files) - sum(map(stat.S_ISDIR, kinds)) + len(unread)


def _plain(name: str) -> str:
    """Return a name that any system unpacks."""
    return re.sub(r"[^\w.-]", "_", redact(name), flags=re.ASCII)[-80:]


def _text(path: Path, most: int) -> tuple[str, int]:
    """Return a file's text without secrets, and how many bytes were cut: whole lines, so that no secret is halved."""
    half = most // 2
    try:
        with open(path, "rb", opener=_unlinked) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(most if size <= most else half)
            if size <= most:
                return redact(head.decode("utf-8", "replace")), 0
            file.seek(size - half)
            tail = file.read(half)
    except OSError as error:
        raise SettingsError(f"{printable(str(path))}: {error.strerror or error}") from None
    head, tail = head[: head.rfind(b"\n") + 1], tail[tail.find(b"\n") + 1 :]
    cut = size - len(head) - len(tail)
    said = f"[ncheck: {cut} bytes cut here]\n"
    return redact(head.decode("utf-8", "replace")) + said + redact(_keyless(tail.decode("utf-8", "replace"))), cut


def _unlinked(name: str, flags: int) -> int:
    """Open a file that another user may have made a link or a pipe meanwhile."""
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file")
    return descriptor


def _keyless(tail: str) -> str:
    """Return the tail without the rest of a private key whose beginning was cut off."""
    end = tail.find("-----END ")
    begin = tail.find("-----BEGIN ")
    return tail if end < 0 or 0 <= begin < end else tail[end:]
