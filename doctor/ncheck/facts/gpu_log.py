"""GPU errors in the kernel log: Xid lines of the NVIDIA driver, and SXid lines of its NVSwitches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from shlex import quote

from ncheck.expression import expression
from ncheck.facts.definition import Fact
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.kernel_log import DMESG, JOURNAL, kernel_log, last_at, seconds_of
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Problem
from ncheck.model.evidence import Evidence
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.xid_details import Detail, Stop, is_hopper, of_nvlink4, of_nvlink5, of_stopped_programs
from ncheck.parse.xids import BROKEN, NVLINK4, NVLINK5, OFF_THE_BUS, RECOVERY_CHANGED, STOPPED, Action, xid


@dataclass(frozen=True)
class XidEvent:
    """One `NVRM: Xid` line. `pci`: the GPU's address; `xid`: the number; `line`: the line itself.

    `earlier`: the driver was loaded again after it, or said after it (Xid 154) that the GPU needs no recovery any
    more.
    """

    pci: str
    xid: int
    line: str
    earlier: bool = False


@dataclass(frozen=True)
class SxidEvent:
    """One error of an NVSwitch. `pci`: its address; `sxid`: the number; `fatal`: the driver calls it fatal; `line`:
    the line itself. `earlier`: as of an Xid.
    """

    pci: str
    sxid: int
    fatal: bool
    line: str
    earlier: bool = False


@dataclass(frozen=True)
class KernelLogFacts:
    """What the kernel log says of GPUs. `xids` since boot. `source` is "journalctl -k" or "dmesg"; `oldest` is the
    time of the first line read. `sxids` are errors of NVSwitches; `failed` are GPUs that the driver could not
    initialize, with 0 as their number.
    """

    xids: tuple[XidEvent, ...]
    source: str
    oldest: str | Unread = ""
    sxids: tuple[SxidEvent, ...] = ()
    failed: tuple[XidEvent, ...] = ()


# [  913.2] NVRM: Xid (PCI:0000:91:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
# [  913.2] NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No
_XID = expression(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{1,20})(?: GPU-I:\d{1,4})?(?: GPU-CI:\d{1,4})?\): (\d{1,6})")

# NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)
_RECOVERY = expression(r"recovery action changed from .{1,60} to 0x[0-9a-f]+ \(([^)]{1,60})\)")

# [1235.4] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)
_SXID = expression(r"SXid \((?:PCI:)?([0-9A-Fa-f:.]{1,20})\): (\d{1,6}), (Fatal|Non-fatal)", re.IGNORECASE)

# NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x55:1860)
_FAILED = expression(r"NVRM: GPU ([0-9A-Fa-f:.]{1,20}): RmInitAdapter failed")

# NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
_LOADING = "NVRM: loading NVIDIA UNIX"


def gpu_log(evidence: Evidence) -> Read[KernelLogFacts]:
    """Read the first log that shows kernel messages."""
    log = kernel_log(evidence)
    if isinstance(log, (Unread, Absent)):
        return log
    lines = log.lines
    return KernelLogFacts(xid_events(lines), log.source, log.oldest, sxid_events(lines), failed_gpus(lines))


def xid_events(lines: Sequence[str]) -> tuple[XidEvent, ...]:
    """Return every Xid in the order of the log; the PCI address includes the function number, as in sysfs."""
    events = [
        XidEvent(_address(hit[1]), int(hit[2]), line.strip(), earlier) for hit, line, earlier in _found(_XID, lines)
    ]
    recovered: set[str] = set()
    for place, event in reversed(list(enumerate(events))):
        if _asked(event) == "None":
            recovered.add(event.pci)
        if event.pci in recovered:
            events[place] = replace(event, earlier=True)
    return tuple(events)


def sxid_events(lines: Sequence[str]) -> tuple[SxidEvent, ...]:
    """Return every error of an NVSwitch in the order of the log."""
    return tuple(
        SxidEvent(_address(hit[1]), int(hit[2]), hit[3].lower() == "fatal", line.strip(), earlier)
        for hit, line, earlier in _found(_SXID, lines)
    )


def failed_gpus(lines: Sequence[str]) -> tuple[XidEvent, ...]:
    """Return the GPUs that the driver could not initialize, each time that it tried."""
    return tuple(XidEvent(_address(hit[1]), 0, line.strip(), earlier) for hit, line, earlier in _found(_FAILED, lines))


def _found(pattern: re.Pattern[str], lines: Sequence[str]) -> Iterator[tuple[re.Match[str], str, bool]]:
    """Yield each match with its line, and whether the driver was loaded after it."""
    loaded = max((place for place, line in enumerate(lines) if _LOADING in line), default=-1)
    for place, line in enumerate(lines):
        if ("NVRM" in line or "SXid" in line) and (hit := pattern.search(line)):
            yield hit, line, place < loaded


def _address(text: str) -> str:
    return (text if "." in text else text + ".0").lower()


FACTS = (Fact(KernelLogFacts, (JOURNAL, DMESG), gpu_log),)
GPU_ERROR = "error of a GPU"  # what gpu-xid-reported explains: that the GPU is lost, or its memory broken
GPU_UNUSABLE = "unusable GPU"  # what gpu-unusable explains: that tools hang, or list fewer GPUs


@dataclass(frozen=True)
class _DecodedXid:
    """An Xid with what its line, and the lines like it, say. `advice`: what to do at once."""

    event: XidEvent
    meaning: str
    advice: Action


def broken_gpus(log: KernelLogFacts, health: GpuHealthFacts | None) -> dict[str, list[XidEvent]]:
    """Return the errors of each GPU that needs a reset, a reboot or a check, by its address; see `_still_broken`."""
    return {pci: [one.event for one in own] for pci, own in _broken(log, health)}


def _broken(log: KernelLogFacts, health: GpuHealthFacts | None) -> Iterator[tuple[str, list[_DecodedXid]]]:
    return _by_gpu([one for one in _decoded(log, health) if _is_fatal(one) and _still_broken(one.event, health)])


def of_broken_gpus(log: KernelLogFacts, health: GpuHealthFacts | None) -> Iterator[Problem]:
    """Yield one problem per GPU of `broken_gpus`, and per GPU that the driver could not initialize."""
    for pci, own in _broken(log, health):
        reboot = any(one.advice is Action.REBOOT or "Reboot" in _asked(one.event) for one in own)
        fix = "sudo systemctl reboot" if reboot else f"sudo nvidia-smi --gpu-reset -i {quote(pci)}"
        yield _problem(pci, own, fix, look=False)
    answering = {gpu.pci for gpu in health.gpus} if health else set()
    unstarted: dict[str, XidEvent] = {
        event.pci: event for event in log.failed if not event.earlier and event.pci not in answering
    }
    for pci, last in unstarted.items():
        message = f"the driver could not initialize the GPU at {pci} (RmInitAdapter failed){last_at(last.line)}"
        yield Problem(message, "sudo systemctl reboot", (last.line,), summary="a GPU was not initialized")


def of_repaired_gpus(log: KernelLogFacts, health: GpuHealthFacts | None) -> Iterator[Problem]:
    """Yield one problem per GPU that was broken, and was reset or needs nothing any more."""
    over = [one for one in _decoded(log, health) if _is_fatal(one) and not _still_broken(one.event, health)]
    for pci, own in _by_gpu(over):
        yield _problem(pci, own, "sudo journalctl -k -g NVRM", look=True)


def of_programs(log: KernelLogFacts, health: GpuHealthFacts | None) -> Iterator[Problem]:
    """Yield one problem per GPU with what is neither fatal nor harmless."""
    some = [one for one in _decoded(log, health) if not (_is_fatal(one) or _is_harmless(one))]
    for pci, own in _by_gpu(some):
        yield _problem(pci, own, "sudo journalctl -k -g NVRM", look=True)


def _decoded(log: KernelLogFacts, health: GpuHealthFacts | None) -> list[_DecodedXid]:
    """Return every Xid with what its line says beyond the number."""
    details: dict[int, Detail | None] = {
        place: of_nvlink5(event.line) for place, event in enumerate(log.xids) if event.xid in NVLINK5
    }
    hoppers = {gpu.pci for gpu in health.gpus if is_hopper(gpu.name)} if health else set()
    for pci in hoppers:
        links = {place: event for place, event in enumerate(log.xids) if (event.pci, event.xid) == (pci, NVLINK4)}
        details.update(zip(links, of_nvlink4([event.line for event in links.values()]), strict=True))
    stopped = {place: event for place, event in enumerate(log.xids) if event.xid in STOPPED}
    stops = [Stop(event.pci, event.xid, event.line, seconds_of(event.line)) for event in stopped.values()]
    details.update(zip(stopped, of_stopped_programs(stops), strict=True))
    return [_of_event(event, details.get(place)) for place, event in enumerate(log.xids)]


def _of_event(event: XidEvent, detail: Detail | None) -> _DecodedXid:
    """Return what is known. Of NVLink since Blackwell, a line that says Nonfatal asks for no reset."""
    meaning, advice = xid(event.xid).meaning, xid(event.xid).action
    if detail is not None:
        meaning, advice = f"{meaning} ({detail.part}: {detail.cause.value})", detail.action
    if event.xid in NVLINK5 and advice in BROKEN and "nonfatal" in event.line.lower():
        advice = Action.SUPPORT
    return _DecodedXid(event, meaning, advice)


def _is_fatal(one: _DecodedXid) -> bool:
    """Return whether the GPU was broken. Of Xid 154 the line says it."""
    if one.event.xid == RECOVERY_CHANGED:
        return _asked(one.event) not in ("", "None")
    return one.advice in BROKEN


def _is_harmless(one: _DecodedXid) -> bool:
    return one.advice is Action.NOTHING or one.event.xid == RECOVERY_CHANGED


def _asked(event: XidEvent) -> str:
    """Return what the driver asks for since this Xid 154; "" of any other."""
    found = _RECOVERY.search(event.line) if event.xid == RECOVERY_CHANGED else None
    return found[1] if found else ""


def _still_broken(event: XidEvent, health: GpuHealthFacts | None) -> bool:
    """Return False if the driver was loaded again since, if it says of the GPU now that it needs no recovery, or if the
    GPU answers again that was off the bus: a reset leaves no line in the log.
    """
    gpu = next((gpu for gpu in health.gpus if gpu.pci == event.pci), None) if health else None
    back = gpu is not None and event.xid == OFF_THE_BUS and not gpu.errors
    return not (event.earlier or back or (gpu is not None and gpu.action == 0))


def _by_gpu(decoded: list[_DecodedXid]) -> Iterator[tuple[str, list[_DecodedXid]]]:
    for pci in dict.fromkeys(one.event.pci for one in decoded):
        yield pci, [one for one in decoded if one.event.pci == pci]


def _problem(pci: str, decoded: list[_DecodedXid], fix: str, *, look: bool) -> Problem:
    last = decoded[-1].event.line
    decoded = sorted(decoded, key=lambda one: one.event.xid)
    counts = Counter(one.event.xid for one in decoded)
    xids = ", ".join(_times(number, count) for number, count in counts.items())
    meanings = _listed(dict.fromkeys(f"{one.event.xid}: {one.meaning}" for one in decoded))
    advice = ", ".join(dict.fromkeys(one.advice.value for one in decoded))
    message = f"the driver reported {xids} for the GPU at {pci} ({meanings}); NVIDIA's advice: {advice}"
    message += last_at(last)
    lines = {one.event.xid: one.event.line for one in decoded}
    return Problem(message, fix, tuple(lines.values()), look=look, summary=f"{xids} of a GPU")


_MOST = 6  # meanings in a message


def _listed(meanings: Iterable[str]) -> str:
    some = list(meanings)
    more = [f"{len(some) - _MOST} more"] if len(some) > _MOST else []
    return "; ".join(some[:_MOST] + more)


def _times(number: int, count: int) -> str:
    return f"Xid {number}" if count == 1 else f"Xid {number} ({count} times)"
