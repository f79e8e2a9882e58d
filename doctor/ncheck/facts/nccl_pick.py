"""The interface that NCCL itself picks: the result of ncclGetUniqueId, called on the node."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated

from ncheck.decode import OPTIONAL, Maybe, Null, Words
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import Fact, trouble
from ncheck.facts.interpreter import INTERPRETER
from ncheck.facts.nccl import NCCL, loaded
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Evidence, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.nccl_version import version_text
from ncheck.text import LONGEST_MESSAGE


@dataclass(frozen=True)
class NcclPickFacts:
    """The address that NCCL picks in the job's environment and configuration files.

    `address`: "" if it fails, and `error`: why. `version` is that of the library that was called. `rendezvous` is
    NCCL_COMM_ID if that is set: NCCL then returns it instead of an address it picks. `scope` is the interface's
    index for a link-local address, 0 for any other.
    """

    address: str
    version: str = ""
    error: str = ""
    rendezvous: str = ""
    scope: int = 0


@dataclass(frozen=True)
class Asked:
    """What the node was asked, as it came back: the plan's variables, and the interfaces that it means by them."""

    variables: Maybe[Mapping[str, str]] = None
    interfaces: Maybe[tuple[str, ...]] = None


@dataclass(frozen=True)
class PickAnswer:
    """What ncclGetUniqueId returned: `code` is a ncclResult_t, `id` 256 hexadecimal digits, null if it refused."""

    version: str | int
    code: int
    id: Annotated[str, Null("")]
    words: Annotated[str, Null("")]
    rendezvous: Words
    asked: Annotated[Asked, OPTIONAL] = Asked()


PICK = Answer("nccl-pick", shape=PickAnswer | Unread, slow=True)
_LENGTH = 128  # bytes of an identifier
_IPV4, _IPV6 = 2, 10  # address families, as Linux numbers them
_FAMILY, _PORT, _V4, _V6, _SCOPE = slice(8, 10), slice(10, 12), slice(12, 16), slice(16, 32), slice(32, 36)


def pick(evidence: Evidence) -> Read[NcclPickFacts]:
    """Read what NCCL picks now. The job's copy of NCCL must be known: another copy may pick differently."""
    library = loaded(evidence)
    reply = evidence.reply(PICK)
    if isinstance(library, Unread):  # already reported, with its fix
        return Absent("the NCCL that the job loads is not known")
    if isinstance(library, Absent):
        return library
    if reply.status is Status.MISSING and library.static:
        return Absent("NCCL is linked into torch, which ncheck does not load to ask it")
    if reply.status is Status.MISSING:
        return Unread(f"the job loads NCCL {library.version}, but no copy was found to ask which interface it picks")
    return trouble(PICK, reply) or answered(answer_of(PICK, evidence, trouble))


def answered(answer: PickAnswer | Unread) -> Unread | NcclPickFacts:
    if isinstance(answer, Unread):
        return Unread(f"NCCL could not be asked which interface it picks: {answer.reason}")
    version, rendezvous, code = version_text(answer.version), answer.rendezvous, answer.code
    if code:
        words = answer.words.strip()[:LONGEST_MESSAGE] or f"ncclGetUniqueId returned {code}"
        return NcclPickFacts("", version, words, rendezvous)
    address, scope = ("", 0) if len(rendezvous) > 1 else _address(bytes.fromhex(answer.id))
    return NcclPickFacts(address, version, "", rendezvous if len(rendezvous) > 1 else "", scope)


def _address(identifier: bytes) -> tuple[str, int]:
    """Return the address at the start of an identifier, and the scope of a link-local one.

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
