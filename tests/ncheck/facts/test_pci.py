"""The devices on the PCI bus, in a tree made like that of sysfs, and the facts of it; and what is no device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import MissingError, pci
from ncheck.facts.learning import facts_of
from ncheck.facts.pci import AMD, NVIDIA, PCI, PciDevice, PciFacts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pci, "DEVICES", str(tmp_path / "bus"))
    return tmp_path


def laid(folder: Path, place: str, **files: str) -> None:
    """Lay a device beneath its bridges, with the link by which the bus shows it."""
    real = folder / "devices" / place
    real.mkdir(parents=True)
    for name, text in {"class": "0x030200", "vendor": "0x10de", "device": "0x2330", **files}.items():
        (real / name).write_text(f"{text}\n")
    bus = folder / "bus"
    bus.mkdir(exist_ok=True)
    (bus / real.name).symlink_to(real)


def read(answered: Answered, value: JsonValue) -> object:
    return facts_of(answered({PCI: Reply(Status.OK, value=value)}), [PciFacts])[PciFacts]


def test_a_device_is_read_with_its_place(sysfs: Path, answered: Answered) -> None:
    laid(sysfs, "pci0000:3a/0000:3a:01.0/0000:3b:00.0", numa_node="1", local_cpulist="0-3,8")
    laid(sysfs, "pci0000:00/0000:00:1f.0", **{"class": "0x060100"})
    (sysfs / "drivers" / "nvidia").mkdir(parents=True)
    (sysfs / "bus" / "0000:3b:00.0" / "driver").symlink_to(sysfs / "drivers" / "nvidia")
    above = ("pci0000:3a", "0000:3a:01.0")
    one = PciDevice("0000:3b:00.0", 0x0302, NVIDIA, 0x2330, "nvidia", 1, "0-3,8", above)
    assert read(answered, pci.answer(None, None, 1.0)) == PciFacts((one,), 0)


def test_only_what_a_job_uses_is_listed_each_sort_is_known_by_its_class_and_a_driver_may_be_missing(
    sysfs: Path, answered: Answered
) -> None:
    kinds = {
        "01": "0x030200", "02": "0x030200", "03": "0x068000", "04": "0x020700", "05": "0x020000", "06": "0x010802",
        "07": "0x060400",
    }  # fmt: skip
    for bus, kind in kinds.items():
        vendor = "0x15b3" if kind.startswith("0x02") else "0x10de"
        laid(sysfs, f"pci0000:00/0000:{bus}:00.0", numa_node="-1", **{"class": kind, "vendor": vendor})
    laid(sysfs, "pci0000:00/0000:08:00.0", **{"class": "0x120000", "vendor": "0x1002"})
    laid(sysfs, "pci0000:00/0000:09:00.0", **{"class": "0x068000", "vendor": "0x8086"})
    (sysfs / "bus" / "0000:02:00.0" / "physfn").symlink_to(sysfs)
    facts = read(answered, pci.answer(None, None, 1.0))
    assert isinstance(facts, PciFacts)
    assert [(one.address[5:7], one.driver, one.numa, one.virtual) for one in facts.devices] == [
        ("01", "", None, False), ("02", "", None, True), ("03", "", None, False), ("04", "", None, False),
        ("05", "", None, False), ("08", "", None, False),
    ]  # fmt: skip

    def buses(devices: tuple[PciDevice, ...]) -> list[str]:
        return [one.address[5:7] for one in devices]

    assert buses(facts.gpus(NVIDIA)) == ["01"]
    assert buses(facts.gpus(AMD)) == ["08"]
    assert buses(facts.nvswitches) == ["03"]
    assert buses(facts.infiniband) == ["04"]
    assert buses(facts.adapters) == ["04", "05"]


def test_a_machine_without_the_bus_has_no_devices(sysfs: Path, answered: Answered) -> None:
    with pytest.raises(MissingError):  # there is no folder of the bus
        pci.answer(None, None, 1.0)
    facts = facts_of(answered({PCI: Reply(Status.MISSING, reason="no PCI bus")}), [PciFacts])[PciFacts]
    assert (isinstance(facts, Absent), list(sysfs.iterdir())) == (True, [])


def test_devices_that_were_left_out_are_counted(answered: Answered) -> None:
    assert read(answered, {"devices": [], "left_out": 2}) == PciFacts((), 2)


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
)
def test_nonsense_is_unread(answered: Answered, wrong: dict[str, JsonValue]) -> None:
    right: dict[str, JsonValue] = {
        "address": "0000:3b:00.0", "class": "0x030200", "vendor": "0x10de", "device": "0x2330", "driver": "nvidia",
        "numa": 1, "cpus": "0-3,8", "above": ["pci0000:3a"], "virtual": False,
    }  # fmt: skip
    assert isinstance(read(answered, {"devices": [right], "left_out": 0}), PciFacts)
    assert isinstance(read(answered, {"devices": [{**right, **wrong}], "left_out": 0}), Unread)
