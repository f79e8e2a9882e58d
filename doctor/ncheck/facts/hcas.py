"""What ibstat does not show of HCAs: boards, lanes, P_Keys, GIDs with type and interface, and the driver's modules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import Fact, no_answer
from ncheck.facts.infiniband import Gid
from ncheck.facts.shapes import device_name, whole
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read


@dataclass(frozen=True)
class HcaPortDetails:
    """`lanes` and `speed` of the link, such as 4 and "NDR"; None and "" where sysfs does not show them.

    `pkeys`: the first entries of the P_Key table. `gids`: those in use.
    """

    hca: str
    port: int
    lanes: int | None = None
    speed: str = ""
    pkeys: tuple[int, ...] = ()
    gids: tuple[Gid, ...] = ()
    board: str = ""


@dataclass(frozen=True)
class HcaFacts:
    """The ports of all HCAs, by name and number. `board` is the product (PSID): MT_0000000838."""

    ports: tuple[HcaPortDetails, ...]

    def of(self, hca: str, port: int) -> HcaPortDetails:
        """Return a port's details: empty ones where sysfs does not show it."""
        return next((one for one in self.ports if (one.hca, one.port) == (hca, port)), HcaPortDetails(hca, port))


@dataclass(frozen=True)
class HcaModuleFacts:
    """The kernel modules for HCAs that are loaded, with their versions: "" for those of the kernel itself."""

    modules: Mapping[str, str]


class GidAnswer(TypedDict):
    """One entry of a GID table."""

    index: int
    address: str
    kind: str
    netdev: str


class PortAnswer(TypedDict):
    """One port as sysfs prints it."""

    port: int
    rate: str
    pkeys: list[str]
    gids: list[GidAnswer]


class HcaAnswer(TypedDict):
    """One HCA."""

    hca: str
    board: str
    ports: list[PortAnswer]


class HcasAnswer(TypedDict):
    """All HCAs; `left_out`: how many more there are."""

    hcas: list[HcaAnswer]
    left_out: int
    modules: dict[str, str]


HCAS = Answer("hcas", shape=HcasAnswer)


_LARGEST_PKEY = 0xFFFF


_LONGEST = 40  # characters of a version, a board or a type


# 400 Gb/sec (4X NDR)
_LINK = re.compile(r"\((\d{1,2})X(?: (\w{1,8}))?\)", re.ASCII)

# 0000:0000:0000:0000:0000:ffff:0a14:0001
_ADDRESS = re.compile(r"[0-9a-f]{4}(:[0-9a-f]{4}){7}")


def hcas(evidence: Evidence) -> Read[HcaFacts]:
    """Read the ports. Raises ValueError for what is no address, number or name."""
    reply = evidence.reply(HCAS)
    if why := no_answer(HCAS, reply):
        return why
    ports = tuple(_ports(cast("HcasAnswer", reply.value)))
    return HcaFacts(ports) if ports else Absent("no InfiniBand or RoCE device")


def modules(evidence: Evidence) -> Read[HcaModuleFacts]:
    """Read the driver's modules."""
    reply = evidence.reply(HCAS)
    if why := no_answer(HCAS, reply):
        return why
    answer = cast("HcasAnswer", reply.value)
    return HcaModuleFacts(
        {device_name(name): version.strip()[:_LONGEST] for name, version in answer["modules"].items()}
    )


def _ports(answer: HcasAnswer) -> Iterator[HcaPortDetails]:
    for hca in answer["hcas"]:
        for port in hca["ports"]:
            link = _LINK.search(port["rate"])
            yield HcaPortDetails(
                hca=device_name(hca["hca"]),
                port=port["port"],
                lanes=int(link[1]) if link else None,
                speed=(link[2] or "") if link else "",
                pkeys=tuple(whole(int(key, 16), _LARGEST_PKEY) for key in port["pkeys"]),
                gids=tuple(map(_gid, port["gids"])),
                board=hca["board"][:_LONGEST],
            )


def _gid(gid: GidAnswer) -> Gid:
    if not _ADDRESS.fullmatch(gid["address"]):
        raise ValueError("no GID")
    netdev = device_name(gid["netdev"]) if gid["netdev"] else ""
    return Gid(gid["index"], gid["address"], gid["kind"][:_LONGEST], netdev)


FACTS = (Fact(HcaFacts, (HCAS,), hcas), Fact(HcaModuleFacts, (HCAS,), modules))
