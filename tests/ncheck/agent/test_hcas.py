"""HCAs in a tree made like that of sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.agent.answers import hcas

ADDRESS = "0000:0000:0000:0000:0000:ffff:0a14:0001"
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"
NONE = {"hcas": [], "left_out": 0, "modules": {}}


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hcas, "HCAS", str(tmp_path / "infiniband"))
    monkeypatch.setattr(hcas, "MODULES", str(tmp_path / "module"))
    return tmp_path


def laid(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")


def test_a_port_says_its_lanes_its_partitions_and_its_gids(sysfs: Path) -> None:
    files = {"board_id": "MT_0000000838", "ports/1/rate": "400 Gb/sec (4X NDR)", "ports/1/pkeys/0": "0x800b"}
    gids = {"0": ADDRESS, "1": EMPTY, "3": ADDRESS}
    laid(sysfs / "infiniband/mlx5_0", {**files, **{f"ports/1/gids/{index}": gid for index, gid in gids.items()}})
    laid(sysfs / "infiniband/mlx5_0/ports/1/gid_attrs", {"types/0": "RoCE v2", "ndevs/0": "eth2"})
    laid(sysfs / "module", {"mlx5_core/version": "23.10-1.1.9", "mlx5_ib/refcnt": "1", "other/version": "1"})
    assert hcas.answer(None, None, 1.0) == {
        "hcas": [{"hca": "mlx5_0", "board": "MT_0000000838", "ports": [{
            "port": 1, "rate": "400 Gb/sec (4X NDR)", "pkeys": ["0x800b"],
            "gids": [{"index": 0, "address": ADDRESS, "kind": "RoCE v2", "netdev": "eth2"}],
        }]}],
        "left_out": 0,
        "modules": {"mlx5_core": "23.10-1.1.9", "mlx5_ib": ""},
    }  # fmt: skip


def test_a_gap_in_the_table_hides_no_gid_and_a_table_of_zeros_is_not_read_to_its_end(sysfs: Path) -> None:
    gids = {f"gids/{index}": ADDRESS if index in (9, 60) else EMPTY for index in range(64)}
    laid(sysfs / "infiniband/mlx5_0/ports/1", gids)
    found = hcas.answer(None, None, 1.0)["hcas"][0]["ports"][0]
    assert found == {
        "port": 1, "rate": "", "pkeys": [], "gids": [{"index": 9, "address": ADDRESS, "kind": "", "netdev": ""}],
    }  # fmt: skip


def test_hundreds_of_virtual_functions_are_counted_and_not_all_sent(sysfs: Path) -> None:
    for number in range(70):
        laid(sysfs / f"infiniband/mlx5_{number}", {"ports/1/rate": "100 Gb/sec (4X EDR)"})
    answer = hcas.answer(None, None, 1.0)
    assert (len(answer["hcas"]), answer["left_out"]) == (64, 6)


@pytest.mark.usefixtures("sysfs")
def test_a_machine_without_hcas_says_so() -> None:
    assert hcas.answer(None, None, 1.0) == NONE
