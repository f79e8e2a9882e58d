"""What an all-reduce should give on the hardware that was detected, and the term that limits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.probe.collectives import Collective
from doctor.probe.hardware import Hardware


@dataclass(frozen=True)
class Expected:
    """The bus bandwidth in GB/s of the largest size, None where a part of the chain is `unknown`.

    `limited_by` names the limiting term in words; `lowered_by` are the observed facts that make it less than the
    hardware's best ("7 of 8 rails on node03").
    """

    busbw: float | None
    limited_by: str = ""
    lowered_by: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def expected(collective: Collective, hardware: Mapping[str, Hardware]) -> Expected:
    """Return what this collective should reach; `hardware` is by node (doctor.probe.hardware)."""
    raise NotImplementedError
