"""Nodes with the ports of InfiniBand or RoCE, as several checks see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.hcas import HcaFacts, HcaPortDetails
from ncheck.facts.infiniband import Gid, HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.model.check import Check
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Outcome
from ncheck.steps.judge import Judgement

from tests.logins import logins

PASSED, SKIPPED, FAILED = Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED

Judge = Callable[[Sequence[Check], Mapping[str, Facts]], Judgement]  # a test hands over its own: it is watched
Both = tuple[HcaPort, HcaPortDetails]  # a port, and its details


def port(  # noqa: PLR0913  each is one value of a port
    hca: str = "mlx5_0", layer: str = "InfiniBand", *, state: str = "Active", rate: float = 400, lid: int = 5,
    sm_lid: int = 1, guid: str = "", kind: str = "MT4129", firmware: str = "28.39.1002", netdev: str = "",
    prefix: str = "fe80:0000:0000:0000", pkeys: tuple[int, ...] = (0xFFFF,), gids: tuple[Gid, ...] = (), lanes: int = 4,
    speed: str = "NDR", board: str = "MT_0000000838",
) -> Both:  # fmt: skip
    own = Gid(0, prefix + ":0000:0000:0000:0001", "IB/RoCE v1")
    return (
        HcaPort(hca, 1, state, "LinkUp", rate, layer, lid, sm_lid, firmware, kind, port_guid=guid, netdev=netdev),
        HcaPortDetails(hca, 1, lanes, speed, pkeys, gids or (own,), board),
    )


def node(*ports: Both, **variables: str) -> Facts:
    facts = InfinibandFacts(tuple(one for one, _ in ports), "sysfs")
    return {
        InfinibandFacts: facts if ports else Absent("no InfiniBand or RoCE device"),
        HcaFacts: HcaFacts(tuple(details for _, details in ports)) if ports else Absent("no InfiniBand or RoCE device"),
        EnvironmentFacts: logins(variables, {}),
        LoadedNcclFacts: LoadedNcclFacts("2.21.5", "/usr/lib/libnccl.so.2"),
        GpuFacts: Absent("no NVIDIA GPU"),
        LibraryFacts: LibraryFacts("", NO_HCA, {one.hca: "" for one, _ in ports} or NO_HCA),
    }


def roce(*addresses: str, hca: str = "mlx5_0", netdev: str = "eth2") -> Both:
    """Return a RoCE port with the GIDs of its link-local address and of these IPv4 addresses, each in both versions."""
    mapped = [_mapped(address) for address in addresses]
    both = [(gid, kind) for gid in ("fe80" + ":0000" * 6 + ":0001", *mapped) for kind in ("IB/RoCE v1", "RoCE v2")]
    gids = tuple(Gid(index, gid, kind, netdev) for index, (gid, kind) in enumerate(both))
    return port(hca, "Ethernet", lid=0, sm_lid=0, gids=gids, netdev=netdev)


def _mapped(address: str) -> str:
    digits = "".join(f"{int(part):02x}" for part in address.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{digits[:4]}:{digits[4:]}"


def outcomes(judge: Judge, check: Check, *nodes: Facts) -> list[Outcome]:
    verdicts = judge([check], {f"n{number}": facts for number, facts in enumerate(nodes, 1)}).verdicts
    return [verdict.outcome for verdict in verdicts]


def messages(judge: Judge, check: Check, *nodes: Facts) -> list[tuple[str, tuple[str, ...]]]:
    """Return each finding's message and nodes."""
    found = judge([check], {f"n{number}": facts for number, facts in enumerate(nodes, 1)}).findings
    return [(one.message, one.nodes) for one in found]
