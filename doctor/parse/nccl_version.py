"""NCCL's version: the number that ncclGetVersion returns, and the words in logs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from doctor.parse.capture import lines_of

# NCCL version 2.18.1+cuda11.0, RCCL version 2.6.4+hip3.5, RCCL version : 2.22.3-develop
_LOGGED = re.compile(r"[NR]CCL version (?:: )?([0-9]\w*(?:\.\w+)+(?:\+(?:cuda|hip)\w+(?:\.\w+)*)?)")
# node05:3662915:3662915 [0] NCCL INFO cudaDriverVersion 12010
_DRIVER = re.compile(r"cudaDriverVersion (\d+)")
# node05:3662915:3662915 [0] NCCL INFO Bootstrap : Using ib0:192.168.99.105<0>
_SPOKEN = re.compile(r"\bNCCL (?:INFO|WARN) ")

_FOUR_DIGITS = 10000  # up to 2.8 the code is X*1000 + Y*100 + Z, from 2.9 on X*10000 + Y*100 + Z (NCCL, nccl.h)


@dataclass(frozen=True)
class NcclLog:
    """The versions that a log names, each once, in order; and the CUDA version of the driver as it printed it."""

    versions: tuple[str, ...]
    cuda_driver: str | None
    spoken: bool  # whether NCCL says anything at all


def decode_version(code: int) -> str:
    """Return "2.18.3" for 21803 and "2.7.8" for 2708."""
    major = 1000 if code < _FOUR_DIGITS else _FOUR_DIGITS
    return f"{code // major}.{code % major // 100}.{code % 100}"


def version_text(version: str | int) -> str:
    """Return the version as 2.18.3, whether it came as a code or in words."""
    if isinstance(version, int) or version.isdigit():
        return decode_version(int(version))
    return version.partition("+")[0]


def parse_log(text: str) -> NcclLog:
    """Read a job's log; a line may be anyone's, only NCCL's own words count."""
    plain = "\n".join(lines_of(text))
    driver = _DRIVER.search(plain)
    spoken = _SPOKEN.search(plain) is not None
    return NcclLog(tuple(dict.fromkeys(_LOGGED.findall(plain))), driver[1] if driver else None, spoken)
