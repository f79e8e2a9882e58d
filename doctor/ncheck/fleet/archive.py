"""`ncheck triage --save FILE`: one zip archive with a recording of each node, without secrets, and which job it was.

An archive may come from a stranger: nothing is unpacked, each member is read into memory up to a limit, and what it
holds is held to the same rules as a recording.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ncheck.errors import RecordingError
from ncheck.files import write_whole
from ncheck.fleet.recording import MAX_FILE, MAX_FOLDER, MAX_NODES, encode, loaded, trusted
from ncheck.model.evidence import Evidence
from ncheck.model.job import Job, Target
from ncheck.version import __version__

FORMAT = 1
_HEADER = "triage.json"
MANIFEST, RECORDING, JOB = "MANIFEST.json", "recording/", "job/"  # of a bundle: its first member, and two of its parts
_LARGEST_HEADER = 1 << 16


def is_archive(path: str) -> bool:
    """Return whether a file begins as a zip archive does; no host file can. Of a pipe nothing is read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            return False
        with Path(path).open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except (OSError, ValueError):
        return False


def save_archive(path: str, evidence: Sequence[Evidence], job: Job | None) -> None:
    """Write an archive, whole or not at all. Raises NcheckError.

    The job is named by a process of it: a regular expression from a stranger could keep a reader busy for ever.
    """
    first = next(iter(job.ranks), None) if job else None

    def write(stream: TextIO) -> None:
        with zipfile.ZipFile(stream.buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            target = Target(first.pid, first.node) if first else Target()
            for name, content in {**job_member(target), **node_members(evidence)}.items():
                archive.writestr(name, content)

    write_whole(path, "--save", write, 0o600)


def job_member(target: Target) -> dict[str, str]:
    """Return the member that says which job it was."""
    named = {"node": target.node, "pid": target.pid} if target.pid is not None else {}
    return {_HEADER: json.dumps({"ncheck_triage": FORMAT, "version": __version__, "job": named})}


def node_members(evidence: Sequence[Evidence]) -> dict[str, str]:
    """Return one member for each node."""
    return {f"{at:05d}.json": encode(one, at, len(evidence)) for at, one in enumerate(evidence)}


def load_archive(path: str) -> tuple[tuple[Evidence, ...], Target]:
    """Return the job that an archive or a bundle holds. Raises RecordingError for whatever is wrong with it."""
    with _opened(path) as archive:
        names = archive.namelist()
        folder = JOB if MANIFEST in names[:1] else ""
        if folder and folder + _HEADER not in names:
            raise RecordingError(f"{path}: no job is in this bundle; its recording: ncheck replay FILE")
        evidence = _nodes(path, archive, folder)
        if folder + _HEADER not in names:
            raise RecordingError(f"{path}: {_OTHER}")
        return evidence, _target(path, _content(path, archive, archive.getinfo(folder + _HEADER), _LARGEST_HEADER))


def load_bundled(path: str) -> tuple[Evidence, ...]:
    """Return the recording in a bundle. Raises RecordingError for whatever is wrong with it."""
    with _opened(path) as archive:
        if MANIFEST not in archive.namelist()[:1]:
            raise RecordingError(f"{path}: not a bundle; if ncheck triage --save wrote it: ncheck triage FILE")
        if not any(name.startswith(RECORDING) for name in archive.namelist()):
            raise RecordingError(f"{path}: no recording is in this bundle; if a job is: ncheck triage FILE")
        return _nodes(path, archive, RECORDING)


_OTHER = "not an archive that ncheck triage --save wrote"


@contextmanager
def _opened(path: str) -> Iterator[zipfile.ZipFile]:
    try:
        _refuse_others(path)
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise RecordingError(f"{path}: damaged, or not an archive of ncheck triage: {str(error)[:200]}") from None
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None


_END, _DIRECTORY_SIZE = 22, slice(12, 16)  # the last record of a zip archive, and what it says of the list of members
_LARGEST_DIRECTORY = 120 * (MAX_NODES + 1)  # bytes


def _refuse_others(path: str) -> None:
    """Refuse what `save_archive` does not write, before its list of members is read into memory."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
        raise RecordingError(f"{path}: not a file")  # a pipe would be waited for
    with Path(path).open("rb") as file:
        file.seek(-min(_END, os.fstat(file.fileno()).st_size), os.SEEK_END)
        end = file.read()
    if not end.startswith(b"PK\x05\x06") or int.from_bytes(end[_DIRECTORY_SIZE], "little") > _LARGEST_DIRECTORY:
        raise RecordingError(f"{path}: damaged, or not an archive of ncheck triage")


def _nodes(path: str, archive: zipfile.ZipFile, folder: str) -> tuple[Evidence, ...]:
    try:
        return trusted(path, loaded(_files(path, archive, folder)))
    except RecordingError as error:
        raise RecordingError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None


def _files(path: str, archive: zipfile.ZipFile, folder: str) -> Iterator[tuple[str, bytes]]:
    left = MAX_FOLDER
    for member in archive.infolist():
        if member.filename.startswith(folder) and member.filename != folder + _HEADER:
            content = _content(path, archive, member, min(left, MAX_FILE))
            left -= len(content)
            yield member.filename[:80], content


def _content(path: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """Return a member's bytes; what it says of its own size is not trusted. Only deflate is unpacked bit by bit."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RecordingError(f"{path}: damaged, or not an archive of ncheck triage")
    with archive.open(member) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise RecordingError(f"{path}: larger than any archive of triage")
    return content


def _target(path: str, content: bytes) -> Target:
    header = json.loads(content)
    if not isinstance(header, dict) or type(header.get("ncheck_triage")) is not int:
        raise RecordingError(f"{path}: {_OTHER}")
    if header["ncheck_triage"] > FORMAT:
        raise RecordingError(f"{path}: written by a newer ncheck; install that one")
    job = header.get("job")
    if not isinstance(job, dict) or (job and (type(job.get("pid")), type(job.get("node"))) != (int, str)):
        raise RecordingError(f"{path}: does not name its job as an archive of triage does")
    return Target(job["pid"], job["node"]) if job else Target()
