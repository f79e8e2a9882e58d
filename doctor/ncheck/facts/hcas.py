"""What ibstat does not show of HCAs: boards, lanes, P_Keys, GIDs with type and interface, and the driver's modules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated

from ncheck.decode import Device
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.facts.infiniband import Gid
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Absent, Read


@dataclass(frozen=True)
class HcaPortDetails:
    """One port in detail, from sysfs. `lanes` of the link, such as 4, None where they are not shown; `speed` of the
    link, such as "NDR", "" where it is not shown.

    `pkeys`: the first entries of the P_Key table. `gids`: those in use. `board`: the product (PSID), such as
    MT_0000000838.
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
    """The ports of all HCAs, by name and number."""

    ports: tuple[HcaPortDetails, ...]

    def of(self, hca: str, port: int) -> HcaPortDetails:
        """Return a port's details: empty ones where sysfs does not show it."""
        return self._by_place.get((hca, port)) or HcaPortDetails(hca, port)

    @cached_property
    def _by_place(self) -> dict[tuple[str, int], HcaPortDetails]:
        return {(one.hca, one.port): one for one in reversed(self.ports)}


@dataclass(frozen=True)
class HcaModuleFacts:
    """The kernel modules for HCAs that are loaded, with their versions: "" for those of the kernel itself."""

    modules: Mapping[Device, Annotated[str, _cut]]


@dataclass(frozen=True)
class PortAnswer:
    """One port as sysfs prints it."""

    port: int
    rate: str
    pkeys: tuple[Annotated[int, _pkey], ...]
    gids: tuple[Gid, ...]


@dataclass(frozen=True)
class HcaAnswer:
    """One HCA."""

    hca: Device
    board: Annotated[str, _cut]
    ports: tuple[PortAnswer, ...]


@dataclass(frozen=True)
class HcasAnswer:
    hcas: tuple[HcaAnswer, ...]


HCAS = Answer("hcas", shape=HcasAnswer)
_LARGEST_PKEY = 0xFFFF
_LONGEST = 40  # characters of a version, a board or a type

# 400 Gb/sec (4X NDR)
_LINK = expression(r"\((\d{1,2})X(?: (\w{1,8}))?\)", re.ASCII)


@reading(HCAS)
def hcas(answer: HcasAnswer) -> Read[HcaFacts]:
    """Read the ports."""
    ports = tuple(_ports(answer))
    return HcaFacts(ports) if ports else Absent("no InfiniBand or RoCE device")


def _pkey(text: str) -> int:
    value = int(text, 16)
    if not 0 <= value <= _LARGEST_PKEY:
        raise ValueError("a number is out of range")
    return value


def _cut(text: str) -> str:
    return text.strip()[:_LONGEST]


def _ports(answer: HcasAnswer) -> Iterator[HcaPortDetails]:
    for hca in answer.hcas:
        for port in hca.ports:
            link = _LINK.search(port.rate)
            yield HcaPortDetails(
                hca=hca.hca,
                port=port.port,
                lanes=int(link[1]) if link else None,
                speed=(link[2] or "") if link else "",
                pkeys=port.pkeys,
                gids=port.gids,
                board=hca.board,
            )


FACTS = (Fact(HcaFacts, (HCAS,), hcas), Fact(HcaModuleFacts, (HCAS,)))
