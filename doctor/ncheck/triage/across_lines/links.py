"""Ports of InfiniBand and RoCE that are down, of two kinds, or addressed by the wrong GID."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import LogLine
from ncheck.triage.nccl_network import network_uses
from ncheck.triage.signature import Detected, Detector, LineClue

_TWO_LINKS = LineClue(
    "ib_wrong_hca", Grade.LIKELY, ("roce_gid", "ib_fabric"), context=True, explains=frozenset({"ib", "qp"}),
    meaning="NCCL uses ports of InfiniBand and ports of RoCE: one cannot reach the other", look="ibdev2netdev",
)  # fmt: skip


def links_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield a line for each link layer, if the ports of the job have two: no fault unless a port does not answer."""
    by_link: dict[str, LogLine] = {}
    for line in lines:
        for use in network_uses([line.text]) if "NET/IB" in line.text else ():
            by_link.setdefault(use.link, line) if use.hca else None
    if {"IB", "RoCE"} <= set(by_link):
        yield _TWO_LINKS, tuple({line.order: line for line in by_link.values()}.values())


# n1:7:7 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 0. | mpirun -x NCCL_IB_GID_INDEX=0
_GID_ZERO = expression(r"\b(?:NCCL|UCX)_IB_GID_INDEX(?:=| set by environment to )0\b")

# NCCL WARN Call to ibv_modify_qp failed with 19 No such device, on dev mlx5_0:1
_NO_DEVICE = expression(r"ibv_modify_qp.{0,80}(?:\b19\b|No such device)")

_GID_OF_ROCE_1 = LineClue(
    "roce_gid", Grade.LIKELY, ("ib_wrong_hca",), context=True, explains=frozenset({"qp"}),
    meaning="the GID index is set to 0, which on RoCE is a link-local address of version 1", look="show_gids",
)  # fmt: skip


def gid_index_zero(lines: Sequence[LogLine]) -> Detected:
    """Yield that the GID index is 0 where a queue pair finds no device, or where the ports are those of RoCE."""
    zero = next((line for line in lines if _GID_ZERO.search(line.text)), None)
    if zero and any(_NO_DEVICE.search(line.text) or "/RoCE" in line.text for line in lines):
        yield _GID_OF_ROCE_1, (zero,)


# mlx5_core 0000:3b:00.0 mlx5_0: Port: 1 Link DOWN
# i40e 0000:5e:00.0 ens1f0: NIC Link is Down
# bond0: (slave ens1f0): link status definitely down, disabling slave
# IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready
_LINK = expression(
    r"\b(?P<device>mlx\d_\w{1,20}|(?:eth|en|ib|bond|wl)\w{1,20})\)?:?\s.{0,20}?\b[Ll]ink (?:is |status definitely )?"
    r"(?P<state>DOWN|[Dd]own|not ready|UP|[Uu]p|ACTIVE|becomes ready)\b"
)

_HCA_DOWN = LineClue("ib_fabric", Grade.LIKELY, ("ib_wrong_hca",), look="ibstat")
_HCA_WAS_DOWN = replace(_HCA_DOWN, context=True, explains=frozenset({"ib", "qp"}))

_LINK_DOWN = LineClue("ib_fabric", Grade.POSSIBLE, ("node_failed",), passing=True, look="ip -br link",
                      meaning="the link of a network interface went down")  # fmt: skip


def links_down(lines: Sequence[LogLine]) -> Detected:
    """Yield the lines in which the kernel reports a link down.

    A link that is up later is no fault by itself: that of an HCA explains completions with errors.
    """
    down: dict[tuple[str, str], LogLine] = {}
    for line in lines:
        if "ink" not in line.text or not (match := _LINK.search(line.text)):
            continue
        device = line.host, match["device"]
        if match["state"].lower() in ("down", "not ready"):
            down[device] = line
        elif (before := down.pop(device, None)) and match["device"].startswith("mlx"):
            yield _HCA_WAS_DOWN, (before,)
    for (_, name), line in down.items():
        yield (_HCA_DOWN if name.startswith("mlx") else _LINK_DOWN), (line,)


DETECTORS: tuple[Detector, ...] = (links_differ, gid_index_zero, links_down)
WORDS = (
    "net/ib", "_ib_gid_index", "ibv_modify_qp", " link down", " link up", " link is ", " link active",
    " link status", " link becomes",
)  # fmt: skip
