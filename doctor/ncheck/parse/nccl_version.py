"""NCCL's version: the code that ncclGetVersion returns, the lines in logs, and the packages of NCCL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import lines_of

# NCCL version 2.18.1+cuda11.0, RCCL version 2.6.4+hip3.5, RCCL version : 2.22.3-develop
_LOGGED = expression(r"[NR]CCL version (?:: )?([0-9]\w*(?:\.\w+)+(?:\+(?:cuda|hip)\w+(?:\.\w+)*)?)")

# node05:3662915:3662915 [0] NCCL INFO cudaDriverVersion 12010
_DRIVER = expression(r"cudaDriverVersion (\d+)")

# >>> torch.cuda.nccl.version()
# (2, 19, 3)
_FROM_TORCH = expression(r"nccl\.version\(\).*\n\s*(?:\((\d+), (\d+), (\d+)\)|(\d{4,5}))[ \t]*$", re.MULTILINE)

# node05:3662915:3662915 [0] NCCL INFO Bootstrap : Using ib0:192.168.99.105<0>
_NCCL_LINE = expression(r"\bNCCL (?:INFO|WARN) ")
_FOUR_DIGITS = 10000  # up to 2.8 the code is X*1000 + Y*100 + Z, from 2.9 on X*10000 + Y*100 + Z (NCCL, nccl.h)


@dataclass(frozen=True)
class NcclLog:
    """The NCCL versions that a log names, each once and in order; the driver's CUDA version as printed."""

    versions: tuple[str, ...]
    cuda_driver: str | None
    spoken: bool  # whether the log has lines of NCCL


def decode_version(code: int) -> str:
    """Return "2.18.3" for 21803 and "2.7.8" for 2708."""
    major = 1000 if code < _FOUR_DIGITS else _FOUR_DIGITS
    return f"{code // major}.{code % major // 100}.{code % 100}"


def version_text(version: str | int) -> str:
    """Return the version as "2.18.3", from a code or from a text."""
    if isinstance(version, int) or version.isdigit():
        return decode_version(int(version))
    return version.partition("+")[0]


def parse_log(text: str) -> NcclLog:
    """Read a job's log; only the lines of NCCL count."""
    plain = "\n".join(lines_of(text))
    driver = _DRIVER.search(plain)
    spoken = _NCCL_LINE.search(plain) is not None
    versions = dict.fromkeys([*_LOGGED.findall(plain), *(_from_torch(found) for found in _FROM_TORCH.finditer(plain))])
    return NcclLog(tuple(versions), driver[1] if driver else None, spoken)


def _from_torch(found: re.Match[str]) -> str:
    """Return the version from torch.cuda.nccl.version(): a tuple, or up to torch 1.9 the code."""
    return decode_version(int(found[4])) if found[4] else ".".join(found.groups()[:3])


# #define NCCL_VERSION_CODE 21903, #define NCCL_MINOR 19
_DEFINED = expression(
    r"^[ \t]*#[ \t]*define[ \t]+NCCL_(MAJOR|MINOR|PATCH|SUFFIX|VERSION_CODE)[ \t]+(\S+)", re.MULTILINE
)

# /usr/lib/x86_64-linux-gnu/libnccl.so.2.18.3
_LIBRARY = expression(r"(?:^|[\s/])libnccl\.so\.(\d+\.\d+\.\d+)(?![\w.])")

# (2, 21, 5), all that `python -c "import torch; print(torch.cuda.nccl.version())"` prints
_TUPLE = expression(r"\((2), (\d{1,2}), (\d{1,2})\)")


def parse_header(text: str) -> Mapping[str, object] | None:
    """Return `nccl` of nccl.h, of the name of the library, or of the tuple that torch prints; None for other text."""
    plain = "\n".join(lines_of(text))
    defined = {name: value.strip('"') for name, value in _DEFINED.findall(plain)}
    code = defined.get("VERSION_CODE", "")
    if {"MAJOR", "MINOR", "PATCH"} <= defined.keys():
        version = ".".join(defined[name] for name in ("MAJOR", "MINOR", "PATCH"))
        return {"nccl": version, "nccl_suffix": defined.get("SUFFIX") or None, "nccl_code": code or None}
    if code.isdigit() and len(code) <= _LONGEST_CODE:
        return {"nccl": decode_version(int(code)), "nccl_code": code}
    if library := _LIBRARY.search(plain):
        return {"nccl": library[1]}
    *before, last = plain.strip().split("\n")
    if len(before) <= 1 and (printed := _TUPLE.fullmatch(last.strip())):
        return {"nccl": ".".join(printed.groups())}
    return None


_LONGEST_CODE = 6

# ii  libnccl2                               2.27.7-1+cuda12.4      amd64   NVIDIA Collective Communication Library
_DPKG = expression(r"(?:^|\s)(?:ii|hi)\s+([a-z0-9][\w.+:\-]+)\s+(\d\S*)")

