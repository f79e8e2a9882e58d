"""The words of the field that reports use, and the checks that an error text may belong to: for `ncheck explain`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from ncheck.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ncheck.model.check import Check
    from ncheck.steps.registry import Registry


@dataclass(frozen=True)
class Word:
    """A word: the pattern of what people type for it, two to five lines, and the codes of the checks that use it."""

    name: str
    pattern: str
    meaning: str
    codes: tuple[str, ...]


WORDS = (
    Word("NV#", r"nv(?:#|\d{1,2})", """\
In `nvidia-smi topo -m`: two GPUs are joined by # NVLinks, directly or through NVSwitches.
It is the fastest path: from V100 to H100 each link carries 25 GB/s in each direction (NV18: 450 GB/s).
A pair with fewer links than its peers, or with PIX or SYS instead, slows every all-reduce of the node.""",
         ("NC504", "NC508", "NC509", "NC527", "NC529")),
    Word("PIX", "pix", """\
In `nvidia-smi topo -m`: the two devices share one PCIe switch, without passing the processor.
It is the best that a GPU and a NIC can have, and what GPUDirect RDMA needs to be fast.""",
         ("NC504", "NC510")),
    Word("PXB", "pxb", """\
In `nvidia-smi topo -m`: the path passes several PCIe switches, but not the processor's PCIe host bridge.
GPUDirect RDMA works well over it. Only PIX is shorter.""",
         ("NC504", "NC510")),
    Word("PHB", "phb", """\
In `nvidia-smi topo -m`: the path passes a PCIe host bridge, that is, the processor.
Traffic from GPU to GPU or to a NIC loses bandwidth there, and by default NCCL uses GPUDirect RDMA only on shorter
paths (NCCL_NET_GDR_LEVEL).""",
         ("NC504", "NC510")),
    Word("NODE", "node", """\
In `nvidia-smi topo -m`: the path passes the link between PCIe host bridges inside one NUMA node.
It is longer than PHB and stays on the socket. A GPU whose nearest NIC is NODE sends its data through the processor.""",
         ("NC504", "NC510")),
    Word("SYS", "sys", """\
In `nvidia-smi topo -m`: the path crosses the link between the sockets (QPI, UPI, xGMI).
It is the slowest path in a machine. A GPU that reaches its NIC so gets a fraction of the NIC's rate, and GPUDirect RDMA
is not used by default.""",
         ("NC504", "NC510")),
    Word("busbw", "bus ?bw|bus bandwidth", """\
