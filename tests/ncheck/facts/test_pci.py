"""The devices on the PCI bus, from the answer to the fact; and what is no device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.pci import AMD, NVIDIA, PCI, PciDevice, PciFacts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

ABOVE = ("pci0000:3a", "0000:3a:01.0")


def device(address: str, kind: str, vendor: str = "0x10de", **changed: JsonValue) -> dict[str, JsonValue]:
    return {
        "address": address, "class": kind, "vendor": vendor, "device": "0x2330", "driver": "nvidia", "numa": 1,
        "cpus": "0-3,8", "above": [*ABOVE], "virtual": False, **changed,
    }  # fmt: skip


def read(answered: Answered, *devices: JsonValue) -> object:
    value: JsonValue = {"devices": [*devices], "left_out": 2}
    return facts_of(answered({PCI: Reply(Status.OK, value=value)}), [PciFacts])[PciFacts]


def test_a_device_is_read_with_its_place(answered: Answered) -> None:
    one = PciDevice("0000:3b:00.0", 0x0302, NVIDIA, 0x2330, "nvidia", 1, "0-3,8", ABOVE)
    assert read(answered, device("0000:3b:00.0", "0x030200")) == PciFacts((one,), 2)


def test_each_sort_of_device_is_known_by_its_class(answered: Answered) -> None:
    facts = read(
        answered,
        device("0000:01:00.0", "0x030200"),
        device("0000:01:00.4", "0x030200", virtual=True),
        device("0000:02:00.0", "0x068000"),
        device("0000:03:00.0", "0x020700", "0x15b3", driver=""),
        device("0000:04:00.0", "0x020000", "0x15b3"),
        device("0000:05:00.0", "0x120000", "0x1002", numa=None),
    )
    assert isinstance(facts, PciFacts)

    def addresses(devices: tuple[PciDevice, ...]) -> list[str]:
        return [one.address for one in devices]

    assert addresses(facts.gpus(NVIDIA)) == ["0000:01:00.0"]
    assert addresses(facts.gpus(AMD)) == ["0000:05:00.0"]
    assert addresses(facts.nvswitches) == ["0000:02:00.0"]
    assert addresses(facts.infiniband) == ["0000:03:00.0"]
    assert addresses(facts.adapters) == ["0000:03:00.0", "0000:04:00.0"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "x; reboot"},
        {"class": ""},
        {"vendor": "NVIDIA"},
        {"driver": "a b\n"},
        {"cpus": "0;1"},
        {"numa": "1"},
    ],
)  # fmt: skip
def test_nonsense_is_unread(answered: Answered, wrong: dict[str, JsonValue]) -> None:
    assert isinstance(read(answered, {**device("0000:3b:00.0", "0x030200"), **wrong}), Unread)


def test_a_machine_without_the_bus_has_no_devices(answered: Answered) -> None:
    facts = facts_of(answered({PCI: Reply(Status.MISSING, reason="no PCI bus")}), [PciFacts])[PciFacts]
    assert isinstance(facts, Absent)
