"""The devices on the PCI bus, in a tree made like that of sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.agent.answers import MissingError, pci


def laid(folder: Path, place: str, **files: str) -> None:
    """Lay a device beneath its bridges, with the link by which the bus shows it."""
    real = folder / "devices" / place
    real.mkdir(parents=True)
    for name, text in {"class": "0x030200", "vendor": "0x10de", "device": "0x2330", **files}.items():
        (real / name).write_text(f"{text}\n")
    bus = folder / "bus"
    bus.mkdir(exist_ok=True)
    (bus / real.name).symlink_to(real)


def test_a_device_says_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laid(tmp_path, "pci0000:3a/0000:3a:01.0/0000:3b:00.0", numa_node="1", local_cpulist="0-3,8")
    laid(tmp_path, "pci0000:00/0000:00:1f.0", **{"class": "0x060100"})
    (tmp_path / "drivers" / "nvidia").mkdir(parents=True)
    (tmp_path / "bus" / "0000:3b:00.0" / "driver").symlink_to(tmp_path / "drivers" / "nvidia")
    monkeypatch.setattr(pci, "DEVICES", str(tmp_path / "bus"))
    assert pci.answer(None, None, 1.0) == {
        "devices": [{
            "address": "0000:3b:00.0", "class": "0x030200", "vendor": "0x10de", "device": "0x2330", "driver": "nvidia",
            "numa": 1, "cpus": "0-3,8", "above": ["pci0000:3a", "0000:3a:01.0"], "virtual": False,
        }],
        "left_out": 0,
    }  # fmt: skip


def test_only_what_a_job_uses_is_listed_and_a_driver_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {"01": "0x020000", "02": "0x020700", "03": "0x120000", "04": "0x068000", "05": "0x010802", "06": "0x060400"}
    for bus, kind in kinds.items():
        laid(tmp_path, f"pci0000:00/0000:{bus}:00.0", numa_node="-1", **{"class": kind})
    laid(tmp_path, "pci0000:00/0000:07:00.0", **{"class": "0x068000", "vendor": "0x8086"})
    (tmp_path / "bus" / "0000:01:00.0" / "physfn").symlink_to(tmp_path)
    monkeypatch.setattr(pci, "DEVICES", str(tmp_path / "bus"))
    found = pci.answer(None, None, 1.0)["devices"]
    assert [(one["address"][5:7], one["driver"], one["numa"], one["virtual"]) for one in found] == [
        ("01", "", None, True), ("02", "", None, False), ("03", "", None, False), ("04", "", None, False),
    ]  # fmt: skip


def test_no_bus_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pci, "DEVICES", str(tmp_path / "none"))
    with pytest.raises(MissingError):
        pci.answer(None, None, 1.0)