Bus bandwidth, as nccl-tests print it: algbw x 2(n-1)/n for an all-reduce of n ranks.
The factor is (n-1)/n for an all-gather, a reduce-scatter and an all-to-all, and 1 for a broadcast and a send-recv. It
does not depend on the number of ranks where data goes round in a ring, so it can be compared with the rate of the
links: 400 GB/s is what eight NICs of 400 Gb/s can carry. An all-to-all of n nodes reaches about one NIC per GPU.
ncheck's expected values and limits are bus bandwidths in GB/s (1e9 bytes per second).""",
         ("NC710", "NC711", "NC712", "NC720", "NC721")),
    Word("algbw", "alg ?bw|algorithm bandwidth", """\
Algorithm bandwidth: the bytes of one rank's buffer divided by the time of the collective.
It says how long a step takes, but falls with the number of ranks; to compare with links, use busbw.""",
         ("NC720", "NC721")),
    Word("GPUDirect RDMA", r"gpu ?direct(?: ?rdma)?|gdr", """\
The NIC reads and writes GPU memory itself, without a copy through the host's memory.
It needs a driver module (nvidia-peermem) or DMA-BUF, and a short PCIe path between GPU and NIC (PIX or PXB; see also
ACS and IOMMU). Without it, NCCL over InfiniBand or RoCE reaches about half of the rate.""",
         ("NC419", "NC433", "NC436", "NC437", "NC510", "NC721")),
    Word("rail", "rails?|rail.optimi[sz]ed", """\
The NICs with the same position in every node (mlx5_0 of all, mlx5_1 of all) and the switches that join them.
NCCL sends data of GPU i over rail i. A rail that is slow or down slows the whole job, and swapped cables put a NIC on
another rail.""",
         ("NC364", "NC710", "NC740")),
    Word("P_Key", r"p_?keys?|partition key", """\
The partition key of InfiniBand, as a VLAN is of Ethernet: two ports can talk only if they share a partition, and one of
the two is a full member (the top bit, as in 0xffff). The subnet manager assigns it.""",
         ("NC415",)),
    Word("GID", r"gids?|gid index", """\
The address of an RDMA port, 128 bits. A RoCE port has several: for each IP address, RoCE v1 and v2.
NCCL takes one by index (NCCL_IB_GID_INDEX) or, since 2.21, chooses itself. An index that is RoCE v1, or of another
network, on one node makes connections hang or fail.""",
         ("NC416", "NC417")),
    Word("Xid", "xids?", """\
An error that NVIDIA's driver writes to the kernel log, with a number: 79 is a GPU that has fallen off the bus, 48 and
94 are memory errors, 13 and 31 are mostly faults of the program. Most machines let only root read that log.""",
         ("NC506", "NC507", "NC530", "NC538", "NC539")),
    Word("NVLS", "nvls|nvlink sharp", """\
NVLink SHARP: the NVSwitches add up the data of an all-reduce themselves (H100 and newer, NCCL 2.17 and newer).
busbw inside a node can then be above the rate of its NVLinks. It needs a running fabric manager.""",
         ("NC508", "NC536", "NC720")),
    Word("SHARP", "sharp", """\
InfiniBand switches that add up the data of an all-reduce (NCCL's CollNet plug-in, nccl-rdma-sharp-plugins).
It halves the data that a node sends: busbw can be above the rate of the NICs. Without the plug-in and an aggregation
manager in the fabric, NCCL uses rings and trees.""",
         ()),
    Word("verdict", "verdicts?", """\
What one check says of one node: passed, failed, unknown, skipped or crashed.
Unknown means that something should have been readable and was not: it is never counted as passed, and leads to exit
code 1 like an error, unless --fail-on says otherwise.""",
         ()),
    Word("consequence", "consequences?", """\
A finding that only follows from another one: a slow all-reduce is a consequence of one slow NIC.
It is printed under its cause and counted apart: fix the cause, and it is gone.""",
         ()),
    Word("slots", "slots?", """\
How many ranks a launcher may start on a host: `gpu01 slots=8` in a hostfile, `-H gpu01:8` for mpirun and horovodrun.
As a rule it is the number of the node's GPUs. Fewer slots than ranks: "not enough slots", and nothing starts.""",
         ("NC208", "NC101")),
    Word("rendezvous", "rendez-?vous|rdzv|会合", """\
The place where the ranks find each other before they can train: MASTER_ADDR and MASTER_PORT, or --rdzv-endpoint.
Rank 0 listens there, and all ranks connect to it and wait until all have come. It hangs where one rank never starts,
where the address is not one that all nodes reach, or where the port is taken or filtered.""",
         ("NC316", "NC317", "NC318", "NC308")),
    Word("probe", "probes?", """\
`ncheck probe nodes.txt` measures bandwidth inside nodes, between pairs of them and between all, with the launch plan.
It starts its own short-lived processes on GPUs and NICs: run it on nodes that are idle. `ncheck list measured` shows
the checks that judge what it measured.""",
         ("NC710", "NC711", "NC720", "NC740")),
    Word("virtual interface", r"(?:virtual|wrong) (?:network )?(?:interface|nic)s?|docker\d?|virbr\d?|"
         "虚拟网卡|虚拟接口", """\
A network interface that leads to no other node: docker0, virbr0, veth, a bridge of a container network, a tunnel.
NCCL, gloo and Open MPI pick interfaces by name and order and may take one; the job then hangs where it starts.
`ncheck plan nodes.txt --for env` prints the settings that name the right one (NCCL_SOCKET_IFNAME and its like).""",
         ("NC304", "NC337")),
    Word("job hangs", r"(?:(?:my|the|a) )?(?:job|training|program|nccl|run)?(?: is| just)? ?"
         r"(?:hangs?|hung|hanging|stuck|freezes?|frozen)|(?:作业|训练|任务|程序)?(?:卡住|卡死|挂起)了?", """\
While it hangs: `ncheck triage nodes.txt` looks at its processes, stacks, sockets and counters, and touches nothing.
From its logs: `ncheck triage --logs DIR`. Before the next start: `ncheck nodes.txt` checks the nodes.
To be told the next time: `ncheck triage --watch nodes.txt` says when the job stands still, and why.""",
         ("NC304", "NC318", "NC640", "NC620")),
)  # fmt: skip

