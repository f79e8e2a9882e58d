"""ACS as lspci prints it, and the types of IOMMU groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ncheck.facts.isolation import ACS, GROUPS, PROCESSOR, AcsFacts, IommuFacts
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

SHOWN = """\
0000:15:01.0 PCI bridge: Intel Corporation Device 352a (rev 30) (prog-if 00 [Normal decode])
0000:17:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
10000:e0:06.0 PCI bridge: Intel Corporation Device 352c (prog-if 00 [Normal decode])
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
"""


def acs(answered: Answered, reply: Reply) -> object:
    return facts_of(answered({ACS: reply}), [AcsFacts])[AcsFacts]


def test_the_controls_of_each_bridge_are_read(answered: Answered) -> None:
    assert acs(answered, Reply(Status.OK, exit_status=0, stdout=SHOWN)) == AcsFacts({
        "0000:17:00.0": ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"), "10000:e0:06.0": (),
    })  # fmt: skip


def test_without_root_without_lspci_and_without_bridges(answered: Answered) -> None:
    denied = "0000:15:01.0 PCI bridge: Intel\n\tCapabilities: <access denied>\n"
    assert acs(answered, Reply(Status.OK, exit_status=0, stdout=denied)) == Unread(
        "only root can read the access control (ACS) of PCIe bridges", needs_root=True
    )
    assert acs(answered, Reply(Status.OK, exit_status=127)) == Absent("lspci not found")
    assert acs(answered, Reply(Status.OK, exit_status=0)) == AcsFacts({})
    refused = Reply(Status.DENIED, "sudo: a password is required")
    assert isinstance(acs(answered, refused), Unread)


def iommu(answered: Answered, tree: JsonValue, processor: Reply) -> object:
    return facts_of(answered({GROUPS: Reply(Status.OK, value=tree), PROCESSOR: processor}), [IommuFacts])[IommuFacts]


def test_types_are_by_device_and_the_processor_says_what_kind_of_machine_it_is(answered: Answered) -> None:
    tree: JsonValue = {
        "/sys/bus/pci/drivers/nvidia/0000:18:00.0/iommu_group/type": "DMA-FQ\n",
        "/sys/bus/pci/drivers/mlx5_core/0000:19:00.0/iommu_group/type": {"error": "Permission denied"},
    }
    metal = Reply(Status.OK, exit_status=0, stdout="AuthenticAMD\nAuthenticAMD\n")
    machine = Reply(Status.OK, exit_status=0, stdout="GenuineIntel\nhypervisor\n")
    arm = Reply(Status.OK, exit_status=1)
    assert iommu(answered, tree, metal) == IommuFacts({"0000:18:00.0": "DMA-FQ"}, x86=True, virtual=False)
    assert iommu(answered, {}, machine) == IommuFacts({}, x86=True, virtual=True)
    assert iommu(answered, {}, arm) == IommuFacts({}, x86=False, virtual=False)
    assert isinstance(iommu(answered, {}, Reply(Status.OK, exit_status=2, stderr="grep: no such file")), Unread)
