"""The figures of NCCL's cost model, and what differs between its releases.

Source: NCCL's source, src/graph/tuning.cc (latencies, bandwidths per channel), search.cc (speeds that the search for
channels tries), topo.h (bandwidths of links), connect.cc and transport/nvls.cc (how many channels there are), of each
release that is named in CHECKED.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from ncheck.lazy_dataclass import dataclass


class Algorithm(str, Enum):
    """How the ranks of a collective pass data on, as NCCL_ALGO names it."""

    TREE = "Tree"
    RING = "Ring"
    NVLS = "NVLS"
    NVLS_TREE = "NVLSTree"
    PAT = "PAT"


class Protocol(str, Enum):
    """How two ranks hand data over, as NCCL_PROTO names it."""

    LL = "LL"
    LL128 = "LL128"
    SIMPLE = "Simple"


TREE, RING, NVLS, NVLS_TREE, PAT = Algorithm

Release = tuple[int, ...]
Three = tuple[float, float, float]  # by protocol (LL, LL128, Simple), or for one, two and more nodes
Latencies = Mapping[Algorithm, Three]
Bandwidths = tuple[Three, ...]  # GB/s, of Volta, Ampere, Hopper and, since 2.25, Blackwell


@dataclass(frozen=True)
class Rules:
    """The figures of one release and those that follow it.

    `base` and, by the kind of link, `nvlink`, `pci` and `net` are microseconds. `ll` are GB/s of all channels together:
    of one node by its GPUs, of several by their processors. The others are GB/s of a channel. `speeds`: GB/s that the
    search tries for a channel, inside a node and between nodes, for GPUs before Hopper, Hopper and Blackwell.
    """

    since: Release
    base: Latencies
    nvlink: Latencies
    pci: Latencies
    net: Latencies
    ll: Bandwidths
    ring_ll128: Bandwidths
    tree_ll128: Bandwidths
    tree: Bandwidths
    nvls_tree: Bandwidths
    hopper_link: float  # GB/s of an NVLink of a Hopper GPU
    most_channels: int
    inside: tuple[tuple[float, ...], ...]
    between: tuple[tuple[float, ...], ...]


_HOPPER_INSIDE = (60.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 6.0, 3.0)
_HOPPER_BETWEEN = (48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12)
_SLOW = (17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12)

_2_18 = Rules(
    since=(2, 18),
    base={TREE: (6.8, 14.0, 0), RING: (6.6, 14.0, 8.4), NVLS: (0, 0, 23.0), NVLS_TREE: (0, 0, 23.0), PAT: (0, 0, 0)},
    nvlink={TREE: (0.6, 1.25, 4), RING: (0.6, 1.9, 3.4), NVLS: (0, 0, 0), NVLS_TREE: (0, 0, 0), PAT: (0, 0, 0)},
    pci={TREE: (1.0, 1.9, 6), RING: (1.0, 2.5, 5.7), NVLS: (0, 0, 0), NVLS_TREE: (0, 0, 0), PAT: (0, 0, 0)},
    net={TREE: (5.0, 8.5, 14), RING: (2.7, 4.0, 14), NVLS: (0, 0, 18), NVLS_TREE: (0, 0, 19), PAT: (0, 0, 0)},
    ll=((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (87.7, 22.5, 19.0)),
    ring_ll128=((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 36.7)),
    tree_ll128=((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (36.7, 36.7, 29.0)),
    tree=((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0)),
    nvls_tree=(),
    hopper_link=20.0,
    most_channels=32,
    inside=((40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0), _HOPPER_INSIDE),
    between=(
        (
            48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2, 0.24, 0.12
        ),
        _HOPPER_BETWEEN,
    ),
)  # fmt: skip
_2_19 = replace(
    _2_18,
    since=(2, 19),
    base={**_2_18.base, NVLS: (0, 0, 0), NVLS_TREE: (0, 0, 0)},
    nvlink={**_2_18.nvlink, TREE: (0.6, 1.25, 28), NVLS: (0, 0, 23), NVLS_TREE: (0, 0, 23)},
    pci={**_2_18.pci, TREE: (1.0, 1.9, 28)},
    net={**_2_18.net, TREE: (5.0, 8.5, 28), NVLS_TREE: (0, 0, 14)},
    inside=(_2_18.inside[0], (60.0, 50.0, *_HOPPER_INSIDE[1:])),
    between=(_2_18.between[0], (*_HOPPER_BETWEEN[:6], 22.0, *_HOPPER_BETWEEN[6:])),
)
_2_20 = replace(_2_19, since=(2, 20), hopper_link=20.6)
_2_21 = replace(
    _2_20,
    since=(2, 21),
    nvlink={**_2_20.nvlink, NVLS: (0, 0, 25), NVLS_TREE: (0, 0, 25)},
    ll=(*_2_20.ll[:2], (141.0, 45.0, 35.0)),
    inside=(_2_20.inside[0], (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0)),
)
_2_23 = replace(
    _2_21,
    since=(2, 23),
    base={**_2_21.base, TREE: (6.8, 14.0, 8.4), PAT: (8.0, 8.0, 8.0)},
    nvlink={**_2_21.nvlink, TREE: (0.6, 1.25, 4)},
    pci={**_2_21.pci, TREE: (1.0, 1.9, 4)},
    net={**_2_21.net, TREE: (5.0, 8.5, 14)},
)
_2_24 = replace(_2_23, since=(2, 24))
_2_25 = replace(
    _2_24,
    since=(2, 25),
    ll=(*_2_24.ll, (282.0, 90.0, 70.0)),
    ring_ll128=(*_2_24.ring_ll128, (73.4, 73.4, 73.4)),
    tree_ll128=(*_2_24.tree_ll128, (73.4, 73.4, 58.0)),
    tree=(*_2_24.tree, (77.4, 82.8, 72.0)),
    most_channels=64,
    inside=(*_2_24.inside, (90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 19.0)),
    between=(*_2_24.between, (48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, *_SLOW)),
)
_2_27 = replace(
    _2_25,
    since=(2, 27),
    inside=(*_2_25.inside[:2], (*_2_25.inside[2], 18.0)),
    between=(*_2_25.between[:2], (47.9, *_2_25.between[2][1:])),
)
_2_27_5 = replace(
    _2_27,
    since=(2, 27, 5),
    between=(*_2_27.between[:2], (48.0, 45.1, *_2_27.between[2][2:])),
)
_2_27_6 = replace(_2_27_5, since=(2, 27, 6), between=(*_2_27.between[:2], (96.0, *_2_27_5.between[2])))
_2_28 = replace(
    _2_27_6,
    since=(2, 28),
    tree_ll128=(*_2_27_6.tree_ll128[:3], (55.6, 31.67, 20.0)),
    tree=(*_2_27_6.tree[:3], (70.0, 42.8, 24.0)),
    nvls_tree=((26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (0.0, 57.7, 45.5), (0.0, 96.0, 43.1)),
)
_2_28_7 = replace(_2_28, since=(2, 28, 7), ring_ll128=(*_2_28.ring_ll128[:3], (73.4, 34.6, 73.4)))
_2_28_9 = replace(
    _2_28_7,
    since=(2, 28, 9),
    net={**_2_28_7.net, NVLS_TREE: (0, 0, 20.9)},
    nvls_tree=(*_2_28_7.nvls_tree[:3], (0.0, 96.0, 43.8)),
)
_2_29 = replace(
    _2_28_9,
    since=(2, 29),
    ring_ll128=(*_2_28_9.ring_ll128[:3], (34.5, 34.6, 34.5)),
    inside=(*_2_28_9.inside[:2], (90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0)),
)
_2_29_7 = replace(
    _2_29,
    since=(2, 29, 7),
    ring_ll128=(*_2_29.ring_ll128[:3], (40.0, 40.0, 40.0)),
    between=(*_2_29.between[:2], (96.0, 80.0, *_2_29.between[2][1:])),
)
_2_30 = replace(
    _2_29_7,
    since=(2, 30),
    nvls_tree=(*_2_29_7.nvls_tree[:3], (0.0, 96.0, 80.0)),
    between=(*_2_29_7.between[:2], (96.0, 86.0, *_2_29_7.between[2][1:])),
)

_ALL = (
    _2_18, _2_19, _2_20, _2_21, _2_23, _2_24, _2_25, _2_27, _2_27_5, _2_27_6, _2_28, _2_28_7, _2_28_9, _2_29, _2_29_7,
    _2_30,
)  # fmt: skip

# The releases whose source was read for these rules. The others that have the same first two numbers are taken to be
# like the last one before.
CHECKED: tuple[Release, ...] = (
    (2, 18, 3), (2, 19, 3), (2, 20, 5), (2, 21, 5), (2, 22, 3), (2, 23, 4), (2, 24, 3), (2, 25, 1), (2, 26, 2),
    (2, 26, 6), (2, 27, 3), (2, 27, 5), (2, 27, 6), (2, 27, 7), (2, 28, 3), (2, 28, 7), (2, 28, 9), (2, 29, 2),
    (2, 29, 7), (2, 30, 3), (2, 30, 7),
)  # fmt: skip
NEWEST = CHECKED[-1]


def rules_of(release: Release) -> Rules:
    """Return the rules of a release; those of the oldest for one that is older still. () is taken to be the newest."""
    return next((rules for rules in reversed(_ALL) if rules.since <= (release or NEWEST)), _ALL[0])
