"""Who keeps a firewall, and its rules as far as they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.facts.firewall import IPTABLES, NFT, SERVICES, UFW, FirewallFacts, firewall
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.parse.packet_filters import Chain

Answered = Callable[[Mapping[Any, Reply]], Evidence]

FIREWALLD = (Path(__file__).parents[1] / "parse" / "firewalld.nft.json").read_text()
NO_RULES = Reply(Status.OK, exit_status=0, stdout='{"nftables": [{"metainfo": {"json_schema_version": 1}}]}')
QUIET = Reply(Status.OK, exit_status=0)
NOT_ROOT = "Operation not permitted (you must be root)\n"
DENIED = Reply(Status.DENIED, exit_status=1, stderr=NOT_ROOT, reason=NOT_ROOT.strip())
NONE_ACTIVE = Reply(Status.OK, exit_status=3, stdout="inactive\ninactive\n")
MISSING = Reply(Status.MISSING, reason="no such program")
NO_IPTABLES = Reply(Status.OK, exit_status=0, stderr="sh: 1: iptables: not found\n")


def read(
    answered: Answered,
    services: Reply = NONE_ACTIVE,
    nft: Reply = NO_RULES,
    iptables: Reply = QUIET,
    ufw: str | None = None,
) -> object:
    conf = Reply(Status.OK, value=ufw) if ufw is not None else Reply(Status.MISSING)
    return firewall(answered({SERVICES: services, NFT: nft, IPTABLES: iptables, UFW: conf}))


def active(words: str) -> Reply:
    return Reply(Status.OK, exit_status=0, stdout=words)


def test_no_service_and_no_rules_are_told_to_root(answered: Answered) -> None:
    assert read(answered) == FirewallFacts((), ())


def test_rules_of_both_programs_come_together_and_iptables_tells_of_its_own_table(answered: Answered) -> None:
    mixed = FIREWALLD.replace('"family": "inet", "table": "firewalld"', '"family": "ip", "table": "filter"')
    text = Reply(Status.OK, exit_status=0, stdout="-P INPUT DROP\n-P FORWARD ACCEPT\n")
    by_iptables = (Chain("iptables filter", "INPUT", (), "drop"), Chain("iptables filter", "FORWARD", ()))
    assert read(answered, nft=replace(NO_RULES, stdout=mixed), iptables=text) == FirewallFacts((), by_iptables)
    both = read(answered, active("active\ninactive\n"), replace(NO_RULES, stdout=FIREWALLD), text)
    assert isinstance(both, FirewallFacts)
    assert both.managers == ("firewalld",)
    assert isinstance(both.chains, tuple)
    assert {chain.table for chain in both.chains} == {"inet firewalld", "iptables filter"}


@pytest.mark.parametrize(("conf", "managers"), [("ENABLED=no\n", ()), ('# x\nENABLED="yes"\n', ("ufw",))])
def test_ufws_service_is_active_on_every_ubuntu_and_its_file_tells_whether_it_filters(
    answered: Answered, conf: str, managers: tuple[str, ...]
) -> None:
    assert read(answered, active("inactive\nactive\n"), ufw=conf) == FirewallFacts(managers, ())
    assert isinstance(read(answered, active("inactive\nactive\n"), ufw="LOGLEVEL=low\n"), Unread)
    assert isinstance(read(answered, active("inactive\nactive\n")), Unread)


def test_an_ordinary_user_learns_the_service_and_that_the_rules_need_root(answered: Answered) -> None:
    hidden = read(answered, nft=DENIED, iptables=DENIED)
    assert isinstance(hidden, Unread)
    assert (hidden.needs_root, hidden.fix) == (True, "sudo nft list ruleset")
    known = read(answered, active("active\nunknown\n"), DENIED, DENIED)
    assert known == FirewallFacts(("firewalld",), hidden)


@pytest.mark.parametrize(
    "services",
    [
        MISSING,
        Reply(Status.OK, exit_status=1, stderr="System has not been booted with systemd as init system (PID 1).\n"),
    ],
)
def test_a_container_without_systemd_and_without_tools_has_no_rules_to_be_seen(
    answered: Answered, services: Reply
) -> None:
    absent = Absent("neither nft nor iptables is here, and no rules to be seen")
    assert read(answered, services, MISSING, NO_IPTABLES) == absent


def test_an_nft_that_knows_no_json_is_as_none(answered: Answered) -> None:
    old = Reply(Status.OK, exit_status=1, stderr="Error: JSON support not compiled-in\n")
    text = Reply(Status.OK, exit_status=0, stdout="-P INPUT ACCEPT\n")
    assert read(answered, nft=old, iptables=text) == FirewallFacts(
        (), (Chain("iptables filter", "INPUT", (), "accept"),)
    )


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.FAILED, Status.UNANSWERED])
def test_what_hung_or_broke_is_unread_and_not_a_matter_of_root(answered: Answered, status: Status) -> None:
    lost = Reply(status, reason="lost", seconds=10.0)
    for facts in (read(answered, lost), read(answered, nft=lost), read(answered, nft=DENIED, iptables=lost)):
        assert isinstance(facts, Unread)
        assert not facts.needs_root


@pytest.mark.parametrize(
    "services", [active(""), active("active\n"), Reply(Status.OK, exit_status=1, stdout="inactive\ninactive\n")]
)
def test_a_systemctl_that_says_something_else_is_unread(answered: Answered, services: Reply) -> None:
    assert isinstance(read(answered, services), Unread)


def test_an_nft_or_iptables_that_fails_is_unread(answered: Answered) -> None:
    failed = Reply(Status.OK, exit_status=1, stderr="netlink: Error: cache initialization failed: Protocol error\n")
    assert isinstance(read(answered, nft=failed), Unread)
    assert isinstance(read(answered, iptables=failed), Unread)
    theirs = replace(failed, stderr="iptables v1.8.9 (nf_tables): table `filter' is incompatible, use 'nft' tool.\n")
    assert read(answered, iptables=theirs) == FirewallFacts((), ())
