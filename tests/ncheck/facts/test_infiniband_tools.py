"""The real ibstat and our own reading of sysfs, over one invented /sys/class in a mount namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.facts.infiniband import IBSTAT, SYSFS, InfinibandFacts, infiniband
from ncheck.model.evidence import Evidence, Reply, Status

Answered = Callable[[Mapping[Any, Reply]], Evidence]

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ibstat") is None or shutil.which("unshare") is None,
    reason="needs root, ibstat (infiniband-diags) and unshare: /sys/class is overlaid",
)

DEVICE = {"node_type": "1: CA", "fw_ver": "28.43.2026", "hca_type": "MT4129", "hw_rev": "0",
          "sys_image_guid": "946d:ae03:00a1:b2c0"}  # fmt: skip
PORT = {"lid_mask_count": "0", "sm_sl": "0", "cap_mask": "0xa751e848", "pkeys/0": "0xffff", "link_layer": "InfiniBand"}
STATES = (
    ("4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)", "0x13", "0x2"),
    ("1: DOWN", "2: Polling", "2.5 Gb/sec (1X SDR)", "0x0", "0x0"),
    ("2: INIT", "5: LinkUp", "200 Gb/sec (4X HDR)", "0xffff", "0x0"),
    ("1: DOWN", "3: Disabled", "10 Gb/sec (4X SDR)", "0x0", "0x0"),
    ("3: ARMED", "6: LinkErrorRecovery", "100 Gb/sec (4X EDR)", "0x14", "0x2"),
)


def invent(folder: Path) -> dict[str, str]:
    """Write a device a state, and return the same as the agent would: each path under /sys/class and its text."""
    texts: dict[str, str] = {}
    for number, (state, physical, rate, lid, sm_lid) in enumerate(STATES):
        root, port = f"infiniband/mlx5_{number}", f"infiniband/mlx5_{number}/ports/1"
        texts |= {f"{root}/{name}": text for name, text in DEVICE.items()}
        texts |= {f"{port}/{name}": text for name, text in PORT.items()}
        texts[f"{root}/node_guid"] = f"946d:ae03:00a1:b2c{number}"
        texts[f"{port}/gids/0"] = f"fe80:0000:0000:0000:946d:ae03:00a1:b2d{number}"
        texts |= {f"{port}/state": state, f"{port}/phys_state": physical, f"{port}/rate": rate}
        texts |= {f"{port}/lid": lid, f"{port}/sm_lid": sm_lid}
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text + "\n", encoding="ascii")
    return {f"/sys/class/{path}": text + "\n" for path, text in texts.items()}


def test_the_real_ibstat_and_sysfs_tell_the_same_facts(answered: Answered, tmp_path: Path) -> None:
    shown = invent(tmp_path)
    overlay = f"mount -t overlay overlay -o lowerdir={tmp_path}:/sys/class /sys/class && exec ibstat"
    ran = subprocess.run(["unshare", "-m", "sh", "-c", overlay], capture_output=True, text=True, timeout=60, check=True)
    tree = Reply(Status.OK, value=dict(shown))
    printed = infiniband(answered({IBSTAT: Reply(Status.OK, exit_status=0, stdout=ran.stdout), SYSFS: tree}))
    read = infiniband(answered({IBSTAT: Reply(Status.MISSING), SYSFS: tree}))
    assert isinstance(printed, InfinibandFacts)
    assert isinstance(read, InfinibandFacts)
    assert printed.ports == read.ports
    assert [(port.state, port.physical, port.rate) for port in read.ports] == [
        ("Active", "LinkUp", 400), ("Down", "Polling", 2.5), ("Initializing", "LinkUp", 200), ("Down", "Disabled", 10),
        ("Armed", "LinkErrorRecovery", 100),
    ]  # fmt: skip
