"""What ports and cards have counted, in a tree made like that of sysfs."""

from __future__ import annotations

from pathlib import Path

from ncheck.agent.answers import error_counters


def laid(root: Path, **files: str) -> None:
    """Write the files; in their names _ stands for itself and __ for /."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def test_errors_and_bytes_of_ports_and_cards_are_read_and_zeros_are_left_out(tmp_path: Path) -> None:
    port, card = "infiniband__mlx5_0__ports__1__", "net__eth0__"
    laid(tmp_path, **{
        f"{port}counters__symbol_error": "17", f"{port}counters__link_downed": "0",
        f"{port}counters__port_rcv_errors": "N/A (no PMA)", f"{port}hw_counters__np_cnp_sent": str(2**63),
        f"{port}counters__port_xmit_data": "250", f"{port}counters__port_rcv_data": "500",
        f"{card}statistics__rx_crc_errors": "3", f"{card}statistics__tx_bytes": "10",
        f"{card}statistics__rx_bytes": "20", f"{card}carrier_down_count": "0", f"{card}device__vendor": "0x8086",
        "net__veth0__statistics__rx_crc_errors": "9",
    })  # fmt: skip
    found = error_counters.answer(None, None, 1.0, str(tmp_path))
    assert found["at"] > 0
    assert found["ports"] == {
        "eth0": {"read": 2, "errors": {"rx_crc_errors": 3}, "sent": 10, "received": 20},
        "mlx5_0:1": {
            "read": 3, "errors": {"symbol_error": 17, "np_cnp_sent": 2**63}, "sent": 1000, "received": 2000,
        },
    }  # fmt: skip


def test_efa_counts_under_names_of_its_own(tmp_path: Path) -> None:
    counters = "infiniband__rdmap0s6__ports__1__hw_counters__"
    laid(tmp_path, **{
        f"{counters}tx_bytes": "1000", f"{counters}rx_bytes": "2000", f"{counters}rx_drops": "0",
        f"{counters}unresponsive_remote_events": "2",
    })  # fmt: skip
    assert error_counters.answer(None, None, 1.0, str(tmp_path))["ports"] == {
        "rdmap0s6:1": {"read": 2, "errors": {"unresponsive_remote_events": 2}, "sent": 1000, "received": 2000}
    }


def test_a_port_without_counters_says_that_none_could_be_read(tmp_path: Path) -> None:
    laid(tmp_path, infiniband__efa_0__ports__1__state="4: ACTIVE")
    assert error_counters.answer(None, None, 1.0, str(tmp_path))["ports"] == {
        "efa_0:1": {"read": 0, "errors": {}, "sent": None, "received": None}
    }


def test_a_node_with_neither_counts_nothing(tmp_path: Path) -> None:
    laid(tmp_path, net__lo__statistics__rx_crc_errors="0")
    assert error_counters.answer(None, None, 1.0, str(tmp_path))["ports"] == {}
