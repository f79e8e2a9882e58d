"""NCCL's version: the number that ncclGetVersion returns, and the words in logs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from doctor.parse.capture import lines_of

# NCCL version 2.18.1+cuda11.0, RCCL version 2.6.4+hip3.5, RCCL version : 2.22.3-develop
_LOGGED = re.compile(r"[NR]CCL version (?:: )?([0-9]\w*(?:\.\w+)+(?:\+(?:cuda|hip)\w+(?:\.\w+)*)?)")
# node05:3662915:3662915 [0] NCCL INFO cudaDriverVersion 12010
_DRIVER = re.compile(r"cudaDriverVersion (\d+)")
# >>> torch.cuda.nccl.version()
# (2, 19, 3)
_TORCHS = re.compile(r"nccl\.version\(\).*\n\s*(?:\((\d+), (\d+), (\d+)\)|(\d{4,5}))[ \t]*$", re.MULTILINE)
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
    versions = dict.fromkeys([*_LOGGED.findall(plain), *(_torchs(found) for found in _TORCHS.finditer(plain))])
    return NcclLog(tuple(versions), driver[1] if driver else None, spoken)


def _torchs(found: re.Match[str]) -> str:
    """Return the version that torch.cuda.nccl.version() tells: a tuple, or up to torch 1.9 the code."""
    return decode_version(int(found[4])) if found[4] else ".".join(found.groups()[:3])
