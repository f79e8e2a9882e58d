"""A node has corrected far more hardware errors than others

## What it finds
PCIe devices and bridges whose corrected link errors (RxErr, BadTLP, BadDLLP, Rollover, Timeout: what is damaged is sent
again) stand out among those of all nodes, and nodes whose corrected memory errors do, by what the kernel has counted
since the node was started. A device is compared with the one at the same address on the other nodes, too. Corrected
errors are normal in small numbers, so there is no fixed limit:
link-counters-stand-out (NC428) says how a count stands out. Fewer than 100 errors never do. Errors that could not be
corrected are reported by pcie-errors-uncorrected and memory-errors-uncorrected.

## Why it matters
What is corrected costs time: a PCIe link that sends again is slow, and its GPU makes all others wait. A memory module
or a slot that has to be corrected much more often than its peers is often the one that fails next.

## What to type
`grep . /sys/bus/pci/devices/ADDRESS/aer_dev_correctable` shows the counters of a device, and
`grep . /sys/devices/system/edac/mc/mc*/*/dimm_ce_count` those of the memory modules. What grows during a job is a bad
slot, riser, cable or module: `sudo dmidecode -t memory` names the modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.error_counters import ErrorCountersFacts
from ncheck.facts.hardware_errors import MEMORY_ERROR, PCIE_ERROR, HardwareErrorFacts, MemoryErrorCounts, PcieErrors
from ncheck.outliers import ERRORS, Outlier, Series

# Not NonFatalErr: requests that a device does not know, which the search for devices makes, are counted there, too.
_OF_LINKS = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout")
_PCIE, _MEMORY = "corrected PCIe errors", "corrected memory errors"


@cluster_check("NC661", Severity.WARNING, HardwareErrorFacts, ErrorCountersFacts, alone=True, hardware=True)
def corrected_errors_stand_out(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    links, memory = Series({_PCIE: ERRORS}), Series({_MEMORY: ERRORS})
    errors = cluster.facts(HardwareErrorFacts)
    counting = {node: facts.pcie for node, facts in errors.items() if facts.pcie and facts.pcie.read}
    places = {address for pcie in counting.values() for address, device in pcie.devices.items() if _corrected(device)}
    for address in places:  # nodes are alike: one that does not show the device here has counted nothing there
        links.add("", address, {}, len(counting))
    for node, pcie in counting.items():
        for address in places.intersection(pcie.devices):
            links.add(node, address, {"": {_PCIE: _corrected(pcie.devices[address])}}, 0)
        links.add(node, "the other devices", {}, max(pcie.read - len(places), 0))
        if pcie.left_out:
            yield Inconclusive(f"{pcie.left_out} PCIe devices were too many for one answer", (node,))
    for node, facts in errors.items():
        if isinstance(facts.memory, MemoryErrorCounts):
            memory.add(node, "memory", {"": {_MEMORY: facts.memory.corrected}})
    if not (links.comparable or memory.comparable):
        yield NotApplicable("too few devices and nodes count corrected errors to compare them")
    days = {node: facts.days for node, facts in cluster.facts(ErrorCountersFacts).items()}
    for outlier in links.outliers(days):
        node, address, _ = outlier.place
        follows = PCIE_ERROR if counting[node].devices[address].damage else ""
        yield _problem(outlier, f"grep . /sys/bus/pci/devices/{quote(address)}/aer_dev_correctable", follows)
    for outlier in memory.outliers(days):
        yield _problem(outlier, "grep . /sys/devices/system/edac/mc/mc*/*/dimm_ce_count", MEMORY_ERROR)


def _corrected(device: PcieErrors) -> int:
    return sum((device.corrected or {}).get(name, 0) for name in _OF_LINKS)


def _problem(outlier: Outlier, look: str, follows: str) -> Problem:
    summary = f"{outlier.name} has corrected far more errors than others"
    line = outlier.line(outlier.counter)
    return Problem(line, look, nodes=outlier.place[:1], look=True, summary=summary, follows=follows)
