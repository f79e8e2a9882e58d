"""The 128 bytes of NCCL's identifier, read strictly, and all that may come in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any

import pytest
from ncheck.facts.interpreter import INTERPRETER
from ncheck.facts.learning import facts_of
from ncheck.facts.nccl import NCCL
from ncheck.facts.nccl_pick import PICK, NcclPickFacts
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.plan.planned_pick import PLANNED, PlannedPickFacts

Answered = Callable[[Mapping[Any, Reply]], Evidence]
ASKED: Any = {"variables": {"NCCL_SOCKET_IFNAME": "=eth0"}, "interfaces": ["eth0"]}


def identifier(address: str, scope: int = 0, family: int = 0, port: int = 40001) -> str:
    """Return what NCCL makes of an address: magic, sockaddr_in or sockaddr_in6, zeros."""
    where = ip_address(address)
    family = family or (2 if where.version == 4 else 10)
    body = where.packed if where.version == 4 else b"\0" * 4 + where.packed + scope.to_bytes(4, "little")
    return (b"\xa5" * 8 + family.to_bytes(2, "little") + port.to_bytes(2, "big") + body).ljust(128, b"\0").hex()


def value(**changes: object) -> Reply:
    said = {
        "version": "2.28.3", "path": "/x/libnccl.so.2", "code": 0, "id": identifier("10.1.0.7"), "words": "",
        "rendezvous": "", "asked": ASKED, **changes,
    }  # fmt: skip
    return Reply(Status.OK, value=said)


def loads(path: str = "/x/libnccl.so.2", *, static: bool = False) -> dict[Any, Reply]:
    """Return what tells that the job loads this NCCL."""
    loaded: Any = {"version": "2.28.3", "path": path, "static": static, "how": "words"}
    python: Any = {"path": "/usr/bin/python3", "version": "3.11.2", "packages": {"torch": "2.6.0"}}
    return {NCCL: Reply(Status.OK, value={"copies": [], "loaded": loaded}), INTERPRETER: Reply(Status.OK, value=python)}


@pytest.fixture
def read(answered: Answered) -> Callable[[Reply], object]:
    """Return a function that reads one answer on a node that loads NCCL 2.28.3."""
    return lambda reply: facts_of(answered({**loads(), PICK: reply}), (NcclPickFacts,))[NcclPickFacts]


Read = Callable[[Reply], object]


@pytest.mark.parametrize(
    ("address", "scope", "kept"),
    [("10.1.0.7", 0, 0), ("fd00::7", 0, 0), ("fd00::7", 4, 0), ("fe80::7", 4, 4), ("127.0.0.1", 0, 0)],
)
def test_the_address_is_read_and_the_scope_of_one_that_is_link_local(
    read: Read, address: str, scope: int, kept: int
) -> None:
    assert read(value(id=identifier(address, scope))) == NcclPickFacts(address, "2.28.3", scope=kept)


def test_what_nccl_refuses_is_read_with_its_words(read: Read) -> None:
    words = "Bootstrap : no socket interface found"
    assert read(value(code=5, id=None, words=words)) == NcclPickFacts("", "2.28.3", words)
    assert read(value(code=3, id=None)) == NcclPickFacts("", "2.28.3", "ncclGetUniqueId returned 3")


def test_an_echo_of_a_rendezvous_is_no_choice(read: Read) -> None:
    assert read(value(rendezvous="10.9.0.1:4444")) == NcclPickFacts("", "2.28.3", rendezvous="10.9.0.1:4444")


BAD = [
    {"id": identifier("10.1.0.7")[:-2]},
    {"id": identifier("10.1.0.7") + "00"},
    {"id": "x" * 256},
    {"id": None},
    {"id": identifier("10.1.0.7", family=7)},
    {"id": identifier("10.1.0.7", port=0) },
    {"id": identifier("0.0.0.0")},  # noqa: S104  no address
    {"id": identifier("::")},
    {"code": None},
    {"code": "0"},
    {"version": None},
]  # fmt: skip


@pytest.mark.parametrize("changes", BAD)
def test_what_is_no_identifier_is_no_address(read: Read, changes: dict[str, object]) -> None:
    assert isinstance(read(value(**changes)), Unread)


def test_a_library_that_could_not_be_asked_says_why(read: Read) -> None:
    why = "NCCL did not answer within 10 s which address it picks"
    assert read(Reply(Status.OK, value={"error": why, "asked": {}})) == Unread(
        f"NCCL could not be asked which interface it picks: {why}"
    )


def test_a_job_that_loads_nccl_while_none_was_there_to_ask_is_unread(read: Read) -> None:
    assert read(Reply(Status.MISSING)) == Unread(
        "the job loads NCCL 2.28.3, but no copy was found to ask which interface it picks"
    )


def test_where_it_is_not_known_what_the_job_loads_another_ones_pick_tells_nothing(answered: Answered) -> None:
    lost = {**loads(), NCCL: Reply(Status.FAILED, reason="broken"), PICK: value()}
    none: dict[Any, Reply] = {**loads(), NCCL: Reply(Status.OK, value={"copies": [], "loaded": None}), PICK: value()}
    inside = {**loads(static=True), PICK: Reply(Status.MISSING)}
    found = [facts_of(answered(replies), (NcclPickFacts,))[NcclPickFacts] for replies in (lost, none, inside)]
    assert found == [
        Absent("the NCCL that the job loads is not known"),
        Absent("no NCCL that the job's interpreter would load"),
        Absent("NCCL is linked into torch, which ncheck does not load to ask it"),
    ]


def test_the_plans_pick_comes_with_what_was_asked(answered: Answered) -> None:
    fact = facts_of(answered({PLANNED: value()}), (PlannedPickFacts,))[PlannedPickFacts]
    assert fact == PlannedPickFacts(NcclPickFacts("10.1.0.7", "2.28.3"), {"NCCL_SOCKET_IFNAME": "=eth0"}, ("eth0",))


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(Status.NOT_ASKED, "the plan sets nothing"), Absent),
        (Reply(Status.MISSING), Unread),
        (Reply(Status.UNANSWERED, "cut"), Unread),
        (value(asked={}), Unread),
        (value(asked=None), Unread),
        (value(id="00" * 128), Unread),
        (Reply(Status.OK, value={"error": "why", "asked": ASKED}), Unread),
        (Reply(Status.OK, value=[]), Unread),
    ],
)
def test_a_plan_that_could_not_be_tried_is_never_taken_for_followed(
    answered: Answered, reply: Reply, kind: type[object]
) -> None:
    assert isinstance(facts_of(answered({PLANNED: reply}), (PlannedPickFacts,))[PlannedPickFacts], kind)
