"""`ncheck bundle`: a recording, a job, logs and topology files in one zip archive, without secrets.

It is what a person sends who asks for help: `ncheck replay` and `ncheck triage` judge it as they would at home.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class Bundle:
    """The members of an archive, the manifest first, what is to be said of them, and the names in it, if replaced."""

    members: Mapping[str, str]
    notes: tuple[str, ...]
    names: Names | None


def bundled(
    recording: str | None,
    job: str | None,
    texts: Mapping[str, Sequence[Path]],
    history: str | None = None,
    random: Random | None = None,
) -> Bundle:
    """Return what to pack. `texts`: the files of each folder. `history`: the file of which what is about these nodes is
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
    for folder, paths in texts.items():
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


def _plain(name: str) -> str:
    """Return a name that any system unpacks."""
    return re.sub(r"[^\w.-]", "_", redact(name), flags=re.ASCII)[-80:]


def _text(path: Path, most: int) -> tuple[str, int]:
    """Return a file's text without secrets, and how many bytes were cut: whole lines, so that no secret is halved."""
    half = most // 2
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
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


def _keyless(tail: str) -> str:
    """Return the tail without the rest of a private key whose beginning was cut off."""
    end = tail.find("-----END ")
    begin = tail.find("-----BEGIN ")
    return tail if end < 0 or 0 <= begin < end else tail[end:]
