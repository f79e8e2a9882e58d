"""The driver reported a fatal error of an NVSwitch

## What it finds
SXid lines in the kernel log that say "Fatal", since the driver was last loaded. Those that say "Non-fatal" need no
action. NVIDIA's Fabric Manager user guide lists the numbers. Needs root on most machines: use `--sudo`.

## Why it matters
The NVLinks through this switch are down. Programs on the GPUs behind it end with an error, and new ones fail to start
or hang in their first collective until the GPUs and switches are reset together.

## What to type
`sudo journalctl -k -g SXid` on the named node, then `sudo systemctl reboot`. If it returns, the board is defective.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_log import KernelLogFacts
from ncheck.facts.kernel_log import last_at


@node_check("NC538", Severity.ERROR, KernelLogFacts, hardware=True, resets_gpu=True)
def nvswitch_error_reported(node: NodeView) -> Iterator[Problem]:
    events = [event for event in node[KernelLogFacts].sxids if event.fatal and not event.earlier]
    for pci in dict.fromkeys(event.pci for event in events):
        own = [event for event in events if event.pci == pci]
        numbers = ", ".join(str(number) for number in dict.fromkeys(event.sxid for event in own))
        message = f"the driver reported fatal SXid {numbers} for the NVSwitch at {pci}{last_at(own[-1].line)}"
        lines = tuple({event.sxid: event.line for event in own}.values())
        yield Problem(message, "sudo systemctl reboot", lines, summary="a fatal error of an NVSwitch")
