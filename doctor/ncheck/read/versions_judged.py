"""What is inconsistent among the versions of one text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ncheck.model.remark import Remark, error, info, warning
from ncheck.parse.cuda_compatibility import needed_driver
from ncheck.read.reading import Record

_SMALL_SHM = 1.0  # GB: a container gets 64 MiB of /dev/shm unless it asks for more


def judged(records: Sequence[Record]) -> Iterator[Remark]:
    """Yield the remarks on all records of a text, then on the records against each other."""
    for record in records:
        if record.get("error"):
            yield error(str(record["error"]))
        yield from _OF.get(str(record["format"]), _nothing)(record)
    if records[0]["format"] in _LISTS and records[0]["nccl"] is None:
        yield warning("no package of NCCL in this list")
    yield from _nccl_differs(records)
    yield from _cuda_differs(records)


def _nothing(_record: Record) -> Iterator[Remark]:
    yield from ()


def driver_remark(driver: str | None, cuda: str | None) -> Remark | None:
    """Return an error if the driver is older than the CUDA version allows; None also if either is unknown."""
    needed = needed_driver(driver or "", cuda or "")
    return error(f"driver {driver} is too old for CUDA {cuda}: it needs {needed} or later") if needed else None


def _collect_env(record: Record) -> Iterator[Remark]:
    cuda, driver = _text(record, "cuda_build"), _text(record, "driver")
    available = _text(record, "is_cuda_available") or _text(record, "cuda_available")
    if driver and re.match(r"\d", driver) and available == "False":
        yield error(f"torch finds no GPU although driver {driver} is installed")
    if "+cpu" in (_text(record, "pytorch") or ""):
        yield warning(f"torch {record['pytorch']} is built for CPUs only")
    if old := driver_remark(driver, cuda):
        yield old
    runtime = _text(record, "cuda_runtime") or ""
    if cuda and re.match(r"\d", cuda) and re.match(r"\d", runtime) and cuda.split(".")[0] != runtime.split(".")[0]:
        yield warning(f"torch is built for CUDA {cuda}, the toolkit (nvcc) is {runtime}: extensions will not build")


def _ds_report(record: Record) -> Iterator[Remark]:
    if mismatch := record.get("mismatch"):
        yield warning(f"{mismatch}: DeepSpeed cannot build its CUDA ops")
    size = record.get("shm_gb")
    if isinstance(size, float) and size < _SMALL_SHM:
        yield warning(f"shared memory (/dev/shm) is {size:g} GB: data loaders and NCCL need more")
    ops = cast("Mapping[str, Sequence[str]]", record.get("ops") or {})
    broken = [name for name, state in ops.items() if state[1] not in ("OKAY", "OK")]
    if broken:
        yield info(f"not compatible: {', '.join(broken)}")


def _horovod(record: Record) -> Iterator[Remark]:
    blocks = {
        key: cast("Mapping[str, bool]", record.get(key) or {}) for key in ("frameworks", "controllers", "operations")
    }
    if blocks["operations"] and not blocks["operations"].get("NCCL"):
        yield error("Horovod is built without NCCL: GPU tensors go over MPI or Gloo (HOROVOD_GPU_OPERATIONS=NCCL)")
    if blocks["frameworks"] and not any(blocks["frameworks"].values()):
        yield error("Horovod is built without any framework")
    if blocks["controllers"] and not any(blocks["controllers"].values()):
        yield error("Horovod is built without MPI and Gloo: no job can start")


def _packages(record: Record) -> Iterator[Remark]:
    runtime, headers = record.get("libnccl2"), record.get("libnccl_dev")
    if runtime and headers and runtime != headers:
        yield error(f"libnccl2 {runtime} but libnccl-dev {headers}: programs are built for another NCCL than they load")


def _nccl_log(record: Record) -> Iterator[Remark]:
    versions = cast("Sequence[str]", record.get("nccl") or ())
    plain = dict.fromkeys(version.partition("+")[0] for version in versions)
    if len(plain) > 1:
        yield error(f"several versions of NCCL in one job: {', '.join(plain)}")
    code = _text(record, "cuda_driver") or ""
    for version in versions:
        built = re.search(r"\+cuda(\d+)\.(\d+)", version)
        if built and code.isdigit() and int(built[1]) > int(code) // 1000:
            yield error(f"NCCL {version} is built for CUDA {built[1]}, the driver knows CUDA {int(code) // 1000}")


_LISTS = ("dpkg", "rpm", "pip", "conda")

_OF = {
    "torch_collect_env": _collect_env, "sglang_check_env": _collect_env, "ds_report": _ds_report,
    "horovod_check_build": _horovod, "nccl_log": _nccl_log,
    **dict.fromkeys(_LISTS, _packages),
}  # fmt: skip


def _nccl_differs(records: Sequence[Record]) -> Iterator[Remark]:
    """Compare NCCL between records; a log's own versions are compared with each other above."""
    versions: dict[str, str] = {}
    for record in records:
        found = record.get("nccl")
        one = found[0] if isinstance(found, list) and len(found) == 1 else found
        if isinstance(one, str):
            versions.setdefault(one.partition("+")[0], str(record["format"]))
    if len(versions) > 1:
        yield error("NCCL differs: " + ", ".join(f"{version} ({source})" for version, source in versions.items()))


def _cuda_differs(records: Sequence[Record]) -> Iterator[Remark]:
    """Compare the major CUDA version of the toolkit with that of packages and frameworks."""
    majors: dict[str, str] = {}
    for record in records:
        for key in ("cuda_build", "torch_cuda", "cuda"):
            value = record.get(key)
            if isinstance(value, str) and re.match(r"\d", value):
                majors.setdefault(value.split(".")[0], f"{value} ({record['format']})")
    if len(majors) > 1:
        yield warning(f"CUDA differs: {', '.join(majors.values())}")


def _text(record: Record, key: str) -> str | None:
    value = record.get(key)
    return value if isinstance(value, str) else None
