"""PCIe links of GPUs and HCAs: what NVIDIA's driver and InfiniBand's have bound, read in sysfs."""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Command, Evidence, Tree
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import PcieFacts
from doctor.parse.sysfs_pcie import PATTERNS, gpu_links, hca_links, processor

LINKS = Tree(PATTERNS)
# The first processor alone: the whole file is a megabyte on a large machine.
PROCESSOR = Command(("grep", "-m4", "-E", "^(vendor_id|cpu family|model)", "/proc/cpuinfo"))


def pcie(evidence: Evidence) -> Read[PcieFacts]:
    """Read the links; the processor is None where /proc/cpuinfo names none."""
    reply = evidence.reply(LINKS)
    if why := trouble(LINKS, reply):
        return why
    if not isinstance(reply.value, dict):
        return Unread("the links of PCIe are no tree", fix="ls /sys/bus/pci/devices")
    gpus, hcas = gpu_links(reply.value), hca_links(reply.value)
    if not gpus and not hcas:
        return Absent("no NVIDIA GPU and no HCA shows a link of PCIe")
    said = evidence.reply(PROCESSOR)
    return PcieFacts(gpus, hcas, processor(said.stdout) if said.succeeded else None)


READERS = (Reader(PcieFacts, (LINKS, PROCESSOR), pcie),)
