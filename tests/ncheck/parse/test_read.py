"""`ncheck read`: one JSON object for each kind of saved output."""

from __future__ import annotations

import pytest
from ncheck.parse.read import KINDS, UnknownKindError, read_text


def test_other_text_gives_an_error_and_no_matrix() -> None:
    assert read_text("topo", "No devices were found\n") == {
        "error": "not the output of `nvidia-smi topo -m`: no row of X, NV#, PIX, PXB, PHB, NODE or SYS",
        "gpus": None, "nics": [], "pairs": {}, "nic_legend": {}, "legend_unreadable": [], "closest_nics_gpu0": [],
        "closest_level_gpu0": None, "cpu_affinity_gpu0": None, "numa_affinity_gpu0": None,
        "has_gpu_numa_id_column": None, "gpu_numa_id_gpu0": None,
    }  # fmt: skip


def test_ibstatus() -> None:
    text = """Infiniband device 'mlx5_3' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:b8ce:f603:00aa:0001
\tbase lid:\t 0x2f
\tsm lid:\t\t 0x1
\tstate:\t\t 2: INIT
\tphys state:\t 5: LinkUp
\trate:\t\t 100 Gb/sec (4X EDR)
\tlink_layer:\t InfiniBand
"""
    assert read_text("ibstatus", text) == {"tool": "ibstatus", "ports": [{
        "ca": "mlx5_3", "port": 1, "default_gid": "fe80:0000:0000:0000:b8ce:f603:00aa:0001", "base_lid": "0x2f",
        "sm_lid": "0x1", "state": "INIT", "state_num": 2, "physical_state": "LinkUp", "physical_state_num": 5,
        "rate": 100, "rate_text": "100 Gb/sec (4X EDR)", "link_layer": "InfiniBand",
    }], "error": None}  # fmt: skip


def test_ibv_devinfo_with_and_without_its_indentation() -> None:
    text = """hca_id:\tmlx5_3
\tfw_ver:\t\t\t\t20.43.1014
\tnode_guid:\t\t\tb8ce:f603:00aa:0001
\tvendor_part_id:\t\t\t4123
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tlink_layer:\t\tInfiniBand
"""
    port = {"port": 1, "state": "PORT_ACTIVE", "state_num": 4, "active_mtu": 4096, "link_layer": "InfiniBand",
            "physical_state": None}  # fmt: skip
    hca = {"hca": "mlx5_3", "firmware": "20.43.1014", "node_guid": "b8ce:f603:00aa:0001", "vendor_part_id": 4123}
    told = {"tool": "ibv_devinfo", "hcas": [{**hca, "ports": [port]}], "software_device": False, "error": None}
    assert read_text("ibv_devinfo", text) == told
    assert read_text("ibv_devinfo", "\n".join(line.strip() for line in text.splitlines())) == told


def test_the_short_infiniband_tools() -> None:
    assert read_text("ibdev2netdev", "# ibdev2netdev\nmlx5_3 port 1 ==> ibs4 (Down)\n") == {
        "tool": "ibdev2netdev", "map": {"mlx5_3": ["ibs4", "Down"]}, "error": None,
    }  # fmt: skip
    verbose = "0000:16:00.0 mlx5_4 (MT4129 - X) ConnectX-7 fw 28.43.2026 port 1 (ACTIVE) ==> ens9 (Up)\n"
    assert read_text("ibdev2netdev", verbose)["map"] == {"mlx5_4": ["ens9", "Up"]}
    assert read_text("ibstat", "link mlx5_4/1 state ACTIVE physical_state LINK_UP netdev ens9\n") == {
        "tool": "rdma link",
        "ports": [{"ca": "mlx5_4", "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP", "netdev": "ens9"}],
        "error": None,
    }
    older = "2/1: mlx5_7/1: state DOWN physical_state DISABLED netdev ens9\n"
    assert read_text("ibstat", older)["ports"] == [
        {"ca": "mlx5_7", "port": 1, "state": "DOWN", "physical_state": "DISABLED", "netdev": "ens9"}
    ]
    assert read_text("ibv_devices", "    device          \t   node GUID\n    ------\n")["devices"] == {}
    assert read_text("ibv_devices", "    device          \t   node GUID\n    efa_0     0000000000000001\n") == {
        "tool": "ibv_devices", "devices": {"efa_0": "0000000000000001"}, "error": None,
    }  # fmt: skip


