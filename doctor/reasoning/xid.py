"""What the NVIDIA driver's Xid numbers call for, by NVIDIA's catalogue of immediate actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from shlex import quote

from doctor.model.check import Problem
from doctor.model.facts import KernelLogFacts, XidEvent

# The GPU must be reset, the machine restarted, or a link or memory looked after before a job can rely on it.
FATAL = frozenset(
    {46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, *range(143, 151), 155, 156, 158}
)  # fmt: skip
# The catalogue says that nothing need be done.
HARMLESS = frozenset({14, 37, 38, 43, 44, 63, 92, 93, 121, 137, 141, 152, 153})
OFF_THE_BUS = 79


def problems(log: KernelLogFacts, *, fatal: bool, way_in: str = "") -> Iterator[Problem]:
    """Yield one problem a GPU: its fatal events, or those that are neither fatal nor harmless.

    `way_in` ("ssh -t node07 ") goes before what ends all that runs there: it must not be typed elsewhere.
    """
    events = [e for e in log.xids if e.xid not in HARMLESS and (e.xid in FATAL) == fatal]
    for pci in dict.fromkeys(event.pci for event in events):
        yield _problem(pci, [event for event in events if event.pci == pci], fatal=fatal, way_in=way_in)


def _problem(pci: str, events: list[XidEvent], *, fatal: bool, way_in: str) -> Problem:
    counts = Counter(event.xid for event in events)
    said = ", ".join(_times(xid, count) for xid, count in sorted(counts.items()))
    last = {event.xid: event.line for event in events}
    message = f"the driver reported {said} for the GPU at {pci}"
    return Problem(message, way_in * fatal + _fix(pci, counts, fatal=fatal), tuple(last.values()))


def _times(xid: int, count: int) -> str:
    return f"Xid {xid}" if count == 1 else f"Xid {xid} ({count} times)"


def _fix(pci: str, counts: Counter[int], *, fatal: bool) -> str:
    if not fatal:
        return "sudo journalctl -k -g NVRM"
    return "sudo systemctl reboot" if OFF_THE_BUS in counts else f"sudo nvidia-smi --gpu-reset -i {quote(pci)}"
