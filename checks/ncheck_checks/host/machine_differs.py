"""The hardware of a node differs

## What it finds
Nodes whose machine differs from the other nodes with the same GPU model: more than 2 % less or more memory, another
model or number of processors, another number of NVMe drives, another size of swap space; and among machines of one
product, another version of the BIOS (UEFI firmware).

## Why it matters
A memory module, a processor or a drive that failed disappears at the next start, often without a message: the node then
runs with less memory bandwidth, or without its scratch disks, and the job is as slow as its slowest node. With another
BIOS, its defaults (power, NUMA, PCIe) are often others, too. Swap on one node hides that its memory is too small.

## What to type
On a node of each kind: `free -g; sudo dmidecode -t memory | grep -E 'Locator|Size'` shows which module is gone,
`lscpu` the processors, `lsblk -d -o NAME,MODEL,SIZE` the drives, `swapon --show` the swap space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.host_load import HostLoadFacts
from ncheck.facts.machine import MachineFacts

SAME = 1.02  # the kernel keeps a little of the memory to itself, not the same on each node
GIB = 2**30


@cluster_check("NC653", Severity.WARNING, MachineFacts, also=(HostLoadFacts,), by_kind=True, hardware=True)
def machine_differs(cluster: Cluster) -> Iterator[Problem]:
    machines = cluster.facts(MachineFacts)
    memory = "free -g; sudo dmidecode -t memory | grep -E 'Locator|Size'"
    yield from _problem("the installed memory", memory, _memory(machines))
    processors = {node: text for node, one in machines.items() if (text := _processors(one))}
    yield from _problem("the set of processors", "lscpu", processors)
    drives = {node: str(one.nvme_drives) for node, one in machines.items() if one.nvme_drives is not None}
    yield from _problem("the number of NVMe drives", "lsblk -d -o NAME,MODEL,SIZE", drives)
    for product in dict.fromkeys(one.product for one in machines.values() if one.product):
        versions = {node: one.bios for node, one in machines.items() if one.product == product and one.bios}
        yield from _problem("the version of the BIOS", "cat /sys/class/dmi/id/bios_version", versions)
    loads = cluster.facts(HostLoadFacts)
    swap = {node: _gib(one.swap.limit if one.swap else 0) for node, one in loads.items() if one.memory is not None}
    yield from _problem("the size of the swap space", "swapon --show", swap)


def _memory(machines: Mapping[str, MachineFacts]) -> dict[str, str]:
    """Return the memory of each node, the same text where it is nearly the same."""
    texts, least, text = {}, 0, ""
    for memory, node in sorted((one.memory, node) for node, one in machines.items() if one.memory):
        if memory > SAME * least:
            least, text = memory, _gib(memory)
        texts[node] = text
    return {node: texts[node] for node in machines if node in texts}


def _processors(machine: MachineFacts) -> str:
    """Return "2 x AMD EPYC 9654 96-Core Processor, 192 cores", "" where not all of it is shown."""
    if not (machine.cpu and machine.sockets and machine.cores):
        return ""
    return f"{machine.sockets} x {machine.cpu}, {machine.cores} cores"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"


def _problem(what: str, look: str, values: Mapping[str, str]) -> Iterator[Problem]:
    if parted := split(values):
        message = f"{what} differs: {parted.summary()}"
        yield Problem(message, look, nodes=parted.odd, look=True, summary=f"{what} differs")
