"""Which service manages the firewall, and what its input chains do by default."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.facts.firewall import (
    IPTABLES,
    NFT,
    SERVICES,
    UFW,
    FirewallFacts,
    InputChain,
    firewall,
    iptables_chains,
    nft_chains,
)
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

# `nft -j list ruleset`, one object per line: what firewalld writes, with a trusted network and a trusted interface.
FIREWALLD = Path(__file__).with_name("firewalld.nft.json").read_text()

# `iptables -S` on a host where ufw filters.
UFW_RULES = """\
-P INPUT DROP
-P FORWARD DROP
-P OUTPUT ACCEPT
-N ufw-before-input
-N ufw-user-input
-A INPUT -j ufw-before-input
-A INPUT -p tcp -j REJECT --reject-with tcp-reset
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -j DROP
-A ufw-user-input -p tcp -m tcp --dport 22 -m comment --comment "dapp_OpenSSH -j DROP" -j ACCEPT
"""

# The default of older Red Hat releases.
REJECTING = """\
-P INPUT ACCEPT
-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m state --state NEW -m tcp --dport 22 -j ACCEPT
-A INPUT -j REJECT --reject-with icmp-host-prohibited
"""

# Docker adds nothing to INPUT.
DOCKER = """\
-P INPUT ACCEPT
-P FORWARD DROP
-P OUTPUT ACCEPT
-N DOCKER
-N DOCKER-USER
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A DOCKER-USER -j RETURN
"""

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


def test_a_host_without_a_service_and_without_rules_has_no_chains(answered: Answered) -> None:
    assert read(answered) == FirewallFacts((), ())


def test_a_table_that_iptables_lists_is_not_taken_from_nft_again(answered: Answered) -> None:
    mixed = FIREWALLD.replace('"family": "inet", "table": "firewalld"', '"family": "ip", "table": "filter"')
    text = Reply(Status.OK, exit_status=0, stdout="-P INPUT DROP\n-P FORWARD ACCEPT\n")
    by_iptables = InputChain("iptables filter", "INPUT", "drop")
    assert read(answered, nft=replace(NO_RULES, stdout=mixed), iptables=text) == FirewallFacts((), (by_iptables,))
    both = read(answered, active("active\ninactive\n"), replace(NO_RULES, stdout=FIREWALLD), text)
    by_nft = InputChain("inet firewalld", "filter_INPUT", "reject")
    assert both == FirewallFacts(("firewalld",), (by_nft, by_iptables))


@pytest.mark.parametrize(("conf", "managers"), [("ENABLED=no\n", ()), ('# x\nENABLED="yes"\n', ("ufw",))])
def test_the_ufw_service_counts_only_if_its_file_enables_the_filter(
    answered: Answered, conf: str, managers: tuple[str, ...]
) -> None:
    assert read(answered, active("inactive\nactive\n"), ufw=conf) == FirewallFacts(managers, ())
    assert isinstance(read(answered, active("inactive\nactive\n"), ufw="LOGLEVEL=low\n"), Unread)
    assert isinstance(read(answered, active("inactive\nactive\n")), Unread)


def test_an_ordinary_user_sees_the_service_but_not_the_rules(answered: Answered) -> None:
    hidden = read(answered, nft=DENIED, iptables=DENIED)
    assert isinstance(hidden, Unread)
    assert (hidden.needs_root, hidden.fix) == (True, "sudo nft list ruleset")
    known = read(answered, active("active\nunknown\n"), DENIED, DENIED)
    assert known == FirewallFacts(("firewalld",), hidden)


def test_a_refusal_of_sudo_is_no_matter_of_an_ordinary_user(answered: Answered) -> None:
    refused = Reply(Status.DENIED, reason="sudo: a password is required")
    fact = read(answered, nft=refused, iptables=refused)
    assert isinstance(fact, Unread)
    assert (fact.needs_root, fact.reason) == (
        False, "sudo refused, although --sudo was given: a password is required"
    )  # fmt: skip


@pytest.mark.parametrize(
    "services",
    [
        MISSING,
        Reply(Status.OK, exit_status=1, stderr="System has not been booted with systemd as init system (PID 1).\n"),
    ],
)
def test_a_container_without_systemd_and_without_tools_has_no_firewall(answered: Answered, services: Reply) -> None:
    absent = Absent("neither nft nor iptables is installed")
    assert read(answered, services, MISSING, NO_IPTABLES) == absent


def test_an_nft_without_json_support_is_ignored(answered: Answered) -> None:
    old = Reply(Status.OK, exit_status=1, stderr="Error: JSON support not compiled-in\n")
    text = Reply(Status.OK, exit_status=0, stdout="-P INPUT ACCEPT\n")
    chain = InputChain("iptables filter", "INPUT", "accept")
    assert read(answered, nft=old, iptables=text) == FirewallFacts((), (chain,))


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.FAILED, Status.UNANSWERED])
def test_a_command_that_hung_or_failed_is_unread_and_does_not_need_root(answered: Answered, status: Status) -> None:
    lost = Reply(status, reason="lost", seconds=10.0)
    for facts in (read(answered, lost), read(answered, nft=lost), read(answered, nft=DENIED, iptables=lost)):
        assert isinstance(facts, Unread)
        assert not facts.needs_root


@pytest.mark.parametrize(
    "services", [active(""), active("active\n"), Reply(Status.OK, exit_status=1, stdout="inactive\ninactive\n")]
)
def test_unexpected_output_of_systemctl_is_unread(answered: Answered, services: Reply) -> None:
    assert isinstance(read(answered, services), Unread)


def test_an_nft_or_iptables_that_fails_is_unread(answered: Answered) -> None:
    failed = Reply(Status.OK, exit_status=1, stderr="netlink: Error: cache initialization failed: Protocol error\n")
    assert isinstance(read(answered, nft=failed), Unread)
    assert isinstance(read(answered, iptables=failed), Unread)
    theirs = replace(failed, stderr="iptables v1.8.9 (nf_tables): table `filter' is incompatible, use 'nft' tool.\n")
    assert read(answered, iptables=theirs) == FirewallFacts((), ())


@pytest.mark.parametrize(
    ("text", "action"),
    [(UFW_RULES, "drop"), (REJECTING, "reject"), (DOCKER, "accept"), ("-P FORWARD DROP\n", "accept")],
)
def test_iptables_input_is_closed_by_its_policy_or_by_a_rule_without_conditions(text: str, action: str) -> None:
    assert iptables_chains(text) == (InputChain("iptables filter", "INPUT", action),)


def test_no_rules_are_no_chain() -> None:
    assert iptables_chains("") == nft_chains(NO_RULES.stdout) == ()


@pytest.mark.parametrize(
    "rule", ['-A INPUT -m comment --comment "last one" -j DROP', "-A INPUT -j DROP\n-A INPUT -j ACCEPT"]
)
def test_the_first_rule_of_iptables_without_conditions_decides(rule: str) -> None:
    assert iptables_chains(f"-P INPUT ACCEPT\n{rule}\n")[0].action == "drop"


def ruleset(*rules: list[dict[str, object]], policy: str = "accept", **chain: object) -> tuple[InputChain, ...]:
    place = {"family": "inet", "table": "t"}
    hook = {"type": "filter", "hook": "input", "prio": 0, "policy": policy, **chain}
    objects: list[object] = [{"chain": {**place, "name": "in", "handle": 1, **hook}}]
    objects += [{"rule": {**place, "chain": "in", "handle": n, "expr": expr}} for n, expr in enumerate(rules)]
    return nft_chains(json.dumps({"nftables": objects}))


DROP: dict[str, object] = {"drop": None}
ACCEPT: dict[str, object] = {"accept": None}
COUNTER: dict[str, object] = {"counter": {"packets": 0, "bytes": 0}}
PORT: dict[str, object] = {
    "match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 22}
}


def test_the_first_rule_of_nft_without_conditions_decides_and_then_the_policy() -> None:
    actions = [
        chains[0].action
        for chains in (
            ruleset([PORT, ACCEPT], [COUNTER, DROP], [ACCEPT]),
            ruleset([PORT, ACCEPT], policy="drop"),
            ruleset([COUNTER, ACCEPT], policy="drop"),
            ruleset([PORT, DROP]),
            ruleset([{"limit": {"rate": 3, "per": "second"}}, DROP]),
            ruleset([{"xt": None}, DROP]),
            ruleset([{"jump": {"target": "zones"}}], [{"reject": None}]),
        )
    ]
    assert actions == ["drop", "drop", "accept", "accept", "accept", "accept", "reject"]


def test_other_hooks_types_and_families_are_ignored() -> None:
    assert ruleset([DROP], hook="forward") == ruleset([DROP], type="nat") == ()
    assert nft_chains(FIREWALLD.replace('"family": "inet"', '"family": "ip6"')) == ()


@pytest.mark.parametrize("text", ["-X INPUT", "Chain INPUT (policy ACCEPT)", '-A INPUT -m comment --comment "open'])
def test_text_that_is_not_from_iptables_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a line|quotation"):
        iptables_chains(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nftables": [{"rule": {}}]}', '{"nftables": 7}'])
def test_text_that_is_not_an_nft_ruleset_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        nft_chains(text)


@pytest.mark.parametrize("name", ["filter; flush ruleset", "a b", "$(id)", "", "1a", "é", 7])
def test_what_nft_would_not_take_for_a_name_is_no_chain(name: object) -> None:
    """The name becomes part of a command, and nft reads its arguments once more as its own language."""
    for kind in ("table", "name"):
        chain = {"family": "inet", "table": "filter", "name": "input", "hook": "input", "type": "filter", kind: name}
        with pytest.raises(ValueError, match="not a name of nftables"):
            nft_chains(json.dumps({"nftables": [{"chain": chain}]}))
