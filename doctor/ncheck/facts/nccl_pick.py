"""Which interface NCCL itself picks: what ncclGetUniqueId answered on the node, in a child of the job's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import cast

from ncheck.facts.definition import LONGEST, Fact, trouble
from ncheck.facts.interpreter import INTERPRETER
from ncheck.facts.nccl import NCCL, loaded
from ncheck.model.evidence import Answer, Evidence, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.nccl_version import version_text


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


PICK = Answer("nccl-pick")


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
    return trouble(PICK, reply) or answered(said_by(reply.value))


def said_by(value: object) -> Said:
    if not isinstance(value, dict):
        raise TypeError(f"no record, but {type(value).__name__}")
    return value


def answered(value: Said) -> Unread | NcclPickFacts:
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


FACTS = (Fact(NcclPickFacts, (PICK, NCCL, INTERPRETER), pick),)
