"""The sockets of processes: the kernel's tables as they are written, and real connections on this machine."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent import traffic
from ncheck.agent.tcp_table import TcpRow, tcp_rows
from ncheck.decode import decoded
from ncheck.model.evidence import JsonValue
from ncheck.triage.agent import counters, net_namespaces, sockets
from ncheck.triage.agent.tcp_info import tcp_info
from ncheck.triage.facts.counters import CountersAnswer
from ncheck.triage.facts.sockets import SocketsFacts

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
TCP = HEAD + (
    "   0: 0100007F:733C 00000000:0000 0A 00000000:00000002 00:00000000 00000000  1000        0 7001 1 0 100 0 0 10 0\n"
    "   1: 0A00140A:D2F4 0200140A:733C 01 000186A0:00000000 01:00000148 00000004  1000        0 7002 3 0 204 4 0 1 7\n"
    "   2: 0A00140A:D2F6 020012AC:733C 02 00000001:00000000 01:0000004C 00000001  1000        0 7003 2 0 100 0 0 1 -1\n"
)
TCP6 = HEAD + (
    "   0: 0000000000000000FFFF00000A00140A:733C 0000000000000000FFFF00000200140A:C350 08 00000000:00000001 00:00000000"
    " 00000000     0        0 7004 1 0 20 4 30 10 -1\n"
    "   1: 000080FE00000000FF00FC00010000FE:733C 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000"
    " 00000000     0        0 7005 1 0 100 0 0 10 0\n"
)
FIB = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
Local:
  +-- 0.0.0.0/0 3 0 5
        |-- 10.20.0.10
           /32 host LOCAL
        |-- 10.20.255.255
           /32 link BROADCAST
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
     |-- 172.18.0.1
        /32 host LOCAL
     |-- 10.99.0.7
        /32 host LOCAL
"""
ROUTES = (
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t0100140A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    "eth0\t0000140A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
    "docker0\t000012AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Return what /proc shows of a namespace, on a little-endian node."""
    (tmp_path / "net").mkdir()
    v6 = "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"
    files = {"tcp": TCP, "tcp6": TCP6, "fib_trie": FIB, "route": ROUTES, "if_inet6": v6}
    for name, text in files.items():
        (tmp_path / "net" / name).write_text(text)
    return str(tmp_path)


def test_each_column_of_the_table_is_read(folder: str) -> None:
    rows = list(tcp_rows(folder))
    assert rows[0] == TcpRow("0100007F:733C", "00000000:0000", "0A", 1000, "7001", 0, 2, 0, 0)
    assert rows[1] == TcpRow("0A00140A:D2F4", "0200140A:733C", "01", 1000, "7002", 100000, 0, 1, 4)
    assert [row.inode for row in rows] == ["7001", "7002", "7003", "7004", "7005"]


def test_addresses_are_read_of_both_families_and_a_mapped_one_is_of_version_4(folder: str) -> None:
    assert [net_namespaces.endpoint(row.local) for row in tcp_rows(folder)] == [
        ("127.0.0.1", 29500), ("10.20.0.10", 54004), ("10.20.0.10", 54006), ("10.20.0.10", 29500),
        ("fe80::fc:ff:fe00:1", 29500),
    ]  # fmt: skip


def test_the_addresses_of_another_namespace_come_with_the_interface_of_their_subnet(folder: str) -> None:
    assert net_namespaces.addresses(folder) == [
        ["10.20.0.10", "eth0"], ["127.0.0.1", "lo"], ["172.18.0.1", "docker0"], ["10.99.0.7", ""],
        ["fe80::fc:ff:fe00:1", "eth0"],
    ]  # fmt: skip


def test_the_own_namespace_has_loopback() -> None:
    assert ["127.0.0.1", "lo"] in net_namespaces.addresses("/proc/self")
    assert "lo" in net_namespaces.interfaces("/proc/self")


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket, socket.socket]]:
    """Return a connection on loopback, of which one side has sent what the other does not read."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as near:
        far = listener.accept()[0]
        with far:
            near.sendall(bytes(1000))
            yield listener, near, far


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "WATCHED", 0.05)
    monkeypatch.setattr(counters, "WATCHED", 0.05)


def own() -> dict[str, Any]:
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return {"pid": os.getpid(), "started": int(started), "children": [], "namespace": net_namespaces.own_namespace()}


@pytest.mark.usefixtures("quick")
def test_a_process_comes_with_its_sockets_as_both_looks_saw_them(
    connection: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    listener, near, far = connection
    port = listener.getsockname()[1]
    said = sockets.answer(None, {"ranks": [own()], "names": ["127.0.0.1"], "ports": [port]}, 5.0)
    assert decoded(said, SocketsFacts)
    (mine,) = said["processes"]
    found = {(one["local_port"], one["remote_port"]): one for one in mine["sockets"]}
    reader = found[port, near.getsockname()[1]]
    assert (reader["held_by"], reader["local"], reader["remote"]) == (os.getpid(), "127.0.0.1", "127.0.0.1")
    assert [(seen["state"], seen["unread"], seen["sent"]) for seen in reader["seen"]] == [("01", 1000, 0)] * 2
    assert [seen["state"] for seen in found[port, 0]["seen"]] == ["0A", "0A"]
    (place,) = said["places"].values()
    assert place["listeners"] == [{"ip": "127.0.0.1", "port": port, "asked": True, "pid": None, "by": ""}]
    assert said["names"] == {"127.0.0.1": {"addresses": ["127.0.0.1"]}}
    assert (mine["error"], said["left_out"]) == (None, 0)
    assert far.fileno() > 0


def test_the_kernel_counts_what_arrived(connection: tuple[socket.socket, socket.socket, socket.socket]) -> None:
    _, near, far = connection
    counts = tcp_info()
    if not counts:
        pytest.skip("this kernel has no NETLINK_SOCK_DIAG")
    assert counts[os.fstat(far.fileno()).st_ino]["received"] == 1000
    assert counts[os.fstat(near.fileno()).st_ino]["acknowledged"] in (1000, 1001)  # older kernels count the SYN


@pytest.mark.usefixtures("quick")
def test_who_listens_on_the_port_of_the_rendezvous_and_was_not_asked_about_is_named(
    connection: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    port = connection[0].getsockname()[1]
    said = sockets.answer(None, {"ranks": [], "names": [], "ports": [port]}, 5.0)
    (place,) = said["places"].values()
    (listener,) = place["listeners"]
    assert (listener["asked"], listener["pid"]) == (False, os.getpid())
    assert f"(pid {os.getpid()}) of " in listener["by"]


@pytest.mark.usefixtures("quick")
def test_a_pid_that_another_process_has_by_now_is_gone() -> None:
    said = sockets.answer(None, {"ranks": [{**own(), "started": 1}], "names": [], "ports": []}, 5.0)
    assert said["processes"] == [{"pid": os.getpid(), "error": "gone", "unread": [], "sockets": []}]


@pytest.mark.usefixtures("quick")
def test_a_name_that_the_resolver_does_not_know_in_time_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def never(names: list[str], seconds: float) -> dict[str, JsonValue]:
        over.wait(600)
        return {name: {"late": True, "after": seconds} for name in names}

    monkeypatch.setattr(sockets, "_RESOLVING", 0.1)
    monkeypatch.setattr(sockets, "resolved", never)
    said = sockets.answer(None, {"ranks": [], "names": ["gpu01"], "ports": []}, 5.0)
    over.set()
    assert said["names"] == {"gpu01": {"late": True}}


@pytest.mark.usefixtures("quick")
def test_counters_of_this_machine_are_read_twice() -> None:
    said = counters.answer(None, {"ranks": [own()]}, 5.0)
    assert decoded(said, CountersAnswer)
    first, last = (look["namespaces"][net_namespaces.own_namespace()] for look in said["looks"])
    assert last["interfaces"]["lo"]["received"] >= first["interfaces"]["lo"]["received"] >= 0
    assert last["tcp"]["sent"] >= first["tcp"]["sent"] > 0


def test_an_hca_port_counts_bytes_and_errors(tmp_path: Path) -> None:
    port = tmp_path / "infiniband/mlx5_0/ports/1"
    for name, text in {
        "state": "4: ACTIVE\n", "link_layer": "InfiniBand\n",
        "counters/link_downed": "2\n", "counters/port_xmit_data": "250\n", "counters/port_rcv_data": "6\n",
        "hw_counters/packet_seq_err": "7\n",
    }.items():  # fmt: skip
        (port / name).parent.mkdir(parents=True, exist_ok=True)
        (port / name).write_text(text)
    assert traffic.ports(counters._ERRORS, str(tmp_path)) == {
        "mlx5_0:1": {
            "state": "4: ACTIVE", "link_layer": "InfiniBand", "sent": 1000, "received": 24,
            "errors": {"link_downed": 2, "packet_seq_err": 7},
        }
    }  # fmt: skip