def test_the_device_on_which_ibstat_failed_is_missing() -> None:
    record = read_text("ibstat", "CA 'mlx5_3'\n\tPort 1:\nibpanic: [9] main: stat of IB device 'mlx5_4' failed: Busy\n")
    assert (record["devices_missing"], record["error"]) == (
        ["mlx5_4"], "ibpanic: stat of IB device 'mlx5_4' failed: Busy",
    )  # fmt: skip


def test_a_truncated_ibstat_gives_only_what_it_holds() -> None:
    record = read_text(
        "ibstat", "CA 'mlx5_3'\n\tCA type: MT4123\n\tNumber of ports: 1\nCA 'mlx5_4'\n\tCA type: MT4123\n"
    )
    adapter: dict[str, object] = {"ca_type": "MT4123", "firmware": None, "node_guid": None, "ports": []}
    assert record["cas"] == [
        {"ca": "mlx5_3", "number_of_ports": 1, **adapter},
        {"ca": "mlx5_4", "number_of_ports": None, **adapter, "truncated": True},
    ]


def test_nccls_versions_in_a_log_and_in_a_package_list() -> None:
    log = "g1:9:9 [0] NCCL INFO cudaDriverVersion 12060\nNCCL version 2.25.1+cuda12.8\nNCCL version 2.25.1+cuda12.8\n"
    assert read_text("versions", log) == {"format": "nccl_log", "nccl": ["2.25.1+cuda12.8"], "cuda_driver": "12060"}
    packages = "ii  libnccl2:amd64  2.25.1-1+cuda12.8  amd64  NCCL Runtime\nii  libvncserver1:amd64  0.9.14  amd64\n"
    assert read_text("versions", packages) == {
        "format": "dpkg", "libnccl2": "2.25.1-1+cuda12.8", "libnccl_dev": None, "nccl": "2.25.1", "cuda": "12.8",
        "not_nccl": ["libvncserver1:amd64"],
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["", "\x00\xff\x1b[31m", "lorem ipsum\n" * 3, "{" * 1000, "GPU0\n", "CA '", "1: ", '[{"ifindex":' * 9999]
)
def test_nonsense_is_an_error_and_never_a_crash(kind: str, text: str) -> None:
    record = read_text(kind, text)
    assert record.get("error") or record.get("cas")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["topo", "ibstat", "nics", "versions", "smi", "log"])
@pytest.mark.parametrize("text", ["a", " ", "\n", "12:", "GPU0\n"])
def test_a_flood_of_anything_is_read_in_the_time_that_its_length_takes(kind: str, text: str) -> None:
    """Quadratic searches would take half a minute here each; a deadline would be a timed test, and a hang is plain."""
    assert read_text(kind, text * 20000)


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(UnknownKindError, match="topo, ibstat"):
        read_text("lspci", "")


def test_an_empty_log_is_empty_and_not_healthy() -> None:
    record = read_text("log", " \n")
    assert (record["cause"], record["error"]) == (None, "the log is empty")


def test_a_log_without_an_end_or_progress_is_not_healthy() -> None:
    record = read_text("log", "starting\nloading data\n")
    assert (record["cause"], record["error"]) == (None, "no known failure message in the log")


def test_a_log_whose_progress_ends_in_trouble_is_not_healthy() -> None:
    record = read_text("log", "step 1 loss 0.3\nstep 2 loss 0.2\nNaN detected in loss, aborting\n")
    assert (record["cause"], record["evidence"]) == ("diverged", ["NaN detected in loss, aborting"])
    record = read_text("log", "step 1 loss 0.3\nstep 2 loss 0.2\nFATAL: the tape is full\n")
    error = "no known failure message in the log, but a line that sounds like one"
    assert (record["cause"], record["error"]) == (None, error)
    assert record["evidence"] == ["FATAL: the tape is full"]


def test_nccl_tests_table() -> None:
    head = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    row = "  8388608  2097152  float  sum  -1  250.0  33.55  33.55  0  250.0  33.55  33.55  N/A\n"
    record = read_text("nccl-tests", head + row + "# Out of bounds values : 0 OK\n")
    both = {"size": 8388608, "seconds": pytest.approx(250e-6), "algbw": 33.55, "busbw": 33.55}
    assert record == {
        "collective": None, "nccl_tests": None, "nccl": None, "ranks": [], "tables": 1, "out_of_bounds": 0,
        "rows": [{**both, "in_place": False, "wrong": 0}, {**both, "in_place": True, "wrong": None}],
        "average_busbw": None, "whole": True, "error": None,
    }  # fmt: skip
