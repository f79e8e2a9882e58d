"""The kernel's byte counters, from a tree of sysfs and from this machine's own."""

from __future__ import annotations

from pathlib import Path

from ncheck.agent.traffic import carried, counters


def tree(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return str(folder)


def test_interfaces_count_bytes_and_hca_ports_units_of_four(tmp_path: Path) -> None:
    port = "infiniband/mlx5_0/ports/1/counters"
    root = tree(tmp_path, {
        "net/eth0/statistics/tx_bytes": "1000\n", "net/eth0/statistics/rx_bytes": "24\n",
        "net/bonding_masters": "bond0\n", "net/odd/statistics/tx_bytes": "none\n",
        f"{port}/port_xmit_data": "250\n", f"{port}/port_rcv_data": "6\n",
    })  # fmt: skip
    assert counters(root) == {"eth0": (1000, 24), "mlx5_0:1": (1000, 24)}


def test_what_moved_nothing_is_told_only_where_the_plan_means_it() -> None:
    before = {"eth0": (100, 50), "fast0": (7, 7), "docker0": (9, 9), "reset": (5, 5), "gone": (1, 1)}
    after = {"eth0": (150, 60), "fast0": (7, 7), "docker0": (9, 9), "reset": (2, 9), "new": (1, 1)}
    assert carried(before, after, ("fast0",)) == {
        "eth0": {"sent": 50, "received": 10},
        "fast0": {"sent": 0, "received": 0},
    }


def test_every_interface_of_this_machine_is_read() -> None:
    there = {path.parent.name for path in Path("/sys/class/net").glob("*/statistics")}
    assert there <= set(counters())
