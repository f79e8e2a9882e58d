"""How each NVIDIA GPU is by NVML: memory errors, clocks, temperature, modes, NVLink; and the driver as it is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import PurePosixPath
from typing import Annotated

from ncheck.decode import OPTIONAL, Count, HowMany, Key, Maybe, Null, Shown, Words
from ncheck.expression import expression
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import Fact, trouble
from ncheck.facts.gpus import DEVICES, SMI, WAKING, shown_gpus
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Inconclusive, NotApplicable
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.nvidia_smi import pci_address, smi_failure
from ncheck.text import LONGEST_MESSAGE

GPU_LOST, VERSIONS_DIFFER = 15, 18  # NVML_ERROR_GPU_IS_LOST, NVML_ERROR_LIB_RM_VERSION_MISMATCH


@dataclass(frozen=True)
class Failure:
    """What NVML says where a function fails. `code` is NVML's number: 15 is a GPU that is lost."""

    code: int
    words: str


@dataclass(frozen=True)
class RemappedRows:
    """Rows of memory that spare ones replaced. `correctable` and `uncorrectable`: how many, by the errors that they
    had. `pending`: some are replaced at the next reset. `failed`: no spare row was left.
    """

    correctable: int
    uncorrectable: int
    pending: bool
    failed: bool


@dataclass(frozen=True)
class Fabric:
    """A GPU and the fabric of NVSwitches. `state`: 0 none, 1 not started, 2 in progress, 3 completed. `status`:
    NVML's number for how it completed, 0 is success.

    `cluster` is the NVLink domain across nodes as 32 hexadecimal digits, "" where there is none. `clique`: GPUs
    reach each other by NVLink within one clique of the cluster. `health` are NVML's bits.
    """

    state: int
    status: int = 0
    cluster: Annotated[str, _cluster] = ""
    clique: int = 0
    health: int = 0


@dataclass(frozen=True)
class LinkCounters:
    """The error counters of a GPU's active NVLinks. `read`: how many links have any; `refused`: how many this user may
    not read. `errors`: by number of the link and name of the counter, without those that are 0.

    Up to Hopper: "replay", "recovered", "crc". Since Blackwell: "malformed" packets, packets that were "received" with
    errors, "integrity" (local errors above a threshold), "recoveries" of any result and those after which the link was
    "lost", "symbol" errors.
    """

    read: HowMany
    refused: HowMany = 0
    errors: Annotated[Mapping[int, Mapping[str, int]], _by_link] = field(default_factory=dict)


