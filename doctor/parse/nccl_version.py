"""NCCL's version: the number that ncclGetVersion returns, the words in logs, and the packages of dpkg and pip."""

from __future__ import annotations

import re
from dataclasses import dataclass

from doctor.parse.capture import lines_of

# NCCL version 2.18.1+cuda11.0
_LOGGED = re.compile(r"NCCL version ([0-9][\w.]*(?:\+cuda[\d.]+)?)")
# node05:3662915:3662915 [0] NCCL INFO cudaDriverVersion 12010
_DRIVER = re.compile(r"cudaDriverVersion (\d+)")
# ii  libnccl2                               2.27.7-1+cuda12.4      amd64   NVIDIA Collective Communication Library
_PACKAGE = re.compile(r"(?:^|\s)(?:ii|hi)\s+(\S+)\s+(\S+)")
# libnccl2/unknown,now 2.27.7-1+cuda12.4 amd64 [installed]
_APT = re.compile(r"^\s*(libnccl2|libnccl-dev)/\S+\s+(\S+)")
# 2.27.7-1+cuda12.4
_DEBIAN = re.compile(r"^([\d.]+)-\S*?\+cuda([\d.]+)$")

_FOUR_DIGITS = 10000  # up to 2.8 the code is X*1000 + Y*100 + Z, from 2.9 on X*10000 + Y*100 + Z (NCCL, nccl.h)


@dataclass(frozen=True)
class NcclLog:
    """The versions that a log names, each once, in order; and the CUDA version of the driver as it printed it."""

    versions: tuple[str, ...]
    cuda_driver: str | None


@dataclass(frozen=True)
class NcclPackages:
    """The NCCL packages of a dpkg or apt listing, and what only looks like one."""

    libnccl2: str | None
    libnccl_dev: str | None
    others: tuple[str, ...]

    @property
    def version_and_cuda(self) -> tuple[str | None, str | None]:
        """Return ("2.27.7", "12.4") of 2.27.7-1+cuda12.4."""
        found = _DEBIAN.match(self.libnccl2 or self.libnccl_dev or "")
        return (found[1], found[2]) if found else (None, None)


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
    return NcclLog(tuple(dict.fromkeys(_LOGGED.findall(plain))), driver[1] if driver else None)


def parse_packages(text: str) -> NcclPackages:
    """Read `dpkg -l` or `apt list`, or a grep of it: libvncclient1 and a local repository are no NCCL."""
    lines = lines_of(text)
    rows = [row.groups() for line in lines if (row := _PACKAGE.search(line) or _APT.match(line))]
    found = {name.partition(":")[0]: version for name, version in rows}
    others = tuple(name for name, _ in rows if not name.startswith(("libnccl2", "libnccl-dev")))
    return NcclPackages(found.get("libnccl2"), found.get("libnccl-dev"), others)
