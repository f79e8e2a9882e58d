"""What keeps PCIe devices from each other's memory: access control (ACS) on bridges, and the IOMMU."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.expression import expression
from ncheck.facts.definition import Fact, no_answer, sudo_refused
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, Tree
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class AcsFacts:
    """The controls that are on at each bridge that has ACS, as lspci names them: ("SrcValid", "ReqRedir")."""

    controls: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class IommuFacts:
    """The type of the IOMMU group of each GPU and HCA. `types` by PCI address: "DMA", "DMA-FQ" (both translate),
    "identity"; empty where no IOMMU is on.

    `x86`: the processor is Intel's or AMD's; `virtual`: it is a virtual machine's.
    """

    types: Mapping[str, str]
    x86: bool
    virtual: bool


_NOT_FOUND = 127
_NEEDS_ROOT = "only root can read the access control (ACS) of PCIe bridges"
_BRIDGES = "lspci -D -vvv -d ::0604 | grep -E '^[0-9a-f]|ACSCtl:|access denied' || true"
ACS = Command(
    ("sh", "-c", f"PATH=$PATH:/usr/sbin:/sbin; command -v lspci > /dev/null || exit {_NOT_FOUND}; {_BRIDGES}"),
    root=True,
)
# Of each GPU and HCA alone: a node has hundreds of groups.
GROUPS = Tree(
    ("/sys/bus/pci/drivers/nvidia/*:*/iommu_group/type", "/sys/bus/pci/drivers/mlx5_core/*:*/iommu_group/type")
)
PROCESSOR = Command(("grep", "-m2", "-owE", "GenuineIntel|AuthenticAMD|HygonGenuine|hypervisor", "/proc/cpuinfo"))

# 0000:16:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])
_BRIDGE = expression(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ")

# 		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
_CONTROL = expression(r"\b([A-Z][A-Za-z]{1,20})\+")

# 0000:18:00.0 in a path
_ADDRESS = expression(r"/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/")


def acs(evidence: Evidence) -> Read[AcsFacts]:
    """Read the controls. Without root lspci shows no capability of any bridge."""
    reply = evidence.reply(ACS)
    if refused := sudo_refused(reply):
        return refused
    if reply.exit_status == _NOT_FOUND:
        return Absent("lspci not found")
    if why := no_answer(ACS, reply):
        return why
    if "access denied" in reply.stdout:
        return Unread(_NEEDS_ROOT, needs_root=True)
    controls: dict[str, tuple[str, ...]] = {}
    bridge = ""
    for line in reply.stdout.splitlines():
        if found := _BRIDGE.match(line):
            bridge = found[1]
        elif "ACSCtl:" in line and bridge:
            controls[bridge] = tuple(_CONTROL.findall(line))
    return AcsFacts(controls)


def iommu(evidence: Evidence) -> Read[IommuFacts]:
    """Read the types. A kernel without an IOMMU has no groups."""
    reply, processor = evidence.reply(GROUPS), evidence.reply(PROCESSOR)
    if why := no_answer(GROUPS, reply):
        return why
    words = set(processor.stdout.split())
    no_x86 = processor.exit_status == 1 and not words and not processor.stderr  # grep found neither
    if not no_x86 and (why := no_answer(PROCESSOR, processor)):
        return why
    if not no_x86 and not words:
        return Unread("/proc/cpuinfo names no processor", fix="grep -m1 vendor_id /proc/cpuinfo")
    tree: Mapping[str, object] = reply.value if isinstance(reply.value, dict) else {}
    types = {
        found[1]: text.strip()
        for path, text in tree.items()
        if isinstance(text, str) and (found := _ADDRESS.search(path))
    }
    return IommuFacts(types, x86=bool(words - {"hypervisor"}), virtual="hypervisor" in words)


FACTS = (Fact(AcsFacts, (ACS,), acs), Fact(IommuFacts, (GROUPS, PROCESSOR), iommu))
