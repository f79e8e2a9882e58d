"""`mpirun --version` and `ompi_info`: which MPI it is, and which version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from doctor.parse.capture import lines_of

# mpirun (Open MPI) 5.0.11, mpirun.real (OpenRTE) 4.0.3, mpirun (IBM Spectrum MPI) 10.3.0.0
_MPIRUN = re.compile(r"^[ \t]*\S+ \((Open MPI|OpenRTE|IBM Spectrum MPI|IBM Platform MPI)\) (\S+)", re.MULTILINE)
# Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022
_LIBRARY = re.compile(r"\bOpen MPI v(\d[^\s,]*), package:")
# HYDRA build details:
_HYDRA = re.compile(r"HYDRA build details|^[ \t]*MPICH Version:", re.MULTILINE)
#     Version:                                 4.1.2
_HYDRA_VERSION = re.compile(r"^[ \t]*(?:MPICH )?Version:\s+(\S+)", re.MULTILINE)
#     Release Date:                            Wed Jun  7 15:22:45 CDT 2023
_HYDRA_DATE = re.compile(r"^[ \t]*(?:MPICH )?Release [Dd]ate:\s+(\S.*?)\s*$", re.MULTILINE)
# Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: 16752)
_INTEL = re.compile(r"Intel\(R\) MPI Library.*?Version (\S+(?: Update \d+)?)(?:,? Build (\w+))?")
# prte (PRRTE) 3.0.13
_PRRTE = re.compile(r"\bprte(?:run)? \(PRRTE\) (\S+)")
#                 Open MPI: 1.7a1r27338
_INFO = re.compile(r"^[ \t]*Open MPI:\s+(\S+)", re.MULTILINE)
#   Open MPI repo revision: v4.1.4
_INFO_REPO = re.compile(r"^[ \t]*Open MPI (?:repo|SVN) revision:\s+(\S+)", re.MULTILINE)
#   Open MPI release date: May 26, 2022
_INFO_DATE = re.compile(r"^[ \t]*Open MPI release date:\s+(\S.*?)\s*$", re.MULTILINE)
#                  MPI API: 3.1.0
_INFO_API = re.compile(r"^[ \t]*MPI API:\s+(\S+)", re.MULTILINE)
# ompi:version:full:5.0.11
_PARSABLE = re.compile(r"^\s*(ompi:version:full|ompi:version:repo|mpi-api:version:full|path:prefix):(.+?)\s*$")
# bash: mpirun: command not found; FileNotFoundError: [Errno 2] No such file or directory: 'mpirun'
_MISSING = re.compile(
    r"(?=.*\b(?:mpirun|mpiexec|ompi_info|orterun|prterun)\b)"
    r".*(?:not found|No .*file or directory|can be found in|no mpi\w+ in|error while loading shared|Unknown MPI impl)"
)


@dataclass(frozen=True)
class Mpi:
    """What the text says; None is: not in it. `implementation` is Open MPI, MPICH, Intel MPI or Spectrum MPI."""

    implementation: str | None = None
    version: str | None = None
    build: str | None = None
    release_date: str | None = None
    prrte: str | None = None
    repo: str | None = None
    api: str | None = None
    prefix: str | None = None
    error: str | None = None


def parse_mpi(text: str) -> Mpi | None:
    """Read the answer of mpirun, mpiexec or ompi_info; None where it is of none of them."""
    plain = "\n".join(lines_of(text))
    if found := _MPIRUN.search(plain):
        name = "Spectrum MPI" if found[1].startswith("IBM") else "Open MPI"
        return Mpi(name, found[2].rstrip(","), prrte=_first(_PRRTE, plain))
    if found := _LIBRARY.search(plain):
        return Mpi("Open MPI", found[1])
    if found := _INTEL.search(plain):
        return Mpi("Intel MPI", found[1].rstrip(","), build=found[2])
    if _HYDRA.search(plain):
        return Mpi("MPICH", _first(_HYDRA_VERSION, plain), release_date=_first(_HYDRA_DATE, plain))
    return _parsable(plain) or _info(plain) or _missing(plain)


def _parsable(text: str) -> Mpi | None:
    """Read `ompi_info --parsable`."""
    found = {entry[1]: entry[2] for line in text.split("\n") if (entry := _PARSABLE.match(line))}
    version = found.get("ompi:version:full")
    if version is None:
        return None
    repo, api = found.get("ompi:version:repo"), found.get("mpi-api:version:full")
    return Mpi("Open MPI", version, repo=repo, api=api, prefix=found.get("path:prefix"))


def _info(text: str) -> Mpi | None:
    """Read `ompi_info` as people see it."""
    version = _first(_INFO, text)
    if version is None:
        return None
    date, repo, api = (_first(pattern, text) for pattern in (_INFO_DATE, _INFO_REPO, _INFO_API))
    return Mpi("Open MPI", version, release_date=date, repo=repo, api=api)


def _missing(text: str) -> Mpi | None:
    line = next((line for line in text.split("\n") if _MISSING.search(line)), None)
    return Mpi(error=line.strip()) if line else None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
