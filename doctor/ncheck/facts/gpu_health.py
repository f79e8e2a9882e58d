"""How each NVIDIA GPU is by NVML: memory errors, clocks, temperature, modes, NVLink; and the driver as it is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypedDict, cast

from ncheck.facts.definition import LONGEST, Fact, trouble
from ncheck.facts.gpus import DEVICES, SMI, shown_gpus
from ncheck.model.check import Inconclusive, NotApplicable
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.nvidia_smi import pci_address, smi_failure

VERSIONS_DIFFER = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH


@dataclass(frozen=True)
class Failure:
    """What NVML says where a function fails. `code` is NVML's number: 15 is a GPU that is lost."""

    code: int
    words: str


@dataclass(frozen=True)
class RemappedRows:
    """Rows of memory that spare ones replaced. `pending`: at the next reset. `failed`: no spare row was left."""

    correctable: int
    uncorrectable: int
    pending: bool
    failed: bool


@dataclass(frozen=True)
class Fabric:
    """A GPU and the fabric of NVSwitches. `state`: 0 none, 1 not started, 2 in progress, 3 completed.

    `cluster` is the NVLink domain across nodes as 32 hexadecimal digits, "" where there is none; GPUs reach each other
    by NVLink within one `clique` of it. `health` are NVML's bits.
    """

    state: int
    status: int = 0
    cluster: str = ""
    clique: int = 0
    health: int = 0


@dataclass(frozen=True)
class GpuHealth:
    """One GPU; None is what it, or its driver, does not have. `errors`: what should have been readable, and why not.

    `ecc` counts errors that could not be corrected since the driver was loaded, `ecc_ever` all in the life of the GPU.
    `throttled` are NVML's bits for why the clocks are low. `margin`: degrees below the temperature at which the GPU
    slows down. `links` are the states of its NVLinks, 1 is active; `link_errors` counts by kind. `action`: NVML's
    number for what the driver asks for, 0 is nothing.
    """

    index: int
    pci: str = ""
    name: str = ""
    ecc_mode: int | None = None
    ecc: int | None = None
    ecc_ever: int | None = None
    remapped: RemappedRows | None = None
    retired: int | None = None
    retiring: bool | None = None
    throttled: int | None = None
    temperature: int | None = None
    slowdown: int | None = None
    margin: int | None = None
    persistence: int | None = None
    compute_mode: int | None = None
    mig: bool | None = None
    links: tuple[int, ...] = ()
    link_errors: Mapping[str, int] = field(default_factory=dict)
    action: int | None = None
    fabric: Fabric | None = None
    errors: Mapping[str, Failure] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """GPU 3 (0000:5d:00.0)"""
        return f"GPU {self.index} ({self.pci})" if self.pci else f"GPU {self.index}"


@dataclass(frozen=True)
class GpuHealthFacts:
    """The GPUs. `hung` is the index of one that stopped answering; those after it are not known.

    `unlisted`: addresses of GPUs that the driver has and NVML does not list, with why they do not open.
    """

    gpus: tuple[GpuHealth, ...]
    hung: int | None = None
    unlisted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NvidiaDriverFacts:
    """The driver: the versions of the kernel module and of NVML's library, "" where they are not known.

    `failure` is why NVML did not start. `channels` counts the channels of IMEX, `usable_channels` those that this user
    can open. `compatibility` are copies of CUDA's forward compatibility package.
    """

    module: str
    library: str = ""
    failure: Failure | None = None
    channels: int = 0
    usable_channels: int = 0
    compatibility: tuple[str, ...] = ()


class FabricAnswer(TypedDict):
    state: int
    status: int
    clique: int
    health: int
    cluster: str


class GpuHealthAnswer(TypedDict):
    """One GPU as NVML shows it; see agent/answers."""

    index: int
    pci: str | None
    name: str | None
    ecc_mode: list[int] | None
    ecc: int | None
    ecc_ever: int | None
    remapped: list[int] | None
    retired: int | None
    retiring: int | None
    throttled: int | None
    temperature: int | None
    slowdown: int | None
    margin: int | None
    persistence: int | None
    compute_mode: int | None
    mig: list[int] | None
    links: list[int] | None
    fields: dict[str, int] | None
    fabric: FabricAnswer | None
    errors: dict[str, list[int | str]]


