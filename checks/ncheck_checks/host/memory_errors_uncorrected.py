"""Memory has errors that could not be corrected

## What it finds
Memory controllers that have counted errors which ECC could not correct, since their EDAC driver was loaded, and the
memory module, where the driver knows it. The kernel shows these counters to every user. Corrected errors are no
finding: healthy memory has some. Machines without an EDAC driver, such as most virtual machines, are skipped. Where the
firmware handles memory errors itself ("firmware first"), only those that it passes on are counted.

## Why it matters
Data was lost. If a program uses that place, it is killed with a bus error, or the whole node stops. A module that has
lost data once will do it again, and a job on many nodes loses all of them each time.

## What to type
`grep . /sys/devices/system/edac/mc/mc*/*/dimm_ue_count` shows the counters, `sudo ras-mc-ctl --errors` (rasdaemon) the
times, `sudo dmidecode -t memory` the slots. Have the module exchanged, and do not use the node until then.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.hardware_errors import MEMORY_ERROR, HardwareErrorFacts, MemoryModule


@node_check("NC655", Severity.ERROR, HardwareErrorFacts, explains=MEMORY_ERROR, hardware=True)
def memory_errors_uncorrected(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    memory = node[HardwareErrorFacts].memory
    if memory is None:
        yield NotApplicable("no EDAC driver is loaded: errors of memory are not counted")
    elif isinstance(memory, Unread):
        yield Inconclusive(memory.reason)
    elif memory.uncorrected:
        modules = [module for module in memory.modules if module.uncorrected]
        of = f" ({', '.join(module.label for module in modules)})" if modules else ""
        count = "an error" if memory.uncorrected == 1 else f"{memory.uncorrected} errors"
        yield Problem(
            f"memory has {count} that could not be corrected{of}",
            "sudo dmidecode -t memory",
            tuple(map(_line, modules)),
            look=True,
            summary="uncorrected memory errors",
        )


def _line(module: MemoryModule) -> str:
    corrected = "" if module.corrected is None else f", corrected {module.corrected}"
    return f"{module.label} ({module.location or 'place not known'}): uncorrected {module.uncorrected}{corrected}"