# libnccl2/unknown,now 2.27.7-1+cuda12.4 amd64 [installed]
_APT = expression(r"^\s*(?=[\w.+\-]*nccl)([\w.+\-]+)/\S+\s+(\d\S*)")

# libnccl-2.22.3-1+cuda12.5.x86_64
_RPM = expression(
    r"(?:^|\s)(libnccl(?:-devel|-static)?)-(\d[\w.+~^]*-\d[\w.+~^]*?)(?:\.(?:x86_64|aarch64|ppc64le))?\s*$"
)

# nccl-repo-rhel7-2.8.3-ga-cuda10.1-1-1.x86_64: a repository, not NCCL
_RPM_OTHER = expression(r"^\s*(?=\S*nccl)([\w.+\-]+)-(\d[\w.+~^]*-\d[\w.+~^]*?)\.(?:x86_64|aarch64|ppc64le|noarch)\s*$")

# "libnccl2:amd64  2.20.5-1+cuda12.4" of dpkg-query -W
_DPKG_QUERY = expression(r"^\s*(libnccl(?:2|-dev)(?::\w+)?)\s+(\d\S*-\S*)\s*$")

# libnccl.x86_64                  2.22.3-1+cuda12.5               @cuda-rhel9-x86_64
_DNF = expression(r"^\s*(libnccl(?:-devel|-static)?)\.(?:x86_64|aarch64|ppc64le)\s+(\d\S*)")

# nvidia-nccl-cu12==2.21.5, nvidia-nccl-cu12         2.21.5
_PIP = expression(r"(?:^|\s)(nvidia-nccl(?:-cu\d+)?)(?:==|\s+)(\d[\w.]*)")

# nccl                      2.21.5.1             h3a97aeb_0    conda-forge
_CONDA = expression(r"^\s*(nccl)\s+(\d[\w.]*)\s+\w+(?:\s|$)")

# "Package: libnccl2" of apt show, "Name: nvidia-nccl-cu13" of pip show, with "Version: 2.30.4" under it
_NAMED = expression(r"^\s*(?:Package|Name)\s*:\s*(\S*nccl\S*)\s*$")
_VERSIONED = expression(r"^\s*Version\s*:\s*(\d\S*)\s*$")

# 2.27.7-1+cuda12.4
_VERSION = expression(r"^([\d.]+)(?:-[^+]*)?(?:\+cuda([\d.]+))?$")
_ROWS = {"dpkg": (_DPKG, _APT, _DPKG_QUERY), "rpm": (_RPM, _DNF, _RPM_OTHER), "conda": (_CONDA, _PIP), "pip": (_PIP,)}
_OURS = expression(r"(?:libnccl2|libnccl-dev|libnccl(?:-devel|-static)?|nccl|nvidia-nccl(?:-cu\d+)?)$")


@dataclass(frozen=True)
class NcclPackages:
    """The NCCL packages in the list of one package manager, by name, and the packages whose names only look similar."""

    manager: str
    found: Mapping[str, str]
    others: tuple[str, ...] = ()

    @property
    def version_and_cuda(self) -> tuple[str | None, str | None]:
        """Return ("2.27.7", "12.4") of 2.27.7-1+cuda12.4, and ("2.21.5", "12") of nvidia-nccl-cu12 2.21.5."""
        name, text = next(iter(sorted(self.found.items(), key=lambda entry: len(entry[0]))), ("", ""))
        version, in_name = _VERSION.match(text), re.search(r"-cu(\d+)$", name)
        cuda = version[2] if version else None
        return version[1] if version else text or None, cuda or (in_name[1] if in_name else None)


def parse_packages(text: str) -> NcclPackages | None:
    """Read a list of packages, or a grep of it; None if no name contains "nccl".

    libvncclient1 and the package of a local repository are not NCCL: a list of only these says that NCCL is missing.
    """
    lines = lines_of(text)
    named = [line for line in lines if "nccl" in line]
    for manager, patterns in _ROWS.items():
        names = {name for name, _ in _rows(named, patterns)}
        if "nccl" in names if manager == "conda" else any("nccl" in name for name in names):
            return _packages(manager, list(_rows(lines, patterns)))
    shown = list(_shown(lines)) if named else []
    return _packages("pip" if "nvidia-" in shown[0][0] else "dpkg", shown) if shown else None


def _rows(lines: Sequence[str], patterns: Sequence[re.Pattern[str]]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if row := next((found for pattern in patterns if (found := pattern.search(line))), None):
            yield row[1], row[2]


def _shown(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    name = ""
    for line in lines:
        if named := _NAMED.match(line):
            name = named[1]
        elif name and (version := _VERSIONED.match(line)):
            yield name, version[1]
            name = ""


def _packages(manager: str, rows: Sequence[tuple[str, str]]) -> NcclPackages:
    names = {name: name.partition(":")[0] for name, _ in rows}
    found = {names[name]: version for name, version in rows if _OURS.match(names[name])}
    return NcclPackages(manager, found, tuple(name for name, _ in rows if not _OURS.match(names[name])))