class FailedAnswer(TypedDict):
    function: str
    code: int | None
    words: str


class HealthAnswer(TypedDict):
    driver: str
    library: str
    module: str
    count: int | None
    failed: FailedAnswer | None
    gpus: list[GpuHealthAnswer]
    at: int | None
    done: bool
    ended: bool
    words: str
    silent: float
    unlisted: list[list[str]]
    channels: int
    usable_channels: int
    compatibility: list[str]


HEALTH = Answer("gpu-health", timeout=15.0, shape=HealthAnswer)


_PATIENCE = 8.0  # seconds that one GPU may need: without persistence mode the driver wakes it first


# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder@...)
_MODULE = re.compile(r"Kernel Module\D{0,40}(?:x86_64|aarch64|ppc64le)?\s+(\d{3,4}(?:\.\d{1,4}){1,3})\b")

# /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d{3,4}(?:\.\d{1,4}){1,3})")

_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
LINK_ERRORS = ("flit_crc", "data_crc", "replay", "recovered")
_NO_CLUSTER = "0" * 32
_NO_PERMISSION = 4


def gpu_health(evidence: Evidence) -> Read[GpuHealthFacts]:
    """Read the GPUs. Where NVML does not start, is slow, or its process ends, all of it is Unread."""
    if why := _unanswered(evidence):
        return why
    answer = cast("HealthAnswer", evidence.reply(HEALTH).value)
    gpus = tuple(gpu for gpu in map(_gpu, answer["gpus"]) if not _forbidden(gpu))
    unlisted = {_address(pci): why[:LONGEST] for pci, why in answer["unlisted"]}
    if answer["done"]:
        return GpuHealthFacts(gpus, None, unlisted) if gpus or unlisted else Absent("no NVIDIA GPU in NVML")
    return _broken_off(answer) or GpuHealthFacts(gpus, answer["at"], unlisted)


def _broken_off(answer: HealthAnswer) -> Unread | None:
    """Return why NVML did not come to its end; None where one GPU hangs."""
    if answer["failed"]:
        return Unread(f"NVML does not start: {answer['failed']['words'][:LONGEST]}", fix="nvidia-smi")
    if answer["ended"]:
        words = f": {answer['words'][:LONGEST]}" if answer["words"] else ""
        return Unread(f"NVML ended the process that asked it{words}", fix="nvidia-smi -q")
    if answer["at"] is None:
        return Unread("NVML did not start in time", fix="timeout 30 nvidia-smi", hung="nvmlInit")
    if answer["silent"] < _PATIENCE:
        read = len(answer["gpus"])
        return Unread(f"NVML is slow: only {read} GPU(s) could be read in time", fix="timeout 60 nvidia-smi -q")
    return None


def nvidia_driver(evidence: Evidence) -> Read[NvidiaDriverFacts]:
    """Read the driver; no module in /proc and no library is a driver that is not loaded, which other facts judge."""
    refused = smi_failure(evidence.reply(SMI).stdout + evidence.reply(SMI).stderr) or ""
    if "version mismatch" in refused:  # nvidia-smi says it where NVML is not asked, too
        return NvidiaDriverFacts(*_versions(evidence), failure=Failure(VERSIONS_DIFFER, refused[:LONGEST]))
    if why := _unanswered(evidence):
        return why
    answer = cast("HealthAnswer", evidence.reply(HEALTH).value)
    failed = answer["failed"]
    return NvidiaDriverFacts(
        *_versions(evidence),
        failure=Failure(failed["code"], failed["words"][:LONGEST]) if failed and failed["code"] is not None else None,
        channels=answer["channels"],
        usable_channels=answer["usable_channels"],
        compatibility=tuple(answer["compatibility"]),
    )


def _versions(evidence: Evidence) -> tuple[str, str]:
    """Return the versions of the kernel module and of NVML's library, "" where they are not known."""
    reply = evidence.reply(HEALTH)
    if trouble(HEALTH, reply):
        return "", ""
    answer = cast("HealthAnswer", reply.value)
    module, library = _MODULE.search(answer["module"]), _LIBRARY.search(PurePosixPath(answer["library"]).name)
    return module[1] if module else "", library[1] if library else ""