MOST = 6  # checks that a search lists


def word_of(text: str) -> Word | None:
    """Return the word that a text is, in any case: "NV18" is NV#."""
    return next((word for word in WORDS if re.fullmatch(word.pattern, text.strip(), re.IGNORECASE)), None)


def found(registry: Registry, text: str) -> tuple[str, ...]:
    """Return the codes of the checks whose title, name or page has the words of a text, the best first.

    A word counts the more the fewer checks have it, in whatever form it is typed, and double where the name or the page
    has the whole text. A check is listed if it has more than a third of the text and more than 0.6 of what the best one
    has.
    """
    phrase = _phrase(text)
    wanted = set(_tokens(text))
    pages = {check.code: (set(_tokens(f"{check.name} {check.title}")), set(_tokens(f"{check.name} {check.page}")))
             for check in registry.checks}  # fmt: skip
    common = Counter(token for _, page in pages.values() for token in page & wanted)
    counted = (token for token in wanted if token in common or token.isalpha())
    rare = {token: log(2 * len(pages) / max(common[token], 1)) for token in counted}
    scores = {
        code: sum(rare[token] * (1.5 if token in title else 1) for token in wanted & page)
        for code, (title, page) in pages.items()
    }
    for check in registry.checks:
        if phrase in f"{check.name.replace('-', ' ')} {' '.join(check.page.lower().split())}":
            scores[check.code] *= 2
    whole = sum(rare.get(token, log(2 * len(pages))) for token in wanted)
    least = max(0.6 * max(scores.values(), default=0.0), whole / 3)
    ranked = sorted(scores, key=lambda code: (-scores[code], code))
    return tuple(code for code in ranked[:MOST] if scores[code] > least)


def names(check: Check, text: str) -> bool:
    """Whether a text is the name or the title of a check."""
    return _phrase(text) in (check.name.replace("-", " "), check.title.lower())


def _phrase(text: str) -> str:
    return " ".join(text.lower().split()).strip(".:! ")


def near(text: str) -> str:
    """Return "did you mean busbw?" for a misspelt word, or nothing."""
    names = {word.name.lower(): word.name for word in WORDS}
    close = get_close_matches(text.lower(), names, n=1)
    return f"did you mean {names[close[0]]}?" if close else ""


@lru_cache(maxsize=1024)  # the pages of all checks, for a server that is asked again
def _tokens(text: str) -> Sequence[str]:
    """Return the words of a text that say something, each in one form: "address already in use" has two."""
    lower = text.lower()
    words = [word for word in re.findall(r"[a-z0-9_]{3,}", lower) if word not in _PLAIN]
    english = [word for chinese, word in _CHINESE.items() if chinese in lower]
    return [_SAME.get(word) or re.sub(r"(?<=[a-z]{4})(?:ing|ed|es|s|e)$", "", word) for word in (*words, *english)]


# What users and programs call what the pages call by another word, in the form that _tokens gives.
_SAME = {
    **dict.fromkeys(("unavailable", "occupied", "already"), "taken"),
    **dict.fromkeys(("nic", "nics", "iface"), "interfac"),
    **dict.fromkeys(("cmd", "command", "executable"), "program"),
    **dict.fromkeys(("denied", "rejected"), "refus"),
}
_CHINESE = {
    "端口": "port", "占用": "taken", "地址": "address", "使用": "taken", "连接": "connection", "拒绝": "refused",
    "权限": "permission", "网卡": "interface", "虚拟": "virtual", "磁盘": "disk", "驱动": "driver", "版本": "version",
    "主机名": "hostname", "防火墙": "firewall", "密钥": "keys", "时钟": "clock",
}  # fmt: skip

_PLAIN = frozenset((
    "all", "and", "any", "are", "but", "can", "cannot", "check", "could", "does", "error", "failed", "for", "from",
    "has", "have", "info", "into", "its", "job", "may", "node", "nodes", "not", "one", "out", "than", "that", "the",
    "then", "this", "two", "use", "used", "warn", "warning", "was", "what", "when", "where", "which", "with",
))  # fmt: skip
