"""The clock's offset and the nodes' own ssh, from evidence to facts."""

from __future__ import annotations

import pytest
from ncheck.facts.clock import ClockFacts
from ncheck.facts.learning import facts_of
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts, SshFromHereFacts
from ncheck.model.evidence import Cause, Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Absent, Unread

REACHED = Login(reached=True)


def clock(evidence: Evidence) -> object:
    return facts_of(evidence, [ClockFacts])[ClockFacts]


def peers(value: JsonValue = None, status: Status = Status.OK) -> object:
    reply = Reply(status, reason="" if status is Status.OK else status.value, value=value)
    return facts_of(Evidence("n1", REACHED, replies={"answer:ssh-peers": reply}), [PeerSshFacts])[PeerSshFacts]


def test_the_clock_is_the_offset_that_the_best_ping_gave() -> None:
    evidence = Evidence("n1", REACHED, clock_offset=-3600.5, clock_uncertainty=0.001)
    assert clock(evidence) == ClockFacts(-3600.5, 0.001)


def test_a_clock_that_was_never_read_is_unread() -> None:
    assert isinstance(clock(Evidence("n1", REACHED)), Unread)


@pytest.mark.parametrize(
    ("status", "stderr", "cause"),
    [
        (0, "Warning: something", None),
        (255, "me@n2: Permission denied (publickey).", Cause.AUTH_REFUSED),
        (255, "", Cause.CLOSED),
        (1, "This account is currently not available.", Cause.NO_SHELL),
        (127, "", Cause.NO_SHELL),
        (None, "", Cause.STALLED),
        (None, "Connection timed out during banner exchange", Cause.SILENT),
    ],
)
def test_each_edge_has_its_cause(status: int | None, stderr: str, cause: Cause | None) -> None:
    said: JsonValue = {"peers": {"n2": {"exit_status": status, "stderr": stderr, "seconds": 1.0, "cut_short": False}}}
    facts = peers(said)
    assert isinstance(facts, PeerSshFacts)
    assert [(edge.target, edge.cause) for edge in facts.peers] == [("n2", cause)]
    assert cause is None or facts.peers[0].detail


def test_a_login_that_ended_well_without_the_command_did_not_work() -> None:
    answer: JsonValue = {"exit_status": 0, "stderr": "", "seconds": 1.0, "cut_short": False, "ran": False, "port": 22}
    facts = peers({"peers": {"n2": answer}})
    assert isinstance(facts, PeerSshFacts)
    assert [(edge.cause, edge.port) for edge in facts.peers] == [(Cause.NO_SHELL, 22)]
    assert "ran no command there" in facts.peers[0].detail


@pytest.mark.parametrize("port", ["22; reboot", True, 22.0])
def test_a_port_that_is_no_number_is_taken_from_no_node(port: JsonValue) -> None:
    answer: JsonValue = {"exit_status": 0, "stderr": "", "seconds": 1.0, "ran": True, "port": port}
    assert isinstance(peers({"peers": {"n2": answer}}), Unread)


def from_here(reply: Reply | None, *, recorded: bool = False) -> object:
    replies = {"answer:ssh-from-here": reply} if reply else {}
    evidence = Evidence("n1", REACHED, replies=replies, recorded=recorded)
    return facts_of(evidence, [SshFromHereFacts])[SshFromHereFacts]


def test_ssh_from_here_speaks_for_all_nodes_alike_and_not_for_this_machine_itself() -> None:
    answer: JsonValue = {
        "exit_status": 255,
        "stderr": "Cannot execute command-line and remote command.",
        "seconds": 1.0,
    }
    tried = PeerSsh("n7", Cause.TRANSPORT, "Cannot execute command-line and remote command.")
    assert from_here(Reply(Status.OK, value={"peers": {"n7": answer}})) == SshFromHereFacts(tried)
    assert from_here(Reply(Status.OK, value={"peers": {}})) == SshFromHereFacts(None)


def test_ssh_from_here_is_absent_where_it_cannot_be_and_unread_where_it_was_not_tried() -> None:
    assert from_here(Reply(Status.MISSING)) == Absent("no ssh program on this machine")
    assert from_here(Reply(Status.NOT_ASKED, "no SSH is used")) == Absent("no SSH is used")
    assert isinstance(from_here(None, recorded=True), Absent)
    assert isinstance(from_here(None), Unread)


def test_an_edge_for_which_there_was_no_time_is_nobodys_fault() -> None:
    said: JsonValue = {"peers": {"n2": {"exit_status": None, "stderr": "", "seconds": 0.0, "cut_short": True}}}
    assert peers(said) == PeerSshFacts((PeerSsh("n2", Cause.DEADLINE, "no time left to try it"),))


def test_a_node_that_tried_none_of_those_that_it_was_asked_about_is_unread() -> None:
    assert peers({"peers": {}}) == Unread("it tried no ssh to other nodes, although it was asked to")


@pytest.mark.parametrize("value", [None, [], {"peers": None}, {"peers": {"n2": 7}}, {"peers": {"n2": {}}}])
def test_nonsense_is_unread(value: JsonValue) -> None:
    assert isinstance(peers(value), Unread)


@pytest.mark.parametrize("target", ["$(reboot)", "n2; reboot", "-oProxyCommand=reboot", "fe80::1%$(reboot)", ""])
def test_a_target_that_no_listing_can_have_is_taken_from_no_node(target: str) -> None:
    assert isinstance(peers({"peers": {target: {"exit_status": 1, "stderr": "", "seconds": 1.0}}}), Unread)


def test_a_node_without_ssh_is_unread_for_it_should_have_one() -> None:
    assert peers(status=Status.MISSING) == Unread("no ssh program on this node")
