"""Which interface NCCL itself picks: what ncclGetUniqueId answered on the node, in a child of the job's interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, cast

from ncheck.facts.environment import IFNAME
from ncheck.facts.interpreter import INTERPRETER
from ncheck.facts.nccl import NCCL, loaded
from ncheck.facts.nics import NicFacts
from ncheck.facts.reader import LONGEST, Reader, no_answer, trouble
from ncheck.model.evidence import Answer, Evidence, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.model.phase import NotAsked, Questions
from ncheck.parse.nccl_version import version_text

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import JsonValue
    from ncheck.plan.advice import Advice
    from ncheck.plan.networks import Network


@dataclass(frozen=True)
class NcclPickFacts:
    """The address that NCCL chose in the job's environment, conf files and all; "" with `error` where it refused to.

    `version` is that of the library that was asked. `rendezvous` is NCCL_COMM_ID where that is set: NCCL then echoes
    it, and tells nothing of its choice. `scope` is the interface's index where the address is link-local, 0 elsewhere.
    """

    address: str
    version: str = ""
    error: str = ""
    rendezvous: str = ""
    scope: int = 0


@dataclass(frozen=True)
class PlannedPickFacts:
    """The same under the plan's variables, which were these; `interfaces` are those that the plan means by them."""

    pick: NcclPickFacts
    variables: Mapping[str, str] = field(default_factory=dict)
    interfaces: tuple[str, ...] = ()


PICK = Answer("nccl-pick")


PLANNED = Answer("planned-nccl-pick")


Said = Mapping[str, object]


_LENGTH = 128  # bytes of an identifier


_IPV4, _IPV6 = 2, 10  # address families, as Linux numbers them


_FAMILY, _PORT, _V4, _V6, _SCOPE = slice(8, 10), slice(10, 12), slice(12, 16), slice(16, 32), slice(32, 36)


def pick(evidence: Evidence) -> Read[NcclPickFacts]:
    """Read what NCCL picks as things are. Which NCCL the job loads must be known: another one's pick tells nothing."""
    library = loaded(evidence)
    reply = evidence.reply(PICK)
    if isinstance(library, Unread):  # owed already, with the line to type
        return Absent("which NCCL the job loads is not known")
    if isinstance(library, Absent):
        return library
    if reply.status is Status.MISSING and library.static:
        return Absent("NCCL is a part of torch's own library, which is not run to be asked")
    if reply.status is Status.MISSING:
        return Unread(f"the job loads NCCL {library.version}, and there was none to be asked what it picks")
    return trouble(PICK, reply) or _answered(_said(reply.value))


def planned(evidence: Evidence) -> Read[PlannedPickFacts]:
    """Read what NCCL picks under the plan's variables."""
    reply = evidence.reply(PLANNED)
    if why := no_answer(PLANNED, reply):
        return why
    value = _said(reply.value)
    answered, asked = _answered(value), cast("Said", value["asked"])
    if isinstance(answered, Unread):
        return answered
    variables = {str(name): str(set_to) for name, set_to in cast("Said", asked["variables"]).items()}
    return PlannedPickFacts(answered, variables, tuple(map(str, cast("list[object]", asked["interfaces"]))))


def _said(value: object) -> Said:
    if not isinstance(value, dict):
        raise TypeError(f"no record, but {type(value).__name__}")
    return value


def _answered(value: Said) -> Unread | NcclPickFacts:
    if "error" in value:
        return Unread(f"NCCL could not be asked what it picks: {str(value['error'])[:LONGEST]}")
    version, rendezvous = version_text(cast("str | int", value["version"])), str(value["rendezvous"])[:LONGEST]
    code = value["code"]
    if not isinstance(code, int):
        raise TypeError(f"no result code, but {type(code).__name__}")
    if code:
        words = str(value["words"]).strip()[:LONGEST] or f"ncclGetUniqueId returned {code}"
        return NcclPickFacts("", version, words, rendezvous)
    address, scope = ("", 0) if len(rendezvous) > 1 else _address(bytes.fromhex(str(value["id"])))
    return NcclPickFacts(address, version, "", rendezvous if len(rendezvous) > 1 else "", scope)


def _address(identifier: bytes) -> tuple[str, int]:
    """Return the address that an identifier begins with, and the scope of one that is link-local.

    magic (8 bytes), family (two bytes, the machine's order: little-endian wherever NCCL runs), port, IPv4 or IPv6.
    """
    if len(identifier) != _LENGTH:
        raise ValueError(f"an identifier of {len(identifier)} bytes")
    family = int.from_bytes(identifier[_FAMILY], "little")
    if family not in (_IPV4, _IPV6) or not any(identifier[_PORT]):
        raise ValueError(f"an identifier of family {family}, port {int.from_bytes(identifier[_PORT], 'big')}")
    where: IPv4Address | IPv6Address = ip_address(identifier[_V4 if family == _IPV4 else _V6])
    if where.is_unspecified:
        raise ValueError(f"an identifier with the address {where}")
    scope = int.from_bytes(identifier[_SCOPE], "little") if family == _IPV6 and where.is_link_local else 0
    return str(where), scope


READERS = (
    Reader(NcclPickFacts, (PICK, NCCL, INTERPRETER), pick),
    Reader(PlannedPickFacts, (PLANNED,), planned),
)


_LONGEST = 10.0  # seconds for NCCL to be opened and asked once more


def spared_pick(cluster: Cluster) -> dict[str, str]:
    """Return the nodes on which no plan is to be tried: one node alone needs none."""
    alone = len(cluster.nodes) == 1
    return {node.name: "one node alone needs no network between nodes" for node in cluster.nodes if alone}


def ask_pick(cluster: Cluster, left: float) -> Questions:
    """Make the plan of what is known by now, and ask every node on which NCCL could be asked before."""
    from ncheck.plan.interface import advise
    from ncheck.plan.sight import sight_of

    advice = advise(sight_of(cluster.nodes, cluster.known))
    asked_before, nics = cluster.connected_facts(NcclPickFacts), cluster.connected_facts(NicFacts)
    why = NotAsked(PLANNED, "NCCL could not be asked here what it picks")
    return {
        node.name: (_question(advice, node.name, nics.get(node.name), left) if node.name in asked_before else why,)
        for node in cluster.connected
    }


def _question(advice: Advice, node: str, nics: NicFacts | None, left: float) -> Answer | NotAsked:
    settings = {**advice.env, **advice.per_node.get(node, {})}
    set_to = {name: setting.value for name, setting in settings.items() if name.startswith("NCCL_")}
    variables: dict[str, JsonValue] = {name: value for name, value in set_to.items() if value is not None}
    if not variables or advice.network is None:
        return NotAsked(PLANNED, "the plan sets nothing that NCCL reads")
    meant: list[JsonValue] = [*_meant(advice.network, nics, node, set_to.get(IFNAME) or "")]
    asked: JsonValue = {"variables": variables, "interfaces": meant}
    return replace(PLANNED, arguments=asked, timeout=max(1.0, min(_LONGEST, left - 1.0)))


def _meant(network: Network, nics: NicFacts | None, node: str, value: str) -> Iterator[str]:
    """Yield the interfaces of this node that lead into the plan's network, those of them that its value names.

    The network knows one of the nodes that are one machine.
    """
    from ncheck.network.subnets import subnet_addresses

    named = value.removeprefix("=").split(",") if value.startswith("=") else None
    found = network.members.get(node) or (subnet_addresses(nics) if nics else ())
    names = (seat.interface.name for seat in found if network.subnet in ("", seat.subnet))
    yield from (name for name in dict.fromkeys(names) if named is None or name in named)
