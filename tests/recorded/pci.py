"""What a node shows on its PCI bus: each GPU and the HCA beside it under one switch, and the Ethernet NICs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.pci import PCI
from ncheck.model.evidence import JsonValue, Reply, Status

from .gpus import AFFINITY, BUSES, numa

if TYPE_CHECKING:
    from .host import Host

_VENDORS = {"mlx5_core": "0x15b3", "bnxt_en": "0x14e4"}


def pci_replies(host: Host) -> dict[str, Reply]:
    """Return the devices, by source key."""
    devices = [_device(f"0000:{bus}:00.0", "0x030200", "0x10de", "0x2330", "nvidia", numa(place), int(bus, 16))
               for place, bus in enumerate(BUSES[: host.gpus])]  # fmt: skip
    devices += [_device(hca.pci, "0x020700", "0x15b3", "0x1021", "mlx5_core", hca.numa, int(hca.pci[5:7], 16) - 1)
                for hca in host.hcas]  # fmt: skip
    wires = {nic.pci: nic for nic in host.nics if nic.pci and not nic.hca}
    devices += [_device(pci, "0x020000", _VENDORS.get(nic.driver, "0x8086"), "0x16d7", nic.driver, nic.numa or 0, 4)
                for pci, nic in wires.items()]  # fmt: skip
    answer: JsonValue = {"devices": [*sorted(devices, key=lambda one: str(one["address"]))], "left_out": 0}
    return {PCI.key: Reply(Status.OK, value=answer, seconds=0.01)}


def _device(  # noqa: PLR0913, PLR0917  each is one column
    address: str, kind: str, vendor: str, device: str, driver: str, place: int, bus: int
) -> dict[str, JsonValue]:
    """Return one device; `bus` is that of the first device under its switch, and every switch has a root of its own."""
    port = f"0000:{bus - 1:02x}:{(int(address[5:7], 16) - bus) * 16:02x}.0"
    above: list[JsonValue] = [f"pci0000:{bus - 3:02x}", f"0000:{bus - 3:02x}:01.0", f"0000:{bus - 2:02x}:00.0", port]
    return {
        "address": address, "class": kind, "vendor": vendor, "device": device, "driver": driver, "numa": place,
        "cpus": AFFINITY[place], "above": above, "virtual": False,
    }  # fmt: skip