def _unanswered(evidence: Evidence) -> Unread | Absent | None:
    """Return why there is no answer: Absent only if PCI shows no GPU either."""
    why = trouble(HEALTH, evidence.reply(HEALTH))
    if isinstance(why, Absent):
        shown = shown_gpus(evidence)
        return (
            Unread(f"PCI shows {len(shown)} NVIDIA GPU(s), but NVML was not asked")
            if shown
            else Absent("no NVIDIA GPU")
        )
    return why


def _gpu(one: GpuHealthAnswer) -> GpuHealth:
    pci, values, remapped, mig = one.get("pci"), one.get("fields") or {}, one.get("remapped"), one.get("mig")
    ecc_mode, retiring, fabric = one.get("ecc_mode"), one.get("retiring"), one.get("fabric")
    return GpuHealth(
        index=one["index"],
        pci=_address(pci_address(pci)) if pci else "",
        name=(one.get("name") or "")[:LONGEST],
        ecc_mode=ecc_mode[0] if ecc_mode else None,
        ecc=one.get("ecc"),
        ecc_ever=one.get("ecc_ever"),
        remapped=RemappedRows(remapped[0], remapped[1], bool(remapped[2]), bool(remapped[3])) if remapped else None,
        retired=one.get("retired"),
        retiring=None if retiring is None else bool(retiring),
        throttled=one.get("throttled"),
        temperature=one.get("temperature"),
        slowdown=one.get("slowdown"),
        margin=one.get("margin"),
        persistence=one.get("persistence"),
        compute_mode=one.get("compute_mode"),
        mig=bool(mig[0]) if mig else None,
        links=tuple(one.get("links") or ()),
        link_errors={name: values[name] for name in LINK_ERRORS if name in values},
        action=values.get("action"),
        fabric=_fabric(fabric) if fabric else None,
        errors={name: Failure(int(code), str(words)[:LONGEST]) for name, (code, words) in one["errors"].items()},
    )


def _forbidden(gpu: GpuHealth) -> bool:
    """Return whether this user has no right to the GPU: in a job of Slurm, NVML counts those of others, too."""
    return "handle" in gpu.errors and gpu.errors["handle"].code == _NO_PERMISSION


def _fabric(one: FabricAnswer) -> Fabric:
    cluster = one["cluster"] if re.fullmatch(r"[0-9a-f]{32}", one["cluster"]) and one["cluster"] != _NO_CLUSTER else ""
    return Fabric(one["state"], one["status"], cluster, one["clique"], one["health"])


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text.lower()):
        raise ValueError("no PCI address of a GPU")
    return text.lower()


FACTS = (
    Fact(GpuHealthFacts, (HEALTH, DEVICES), gpu_health),
    Fact(NvidiaDriverFacts, (HEALTH, SMI, DEVICES), nvidia_driver),
)


def nothing_to_judge(
    facts: GpuHealthFacts, what: str, value_of: Callable[[GpuHealth], object], *names: str
) -> Iterator[Inconclusive | NotApplicable]:
    """Yield why a check has nothing to judge: a GPU that could not be read, or none that has this at all.

    `what` is what the check reads, for people; `value_of` returns it of a GPU, None where the GPU does not have it;
    `names` are its keys in `errors`.
    """
    if reason := _unread(facts, what, names):
        yield Inconclusive(reason)
    elif all(value_of(gpu) is None for gpu in facts.gpus):
        yield NotApplicable(f"no GPU of this node reports {what}")


def unread_nodes(health: Mapping[str, GpuHealthFacts], what: str, *names: str) -> Iterator[Inconclusive]:
    """Yield the nodes of which a check that compares nodes could not read this of every GPU; see `nothing_to_judge`."""
    for node, facts in health.items():
        if reason := _unread(facts, what, names):
            yield Inconclusive(reason, (node,))


def _unread(facts: GpuHealthFacts, what: str, names: tuple[str, ...]) -> str:
    for gpu in facts.gpus:
        failed = next((gpu.errors[name] for name in ("handle", *names) if name in gpu.errors), None)
        if failed:
            return f"{what} of {gpu.called} could not be read: {failed.words}"
    if facts.hung is not None:
        return f"{what} could not be read of every GPU: GPU {facts.hung} does not answer"
    return ""
