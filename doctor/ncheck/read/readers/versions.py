"""Versions: MPI, Horovod, the reports of frameworks, packages, CUDA and NCCL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ncheck.expression import expression
from ncheck.model.remark import error
from ncheck.parse.framework_reports import parse_build, parse_check_env, parse_collect_env, parse_ds_report
from ncheck.parse.infiniband import tool_error
from ncheck.parse.mpi_version import parse_mpi
from ncheck.parse.nccl_version import NcclPackages, parse_header, parse_log, parse_packages
from ncheck.read.cuda_toolkit import parse_toolkit
from ncheck.read.reading import Reader, Reading, Record
from ncheck.read.software import parse_software
from ncheck.read.versions_judged import judged


def _read(text: str) -> Reading | None:
    """Read every format that the text holds: reports come before single tools, because reports quote tools."""
    found = [record for read in _FORMATS if (record := read(text)) is not None]
    if not found:
        return None
    first, *others = found
    facts = {**first, "also": others} if others else first
    if set(_known(first)) <= {"error"}:
        return None  # only a failure: see _failed
    tool = str(first["format"])
    return Reading("versions", tool, facts, quotes=tool in _REPORTS).saying(judged(found))


_REPORTS = ("torch_collect_env", "sglang_check_env", "ds_report", "horovod_check_build")


def _known(record: Record) -> list[str]:
    return [key for key, value in record.items() if key not in ("format", "not_nccl") and value not in (None, {}, [])]


def _collect_env(text: str) -> Record | None:
    found = parse_collect_env(text)
    return None if found is None else {"format": "torch_collect_env", **found}


def _check_env(text: str) -> Record | None:
    found = parse_check_env(text)
    return None if found is None else {"format": "sglang_check_env", **found}


def _ds_report(text: str) -> Record | None:
    found = parse_ds_report(text)
    return None if found is None else {"format": "ds_report", **found}


def _horovod(text: str) -> Record | None:
    build = parse_build(text)
    if build.version is None and not build.probed:
        return None
    return {
        "format": "horovod_check_build",
        "horovod": build.version,
        "frameworks": dict(build.frameworks),
        "controllers": dict(build.controllers),
        "operations": dict(build.operations),
        "error": build.error,
    }


def _packages(text: str) -> Record | None:
    found, listed = parse_packages(text), parse_software(text)
    if found is None and listed is None:
        return None
    manager, software = listed or ("", {})
    found = found or NcclPackages(manager, {})
    version, cuda = found.version_and_cuda
    record: Record = {
        "format": found.manager,
        **_by_name(found),
        "nccl": version,
        "cuda": cuda,
        "not_nccl": list(found.others),
    }
    return {**record, "software": software} if software else record


def _by_name(packages: NcclPackages) -> Record:
    """Return the packages of NCCL under their names as keys: libnccl2, libnccl_dev, nvidia_nccl_cu12."""
    named: Record = {re.sub(r"\W", "_", name): version for name, version in packages.found.items() if name != "nccl"}
    if packages.manager == "dpkg":
        return {"libnccl2": None, "libnccl_dev": None, **named}
    return {**named, "packages": dict(packages.found)}


def _mpi(text: str) -> Record | None:
    found = parse_mpi(text)
    if found is None:
        return None
    return {
        "format": "mpi",
        "mpi": found.implementation,
        "version": found.version,
        "build": found.build,
        "release_date": found.release_date,
        "prrte": found.prrte,
        "repo": found.repo,
        "mpi_api": found.api,
        "error": found.error,
    }


def _toolkit(text: str) -> Record | None:
    found = parse_toolkit(text)
    return None if found is None else {"format": "cuda_toolkit", **found}


def _header(text: str) -> Record | None:
    found = None if parse_log(text).versions else parse_header(text)
    return None if found is None else {"format": "nccl_library", **found}


def _nccl(text: str) -> Record | None:
    log = parse_log(text)
    if not (log.versions or log.cuda_driver or log.spoken):
        return None
    return {"format": "nccl_log", "nccl": list(log.versions), "cuda_driver": log.cuda_driver}


_FORMATS: tuple[Callable[[str], Record | None], ...] = (
    _collect_env, _check_env, _ds_report, _horovod, _packages, _mpi, _toolkit, _header, _nccl,
)  # fmt: skip

_NOTHING: Mapping[str, object] = dict.fromkeys(("mpi", "version", "horovod", "nccl", "cuda_driver"))

# -bash: mpirun: command not found
_OURS = expression(r"\b(?:mpi(?:run|exec)|ompi_info|horovod(?:run)?|ds_report|nvcc|torch|deepspeed)\b")


def _failed(text: str) -> Reading:
    """Return the failure of a tool: it is not there, or crashed."""
    for read in _FORMATS:
        if (record := read(text)) is not None:
            problem = str(record.get("error") or "the text holds no version")
            return Reading("versions", str(record["format"]), record).saying([error(problem)])
    problem = tool_error(text) or "no known version found"
    ours = _OURS.search(problem) is not None
    facts: Record = {"format": None, **_NOTHING, "error": problem}
    return Reading("versions", "mpi" if ours else "", facts).saying([error(problem)])


READER = Reader(
    "versions",
    ("mpirun", "mpiexec", "ompi_info", "mpichversion", "mpiname", "orterun", "prterun", "horovodrun", "ds_report",
     "deepspeed", "collect_env", "torch.utils.collect_env", "check_env", "nccl_log", "nccl", "nccl.h", "dpkg", "apt",
     "apt-cache", "rpm", "dnf", "yum", "zypper", "pip", "pip3", "conda", "mamba", "uv", "nvcc", "cuda", "mpi",
     "horovod", "packages", "m torch.utils.collect_env", "torch", "sglang", "ompi", "mpich", "hydra", "mvapich",
     "impi", "libnccl", "rccl", "ldconfig", "strings"),
    70, _read, _failed,
)  # fmt: skip
