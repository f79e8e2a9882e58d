"""What NCCL's RAS answers to VERBOSE STATUS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ncheck.model.remark import Remark, error, warning
from ncheck.read.reading import Reader, Reading
from ncheck.triage.parse.nccl_ras import RasStatus, parse_ras


def _read(text: str) -> Reading | None:
    try:
        found = parse_ras(text if text.startswith("{") else f"{text}\n")
    except ValueError:
        return None
    return Reading("ras", "ncclras", {**asdict(found), "error": None}).saying(_remarks(found))


def _remarks(found: RasStatus) -> Iterator[Remark]:
    if found.dead_count:
        yield error(f"{found.dead_count} processes of the job are dead")
    if found.silent_count:
        yield warning(f"{found.silent_count} processes of the job do not answer NCCL's RAS")
    for communicator in found.communicators:
        if communicator.missing:
            ranks = ", ".join(str(missing.rank) for missing in communicator.missing[:_SHOWN])
            yield error(f"communicator {communicator.key}: {len(communicator.missing)} ranks are missing: {ranks}")
    if not found.whole:
        yield warning("the answer is cut off or not understood in parts")


_SHOWN = 16


def _failed(_text: str) -> Reading:
    return Reading("ras", "", {"error": "not an answer of NCCL's RAS"})


READER = Reader("ras", ("ncclras", "nccl ras"), 15, _read, _failed)
