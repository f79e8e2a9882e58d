"""All rows that read a log. They are loaded where a log is there to be read: their patterns are dear to compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ncheck.triage import across, connecting, cuda, infiniband, interfaces, launching, machine, nccl, probing, torch
from ncheck.triage.lines import Line
from ncheck.triage.signature import Reading, Signature

SIGNATURES: tuple[Signature, ...] = (
    *nccl.SIGNATURES, *cuda.SIGNATURES, *infiniband.SIGNATURES, *connecting.SIGNATURES, *torch.SIGNATURES,
    *launching.SIGNATURES, *machine.SIGNATURES, *probing.SIGNATURES,
)  # fmt: skip


ACROSS: tuple[Callable[[Sequence[Line]], Iterator[tuple[Reading, tuple[Line, ...]]]], ...] = (
    *across.ALL, interfaces.strange_interfaces,
)  # fmt: skip