@dataclass(frozen=True)
class GpuHealth:
    """One GPU; None is what it, or its driver, does not have. `errors`: what should have been readable, and why
    not.

    `ecc_mode`: 1 is on; `ecc_pending`: 1 is on after the next reset. `ecc`: how many errors could not be corrected
    since the driver was loaded; `ecc_ever`: the same in the life of the GPU. `retired`: how many pages of memory are
    used no more; `retiring`: more will be at the next start. `throttled` are NVML's bits for why the clocks are low.
    `temperature`: degrees Celsius; `slowdown`: degrees Celsius at which the GPU slows down; `margin`: degrees Celsius
    that are left until then. `memory_temperature`: degrees Celsius; `memory_limit`: degrees Celsius that the memory may
    have at most. `persistence`: 1 is on. `compute_mode`: NVML's number, 0 is the default, 2 prohibited, 3 one process.
    `power_limit`: milliwatts; `power_default`: milliwatts that the limit is where nobody changed it.
    `application_clocks`: MHz of the cores and of the memory that programs get; `max_clocks`: MHz of the same that the
    GPU can have. `vbios` and `inforom`: versions of its firmware; `serial`: the number of its board, "" for none.
    `sram_exceeded`: its caches had more uncorrectable errors than NVIDIA's limit; only root can read it.
    `pcie_replays`: how many since the driver was loaded.
    `mig_pending`: whether MIG is on after the next reset. `links` are the states of its NVLinks, 1 is active;
    `link_errors`: how many on all links, by kind; `counted`: those of each link. `action`: NVML's number for what the
    driver asks for, 0 is nothing.
    """

    index: int
    pci: Annotated[str, OPTIONAL, Null(""), gpu_address] = ""
    name: Annotated[Words, OPTIONAL, Null("")] = ""
    ecc_mode: Annotated[int | None, OPTIONAL, Null(None), _first] = None
    ecc_pending: Annotated[int | None, OPTIONAL, Key("ecc_mode"), Null(None), _second] = None
    ecc: Maybe[int] = None
    ecc_ever: Maybe[int] = None
    remapped: Annotated[RemappedRows | None, OPTIONAL, _remapped] = None
    retired: Maybe[int] = None
    retiring: Annotated[bool | None, OPTIONAL, _truth] = None
    throttled: Maybe[int] = None
    temperature: Maybe[int] = None
    slowdown: Maybe[int] = None
    margin: Maybe[int] = None
    persistence: Maybe[int] = None
    compute_mode: Maybe[int] = None
    power_limit: Maybe[int] = None
    power_default: Maybe[int] = None
    application_clocks: Maybe[tuple[int, int]] = None
    max_clocks: Maybe[tuple[int, int]] = None
    serial: Annotated[Shown, OPTIONAL, Null("")] = ""
    vbios: Annotated[Shown, OPTIONAL, Null("")] = ""
    inforom: Annotated[Shown, OPTIONAL, Null("")] = ""
    memory_temperature: Annotated[int | None, OPTIONAL, Key("fields"), Null(None), _memory_temperature] = None
    memory_limit: Maybe[int] = None
    sram_exceeded: Maybe[bool] = None
    pcie_replays: Maybe[int] = None
    mig: Annotated[bool | None, OPTIONAL, Null(None), _first_truth] = None
    mig_pending: Annotated[bool | None, OPTIONAL, Key("mig"), Null(None), _second_truth] = None
    links: Annotated[tuple[int, ...], OPTIONAL, Null(())] = ()
    link_errors: Annotated[Mapping[str, int], OPTIONAL, Key("fields"), _link_errors] = field(default_factory=dict)
    counted: Maybe[LinkCounters] = None
    action: Annotated[int | None, OPTIONAL, Key("fields"), Null(None), _action] = None
    fabric: Maybe[Fabric] = None
    errors: Mapping[str, Annotated[Failure, _failure]] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """GPU 3 (0000:5d:00.0)"""
        return f"GPU {self.index} ({self.pci})" if self.pci else f"GPU {self.index}"

    @property
    def active_links(self) -> int:
        """How many of its NVLinks are active"""
        return self.links.count(1)


@dataclass(frozen=True)
class GpuHealthFacts:
    """The GPUs. `hung` is the index of one that stopped answering; those after it are not known.

    `unlisted`: addresses of GPUs that the driver has and NVML does not list, with why they do not open. `busy` maps the
    index of each GPU that computed in two looks a second apart to the percentage of the time in the less busy one.
    """

    gpus: tuple[GpuHealth, ...]
    hung: int | None = None
    unlisted: Mapping[str, str] = field(default_factory=dict)
    busy: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NvidiaDriverFacts:
    """The driver. `module` and `library`: the versions of the kernel module and of NVML's library, "" where they
    are not known.

    `failure` is why NVML did not start. `channels`: how many channels IMEX has; `usable_channels`: how many of them
    this user can open. `compatibility` are copies of CUDA's forward compatibility package.
    """

    module: str
    library: str = ""
    failure: Failure | None = None
    channels: int = 0
    usable_channels: int = 0
    compatibility: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotStarted:
    """Why NVML did not start: its number, null where it is no function of NVML that failed."""

    code: int | None
    words: Words


@dataclass(frozen=True)
class DriverAnswer:
    """`module`: the first line of /proc/driver/nvidia/version."""

    library: str
    module: str
    failed: NotStarted | None
    channels: int
    usable_channels: int
    compatibility: tuple[str, ...]


