"""What a node shows of its PCIe links: each GPU and the HCA beside it under one switch, all at PCIe 5.0 x16."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.pcie import GPUS, HCAS, LINKS, PROCESSOR
from ncheck.model.evidence import JsonValue, Reply, Status

from .gpus import BUSES

if TYPE_CHECKING:
    from .host import Host

_CPU = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\n"
_LINK = {"width": "16\n", "speed": "32.0 GT/s PCIe\n"}


def pcie_replies(host: Host) -> dict[str, Reply]:
    """Return the links and the processor, by source key."""
    devices = [f"{GPUS}/0000:{bus}:00.0" for bus in BUSES[: host.gpus]]
    devices += [f"{HCAS}/{hca.name}/device" for hca in host.hcas]
    tree: dict[str, JsonValue] = {f"{device}/../max_link_speed": _LINK["speed"] for device in devices}
    for device in devices:
        for place in ("", "/../.."):
            for name, text in _LINK.items():
                tree[f"{device}{place}/current_link_{name}"] = text
                tree[f"{device}{place}/max_link_{name}"] = text
    return {
        LINKS.key: Reply(Status.OK, value=tree, seconds=0.01),
        PROCESSOR.key: Reply(Status.OK, exit_status=0, stdout=_CPU, seconds=0.01),
    }
