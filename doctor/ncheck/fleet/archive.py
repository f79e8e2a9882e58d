"""`ncheck triage --save FILE`: one zip archive with a recording of each node, without secrets, and which job it was.

An archive may come from a stranger: nothing is unpacked, each member is read into memory up to a limit, and what it
holds is held to the same rules as a recording.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TextIO

import ncheck
from ncheck.errors import RecordingError
from ncheck.files import write_whole
from ncheck.fleet.recording import MAX_FILE, MAX_FOLDER, MAX_NODES, encode, loaded, trusted
from ncheck.model.evidence import Evidence
from ncheck.model.job import Target
from ncheck.redact import redact

FORMAT = 1
_HEADER = "triage.json"
_LARGEST_HEADER = 1 << 16


def is_archive(path: str) -> bool:
    """Return whether a file begins as a zip archive does; no host file can."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def save_archive(path: str, evidence: Sequence[Evidence], target: Target) -> None:
    """Write an archive, whole or not at all. Raises NcheckError."""
    named = {**asdict(target), "match": target.match and redact(target.match)}
    header = {"ncheck_triage": FORMAT, "version": ncheck.__version__, "target": named}

    def write(stream: TextIO) -> None:
        with zipfile.ZipFile(stream.buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_HEADER, json.dumps(header))
            for position, one in enumerate(evidence):
                archive.writestr(f"{position:05d}.json", encode(one, position, len(evidence)))

    write_whole(path, "--save", write)


def load_archive(path: str) -> tuple[tuple[Evidence, ...], Target]:
    """Return what an archive holds. Raises RecordingError for whatever is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_NODES + 1:
                raise RecordingError(f"{path}: more files than an archive of triage has")
            evidence = loaded(_files(path, archive, members))
            target = _target(path, _content(path, archive, archive.getinfo(_HEADER), _LARGEST_HEADER))
    except KeyError:
        raise RecordingError(f"{path}: not an archive that ncheck triage --save wrote") from None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise RecordingError(f"{path}: damaged, or not an archive of ncheck triage: {str(error)[:200]}") from None
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None
    return trusted(path, evidence), target


def _files(path: str, archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo]) -> Iterator[tuple[str, bytes]]:
    left = MAX_FOLDER
    for member in members:
        if member.filename != _HEADER:
            content = _content(path, archive, member, min(left, MAX_FILE))
            left -= len(content)
            yield f"{path}:{member.filename[:80]}", content


def _content(path: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """Return a member's bytes; what it says of its own size is not trusted."""
    with archive.open(member) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise RecordingError(f"{path}: larger than any archive of triage")
    return content


def _target(path: str, content: bytes) -> Target:
    header = json.loads(content)
    if not isinstance(header, dict) or type(header.get("ncheck_triage")) is not int:
        raise RecordingError(f"{path}: not an archive that ncheck triage --save wrote")
    if header["ncheck_triage"] > FORMAT:
        raise RecordingError(f"{path}: written by a newer ncheck; install that one")
    given = header.get("target")
    known = {field.name: field.type for field in fields(Target)}
    if not isinstance(given, dict) or set(given) - set(known):
        raise RecordingError(f"{path}: names its job in a way that this ncheck does not know")
    kinds = {"pid": int, "match": str, "slurm": str}
    for name, value in given.items():
        if value is not None and type(value) is not kinds.get(name, bool):
            raise RecordingError(f"{path}: its {name} is not of the right type")
    return Target(**given)
