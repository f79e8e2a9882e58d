"""A PCIe device has counted errors that could not be corrected

## What it finds
GPUs, network adapters, HCAs, NVMe drives, NVSwitches and the bridges above them that have counted PCIe errors which
the hardware could not correct, fatal or not, since the node was started: a link that was lost or broke its protocol,
data that was damaged, a request that got no answer. The kernel shows these counters (AER) to every user. Left out are
corrected errors, which healthy links have, and refused requests (UnsupReq, ACSViol, CmpltAbrt and the like), which the
search for devices causes on healthy machines. A drive or card that was pulled out while the node ran counts, too. On
machines whose firmware handles PCIe errors itself ("firmware first"), only those that it passes on are counted.

## Why it matters
A transfer failed; after a fatal error the link itself is not reliable (the kernel's Documentation/PCI/pcieaer-howto).
A GPU falls off the bus, an HCA loses its connections, and the job ends or hangs. The errors return until the card is
reseated, or its riser, cable or slot is exchanged.

## What to type
`grep -v ' 0$' /sys/bus/pci/devices/ADDRESS/aer_dev_*` shows the counters of the device, `sudo lspci -vvs ADDRESS` the
state of its link, and `sudo journalctl -k -b --no-pager | grep AER` when it happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpu_health import GPU_LOST, GpuHealthFacts
from ncheck.facts.gpu_log import GPU_ERROR, GPU_UNUSABLE, KernelLogFacts, broken_gpus
from ncheck.facts.hardware_errors import DAMAGE, PCIE_ERROR, HardwareErrorFacts
from ncheck.facts.hardware_log import HCA_TROUBLE, HardwareLogFacts
from ncheck.facts.kernel_log import last_at
from ncheck.facts.pci import PciFacts


@node_check(
    "NC550", Severity.WARNING, HardwareErrorFacts, also=(PciFacts, KernelLogFacts, GpuHealthFacts, HardwareLogFacts),
    explains=PCIE_ERROR, hardware=True,
)  # fmt: skip
def pcie_errors_uncorrected(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    counts = node[HardwareErrorFacts].pcie
    if counts is None:
        yield NotApplicable("no PCIe device counts errors (AER)")
        return
    if counts.left_out:
        yield Inconclusive(f"{counts.left_out} PCIe devices were too many for one answer")
    damaged = {address: damage for address, device in counts.devices.items() if (damage := device.damage)}
    causes = _causes(node) if damaged else {}
    logged = node.maybe(HardwareLogFacts)
    last = {one.of: one.last for one in logged.pcie} if isinstance(logged, HardwareLogFacts) else {}
    for address, damage in damaged.items():
        words = ", ".join(f"{count} x {DAMAGE[name]}" for name, count in damage.items())
        line = last.get(address, "")
        yield Problem(
            f"the {counts.devices[address].called} at {address} has counted PCIe errors that could not be corrected: "
            f"{words}{last_at(line)}",
            f"grep -v ' 0$' {quote('/sys/bus/pci/devices/' + address)}/aer_dev_*",
            (line,) if line else (),
            look=True,
            summary=f"PCIe errors of a {counts.devices[address].called}",
            follows=causes.get(address, ""),
        )


def _causes(node: NodeView) -> dict[str, str]:
    """Return what may explain the errors of a device, or of a bridge above it, by address."""
    log, health, hardware = node.maybe(KernelLogFacts), node.maybe(GpuHealthFacts), node.maybe(HardwareLogFacts)
    known: dict[str, str] = {}
    if isinstance(health, GpuHealthFacts):
        lost = [gpu.pci for gpu in health.gpus if any(failure.code == GPU_LOST for failure in gpu.errors.values())]
        known.update(dict.fromkeys((*health.unlisted, *lost), GPU_UNUSABLE))
    if isinstance(hardware, HardwareLogFacts):
        known.update((adapter.of, HCA_TROUBLE) for adapter in hardware.adapters)
    if isinstance(log, KernelLogFacts):
        reported = broken_gpus(log, health if isinstance(health, GpuHealthFacts) else None)
        known.update(dict.fromkeys(reported, GPU_ERROR))
    pci = node.maybe(PciFacts)
    devices = pci.devices if isinstance(pci, PciFacts) else ()
    above = {bridge: known[one.address] for one in devices if one.address in known for bridge in one.bridges}
    return above | known
