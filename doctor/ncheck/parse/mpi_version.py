"""`mpirun --version` and `ompi_info`: the MPI implementation and its version."""

from __future__ import annotations

import re
from functools import lru_cache

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import lines_of

# mpirun (Open MPI) 5.0.11, mpirun.real (OpenRTE) 4.0.3, mpirun (IBM Spectrum MPI) 10.3.0.0
_MPIRUN = expression(r"(?:^|[ \t`'\"#])[\w./\-]+ \((Open MPI|OpenRTE|IBM Spectrum MPI)\) (\d[^\s`'\"]*)", re.MULTILINE)

# Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022
_LIBRARY = expression(r"\bOpen MPI v(\d[^\s,]*), package:")

# HYDRA build details:
_HYDRA = expression(r"HYDRA build details|^[ \t]*MPICH2? Version:", re.MULTILINE)

#     Version:                                 4.1.2
_HYDRA_VERSION = expression(r"(?:^|HYDRA build details:)[ \t]*(?:MPICH2? )?Version:\s+(\S+)", re.MULTILINE)

#     Release Date:                            Wed Jun  7 15:22:45 CDT 2023
_HYDRA_DATE = expression(r"^[ \t]*(?:MPICH2? )?Release [Dd]ate:[ \t]+(\S(?:.*\S)?)[^\S\n]*$", re.MULTILINE)

# Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: 16752)
# Intel(R) MPI Library for Linux* OS, 64-bit applications, Version 4.1  Build 20120831
_INTEL = expression(r"Intel\(R\) MPI Library.{0,300}?Version +(\d[\w.]*(?: +Update +\d+)?)(?:,? +Build +(\w+))?")

# "MVAPICH2 Version:       2.3.7" of mpichversion, "MVAPICH2 2.3.6 Mon March 29 22:00:00 EST 2021" of mpiname
_MVAPICH = expression(r"^[ \t]*(MVAPICH2?(?:-\w+)?)(?: [Vv]ersion:?)?\s+(\d\S*)", re.MULTILINE)

# MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)
_CRAY = expression(r"\bCRAY MPICH version (\S+)", re.IGNORECASE)

# mpirun: IBM Platform MPI 09.01.04.03 [b9427] Linux x86-64
_PLATFORM = expression(r"\b(?:IBM |HP )?Platform MPI(?: version)? (\d[\d.]*)|\bHP-?MPI version (\d[\d.]*)")

# Microsoft MPI Startup Program [Version 10.1.12498.18]
_MICROSOFT = expression(r"Microsoft MPI .{0,300}?Version (\d[\d.]*)")

# prte (PRRTE) 3.0.13
_PRRTE = expression(r"\bprte(?:run)? \(PRRTE\) (\S+)")

#                 Open MPI: 1.7a1r27338
_INFO = expression(r"^[ \t>|]*Open MPI(?: version)?:[ \t]+v?(\d\S*)", re.MULTILINE)

#   Open MPI repo revision: v4.1.4
_INFO_REPO = expression(r"^[ \t>|]*Open MPI (?:repo|SVN) revision:\s+(\S+)", re.MULTILINE)

#   Open MPI release date: May 26, 2022
_INFO_DATE = expression(r"^[ \t>|]*Open MPI release date:[ \t]+(\S(?:.*\S)?)[^\S\n]*$", re.MULTILINE)

#                  MPI API: 3.1.0
_INFO_API = expression(r"^[ \t>|]*MPI API:\s+(\S+)", re.MULTILINE)

# ompi:version:full:5.0.11
_PARSABLE = expression(
    r"(?:^|[\s:>])(ompi:version:full|ompi:version:repo|ompi:version:svn|ompi:version:release_date|mpi-api:version:full)"
    r":(.*\S)\s*$"
)

# bash: mpirun: command not found; FileNotFoundError: [Errno 2] No such file or directory: 'mpirun'
_PROGRAM = expression(r"\b(?:mpirun|mpiexec|ompi_info|orterun|prterun)\b")

_MISSING = expression(
    r"not found|No (?:\w+ ){0,3}file or directory|can be found in|no mpi\w+ in|error while loading shared"
    r"|Unknown MPI impl"
)


@dataclass(frozen=True)
class Mpi:
    """What the text shows; None means that it does not hold the value.

    `implementation` is Open MPI, MPICH, Intel MPI, Spectrum MPI, MVAPICH2, Cray MPICH or Microsoft MPI.
    """

    implementation: str | None = None
    version: str | None = None
    build: str | None = None
    release_date: str | None = None
    prrte: str | None = None
    repo: str | None = None
    api: str | None = None
    error: str | None = None


@lru_cache(maxsize=32)  # most nodes print the same text
def parse_mpi(text: str) -> Mpi | None:
    """Read the output of mpirun, mpiexec or ompi_info; None for any other text."""
    plain = "\n".join(lines_of(text))
    if found := _MPIRUN.search(plain):
        name = "Spectrum MPI" if found[1].startswith("IBM") else "Open MPI"
        return Mpi(name, found[2].rstrip(",.;"), prrte=_first(_PRRTE, plain))
    if found := _LIBRARY.search(plain):
        return Mpi("Open MPI", found[1])
    if found := _INTEL.search(plain):
        return Mpi("Intel MPI", " ".join(found[1].split()), build=found[2])
    if named := _named(plain):
        return named
    if _HYDRA.search(plain):
        return Mpi("MPICH", _first(_HYDRA_VERSION, plain), release_date=_first(_HYDRA_DATE, plain))
    return _parsable(plain) or _info(plain) or _missing(plain)


def _named(text: str) -> Mpi | None:
    """Read the implementations that print name and version on one line."""
    if found := _MVAPICH.search(text):
        return Mpi(found[1], found[2])
    for name, pattern in (("Cray MPICH", _CRAY), ("Microsoft MPI", _MICROSOFT), ("Platform MPI", _PLATFORM)):
        if version := _first(pattern, text):
            return Mpi(name, version)
    return None


def _parsable(text: str) -> Mpi | None:
    """Read `ompi_info --parsable`."""
    found = {entry[1]: entry[2] for line in text.split("\n") if (entry := _PARSABLE.search(line))}
    version = found.get("ompi:version:full")
    if version is None:
        return None
    return Mpi(
        "Open MPI",
        version,
        release_date=found.get("ompi:version:release_date"),
        repo=found.get("ompi:version:repo") or found.get("ompi:version:svn"),
        api=found.get("mpi-api:version:full"),
    )


def _info(text: str) -> Mpi | None:
    """Read the plain form of `ompi_info`."""
    version = _first(_INFO, text)
    if version is None:
        return None
    date, repo, api = (_first(pattern, text) for pattern in (_INFO_DATE, _INFO_REPO, _INFO_API))
    return Mpi("Open MPI", version, release_date=date, repo=repo, api=api)


def _missing(text: str) -> Mpi | None:
    line = next((line for line in text.split("\n") if _PROGRAM.search(line) and _MISSING.search(line)), None)
    return Mpi(error=line.strip()) if line else None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return next(group for group in found.groups() if group) if found else None
