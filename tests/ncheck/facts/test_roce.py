"""RoCE's settings: what the kernel answers to a question like that of dcb, what sysfs shows, and the facts of it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import roce
from ncheck.facts.learning import facts_of
from ncheck.facts.roce import ROCE, RoceFacts, RocePort
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]


def read(answered: Answered, value: JsonValue) -> object:
    return facts_of(answered({ROCE: Reply(Status.OK, value=value)}), [RoceFacts])[RoceFacts]


def laid(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def message(*within: bytes) -> bytes:
    """Return a reply as linux/dcbnl.h lays it out: header, dcbmsg, the interface, the nest of IEEE 802.1Qaz."""
    body = struct.pack("=BBH", 0, 21, 0) + attribute(1, b"eth2\0") + attribute(13 | 0x8000, b"".join(within))
    return struct.pack("=LHHLL", 16 + len(body), 78, 0, 1, 0) + body


PFC = attribute(2, bytes([8, 0b1000, 0, 0]) + bytes(132))
APPS = attribute(3, b"".join(attribute(1, struct.pack("=BBH", *app)) for app in ((5, 3, 26), (1, 0, 0), (5, 6, 48))))


def test_flow_control_and_dscp_are_read_from_the_kernels_reply() -> None:
    assert roce.settings_in(message(attribute(1, bytes(60)), PFC, APPS)) == {"pfc": [3], "dscp": [[26, 3], [48, 6]]}
    assert roce.settings_in(message(attribute(2, bytes(136)), attribute(3, b""))) == {"pfc": [], "dscp": []}


def test_a_refusal_and_a_reply_that_is_cut_show_nothing() -> None:
    nothing = {"pfc": None, "dscp": None}
    refused = struct.pack("=LHHLLl", 36, 2, 0, 1, 0, -95) + bytes(16)
    assert [roce.settings_in(reply) for reply in (refused, b"", message()[:24], message(b"\1\0\2\0"))] == [nothing] * 4


def test_the_loopback_interface_has_none_by_the_real_kernel() -> None:
    assert roce.dcb("lo") == {"pfc": None, "dscp": None}


def test_only_ethernet_ports_are_read_with_what_sysfs_shows(tmp_path: Path, answered: Answered) -> None:
    laid(tmp_path, {
        "infiniband/mlx5_0/ports/1/link_layer": "Ethernet", "infiniband/mlx5_0/device/net/eth2/mtu": "9000",
        "infiniband/mlx5_0/tc/1/traffic_class": "Global tclass=106\nset by cma", "net/eth2/ecn/roce_np/enable/3": "1",
        "net/eth2/ecn/roce_np/enable/4": "0", "infiniband/mlx5_1/ports/1/link_layer": "InfiniBand",
        "infiniband/mlx5_2/ports/1/link_layer": "Ethernet", "cm/mlx5_0/ports/1/default_roce_tos": "106",
    })  # fmt: skip
    asked: list[str] = []

    def ask(name: str) -> dict[str, object]:
        asked.append(name)
        return {"pfc": [3], "dscp": [[26, 3]]}

    assert read(answered, roce.ports(str(tmp_path), str(tmp_path / "cm"), ask)) == RoceFacts({
        "mlx5_0:1": RocePort("eth2", (3,), ((26, 3),), (3,), None, "Global tclass=106 set by cma", "106"),
        "mlx5_2:1": RocePort(""),
    })  # fmt: skip
    assert asked == ["eth2"]


def test_no_port_is_absent(tmp_path: Path, answered: Answered) -> None:
    assert read(answered, roce.ports(str(tmp_path), str(tmp_path), roce.dcb)) == Absent("no RoCE port")


def port(**changed: JsonValue) -> dict[str, JsonValue]:
    return {
        "interface": "eth2", "pfc": [3], "dscp": [[26, 3]], "ecn_np": [3], "ecn_rp": None,
        "traffic_class": "Global tclass=106", "tos": "0", **changed,
    }  # fmt: skip


@pytest.mark.parametrize("ports", [{"-x:1": port()}, {"mlx5_0": port()}, {"mlx5_0:1": port(interface="--flush")}])
def test_what_is_no_port_is_unread(answered: Answered, ports: dict[str, JsonValue]) -> None:
    assert isinstance(read(answered, {"ports": ports}), Unread)
