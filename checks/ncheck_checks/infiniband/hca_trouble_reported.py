"""The driver reported trouble of an HCA

## What it finds
Lines of the driver mlx5_core in the kernel log since boot by which an HCA or its firmware failed: its health is
compromised, a fatal error, a health issue that the firmware calls an error or worse, a recovery that failed, a command
that the firmware did not answer in time, and a temperature above the limit. Lines that every start prints, and ports
without a cable, are left out. Only root can read the kernel log on a default machine (--sudo).

## Why it matters
While its firmware does not answer, an HCA drops its connections: NCCL ends with "unhandled system error" or waits for
its retries. After a recovery the port looks healthy, and the fault returns under load.

## What to type
`sudo devlink health show pci/ADDRESS` on the named node, and `sudo journalctl -k -b --no-pager | grep ADDRESS` for the
messages with their times. Update the firmware; if it goes on, or the card is hot, have the card or its cooling
exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import SLOW_NETWORK, Absent, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.hardware_log import HCA_TROUBLE, HardwareLogFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.kernel_log import last_at


@node_check(
    "NC431",
    Severity.WARNING,
    HardwareLogFacts,
    also=(InfinibandFacts,),
    explains=(HCA_TROUBLE, SLOW_NETWORK),
    hardware=True,
)
def hca_trouble_reported(node: NodeView) -> Iterator[Problem | NotApplicable]:
    ports, adapters = node.maybe(InfinibandFacts), node[HardwareLogFacts].adapters
    names = {port.pci: port.hca for port in ports.ports} if isinstance(ports, InfinibandFacts) else {}
    if isinstance(ports, Absent) and not adapters:
        yield NotApplicable(ports.reason)
    for adapter in adapters:
        name = f"{names[adapter.of]} ({adapter.of})" if adapter.of in names else f"the HCA at {adapter.of}"
        times = "trouble" if adapter.lines == 1 else f"trouble {adapter.lines} times"
        yield Problem(
            f"the driver reported {times} of {name}{last_at(adapter.last)}",
            f"sudo devlink health show {quote('pci/' + adapter.of)}",
            tuple({adapter.first: "", adapter.last: ""}),
            look=True,
            summary="trouble of an HCA",
        )