@dataclass(frozen=True)
class HealthAnswer:
    """What a child of the agent said. `at`: the GPU that did not answer; `done`: all did; `ended`: the child ended by
    itself, after it printed `words`; `silent`: seconds since its last word.
    """

    failed: NotStarted | None
    gpus: tuple[GpuHealth, ...]
    at: int | None
    done: bool
    ended: bool
    words: Words
    silent: float
    unlisted: tuple[tuple[Annotated[str, _address], Words], ...]
    busy: Annotated[tuple[tuple[int, int], ...], OPTIONAL, Null(())] = ()


HEALTH = Answer("gpu-health", timeout=WAKING, shape=HealthAnswer, slow=True)
_OF_DRIVER = replace(HEALTH, shape=DriverAnswer)
_PATIENCE = 8.0  # seconds that one GPU may need: without persistence mode the driver wakes it first

# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder@...)
_MODULE = expression(r"Kernel Module\D{0,40}(?:x86_64|aarch64|ppc64le)?\s+(\d{3,4}(?:\.\d{1,4}){1,3})\b")

# /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15
_LIBRARY = expression(r"libnvidia-ml\.so\.(\d{3,4}(?:\.\d{1,4}){1,3})")

_ADDRESS = expression(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
LINK_ERRORS = ("flit_crc", "data_crc", "replay", "recovered")
NVLINK_FAULT = "fault of an NVLink"  # what nvlink-errors explains: that a link counts more errors than others
_NO_CLUSTER = "0" * 32
_NO_PERMISSION = 4


def gpu_health(evidence: Evidence) -> Read[GpuHealthFacts]:
    """Read the GPUs. Where NVML does not start, is slow, or its process ends, all of it is Unread."""
    if why := _unanswered(evidence):
        return why
    answer: HealthAnswer = answer_of(HEALTH, evidence)
    gpus = tuple(gpu for gpu in answer.gpus if not _forbidden(gpu))
    unlisted = dict(answer.unlisted)
    if answer.done:
        facts = GpuHealthFacts(gpus, None, unlisted, dict(answer.busy))
        return facts if gpus or unlisted else Absent("no NVIDIA GPU in NVML")
    return _broken_off(answer) or GpuHealthFacts(gpus, answer.at, unlisted)


def _broken_off(answer: HealthAnswer) -> Unread | None:
    """Return why NVML did not come to its end; None where one GPU hangs."""
    if answer.failed:
        return Unread(f"NVML does not start: {answer.failed.words}", fix="nvidia-smi")
    if answer.ended:
        words = f": {answer.words}" if answer.words else ""
        return Unread(f"NVML ended the process that asked it{words}", fix="nvidia-smi -q")
    if answer.at is None:
        return Unread("NVML did not start in time", fix="timeout 30 nvidia-smi", hung="nvmlInit")
    if answer.silent < _PATIENCE:
        read = len(answer.gpus)
        return Unread(f"NVML is slow: only {read} GPU(s) could be read in time", fix="timeout 60 nvidia-smi -q")
    return None


def nvidia_driver(evidence: Evidence) -> Read[NvidiaDriverFacts]:
    """Read the driver; no module in /proc and no library is a driver that is not loaded, which other facts judge."""
    answer: Read[DriverAnswer] = answer_of(_OF_DRIVER, evidence, trouble)
    refused = smi_failure(evidence.reply(SMI).stdout + evidence.reply(SMI).stderr) or ""
    if "version mismatch" in refused:  # nvidia-smi says it where NVML is not asked, too
        return NvidiaDriverFacts(*_versions(answer), failure=Failure(VERSIONS_DIFFER, refused[:LONGEST_MESSAGE]))
    if isinstance(answer, (Unread, Absent)):
        return _unanswered(evidence) or answer
    failed = answer.failed
    return NvidiaDriverFacts(
        *_versions(answer),
        failure=Failure(failed.code, failed.words) if failed and failed.code is not None else None,
        channels=answer.channels,
        usable_channels=answer.usable_channels,
        compatibility=answer.compatibility,
    )


def _versions(answer: Read[DriverAnswer]) -> tuple[str, str]:
    """Return the versions of the kernel module and of NVML's library, "" where they are not known."""
    if isinstance(answer, (Unread, Absent)):
        return "", ""
    module, library = _MODULE.search(answer.module), _LIBRARY.search(PurePosixPath(answer.library).name)
    return module[1] if module else "", library[1] if library else ""


def _unanswered(evidence: Evidence) -> Unread | Absent | None:
    return unless_on_pci(HEALTH, "NVML was not asked", evidence)


def unless_on_pci(source: Answer, why_not: str, evidence: Evidence) -> Unread | Absent | None:
    """Return why there is no answer about NVIDIA's GPUs: Absent only if PCI shows no GPU either, else `why_not`."""
    why = trouble(source, evidence.reply(source))
    if not isinstance(why, Absent):
        return why
    shown = shown_gpus(evidence)
    return Unread(f"PCI shows {len(shown)} NVIDIA GPU(s), but {why_not}") if shown else Absent("no NVIDIA GPU")


def gpu_address(text: str) -> str:
    """Return the PCI address of a GPU as sysfs writes it, "" for none. Raises ValueError for what is none."""
    return _address(pci_address(text)) if text else ""


def _first(values: tuple[int, ...]) -> int | None:
    return values[0] if values else None


def _second(values: tuple[int, ...]) -> int | None:
    return values[1] if values[1:] else None


def _first_truth(values: tuple[int, ...]) -> bool | None:
    return bool(values[0]) if values else None


def _second_truth(values: tuple[int, ...]) -> bool | None:
    return bool(values[1]) if values[1:] else None


def _truth(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _remapped(rows: tuple[int, int, int, int] | None) -> RemappedRows | None:
    return RemappedRows(rows[0], rows[1], bool(rows[2]), bool(rows[3])) if rows else None


def _link_errors(fields: Mapping[str, int] | None) -> Mapping[str, int]:
    return {name: fields[name] for name in LINK_ERRORS if name in fields} if fields else {}


def _by_link(rows: tuple[tuple[Count, Mapping[str, Count]], ...]) -> Mapping[int, Mapping[str, int]]:
    return dict(rows)


def _memory_temperature(fields: Mapping[str, int]) -> int | None:
    return fields.get("memory_temperature")


def _action(fields: Mapping[str, int]) -> int | None:
    return fields.get("action")


def _failure(row: tuple[int, Words]) -> Failure:
    return Failure(*row)


def _forbidden(gpu: GpuHealth) -> bool:
    """Return whether this user has no right to the GPU: in a job of Slurm, NVML counts those of others, too."""
    return "handle" in gpu.errors and gpu.errors["handle"].code == _NO_PERMISSION


def _cluster(text: str) -> str:
    return text if re.fullmatch(r"[0-9a-f]{32}", text) and text != _NO_CLUSTER else ""


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text.lower()):
        raise ValueError("no PCI address of a GPU")
    return text.lower()


FACTS = (
    Fact(GpuHealthFacts, (HEALTH, DEVICES), gpu_health),
    Fact(NvidiaDriverFacts, (_OF_DRIVER, SMI, DEVICES), nvidia_driver),
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
    """Return why this could not be read of every GPU. Of one that does not answer all checks say the same."""
    for gpu in facts.gpus:
        if "handle" in gpu.errors:
            return f"{gpu.called} could not be read: {gpu.errors['handle'].words}"
        if failed := next((gpu.errors[name] for name in names if name in gpu.errors), None):
            return f"{what} of {gpu.called} could not be read: {failed.words}"
    return "" if facts.hung is None else f"not every GPU could be read: GPU {facts.hung} does not answer"
