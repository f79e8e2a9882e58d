"""The kernel of a node differs

## What it finds
Nodes that run another kernel release, or another processor architecture, than the other nodes with the same GPU model.

## Why it matters
Modules are built for one kernel: after a node was updated alone, its GPU or InfiniBand driver, nvidia_peermem or a
Lustre client is often missing or of another version, and a job dies at init or becomes slow on this node only. Defaults
of the network and of the scheduler change between kernels too. A new kernel may also be installed everywhere and wait
for a reboot on some nodes.

## What to type
`uname -r` on the named nodes and `ls /boot/vmlinuz-*`: if the others' kernel is installed, reboot; else install it.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.machine import MachineFacts


@parity_check(
    "NC629", Severity.WARNING, MachineFacts, by_kind=True, what="the kernel differs", fix="uname -r", look=True,
)  # fmt: skip
def kernel_differs(machine: MachineFacts) -> str:
    return f"{machine.kernel} {machine.architecture}"
