"""The listing, the login and who answered: facts of every node, reached or not."""

from __future__ import annotations

from ncheck.facts.learning import facts_of
from ncheck.facts.login import IdentityFacts, ListingFacts, LoginFacts
from ncheck.model.evidence import Cause, Evidence, Greeting, Login
from ncheck.model.fact import Unread

FACTS = (ListingFacts, LoginFacts, IdentityFacts)


def facts(evidence: Evidence) -> dict[type[object], object]:
    found = facts_of(evidence, FACTS)
    return {fact: found[fact] for fact in FACTS}


def test_a_node_that_was_not_reached_has_its_listing_and_its_login() -> None:
    login = Login(reached=False, cause=Cause.REFUSED, detail="connection refused")
    assert facts(Evidence("a", login, places=("nodes.txt:3",), slots=8)) == {
        ListingFacts: ListingFacts(("nodes.txt:3",), 8),
        LoginFacts: LoginFacts(login),
        IdentityFacts: Unread("not reached (refused)"),
    }


def test_a_node_that_was_reached_says_who_it_is() -> None:
    greeting = Greeting("gpu1", "boot", "net:[1]", 0, "/usr/bin/python3")
    login = Login(reached=True)
    assert facts(Evidence("a", login, greeting)) == {
        ListingFacts: ListingFacts(()),
        LoginFacts: LoginFacts(login),
        IdentityFacts: IdentityFacts("gpu1", "boot", "net:[1]", 0),
    }


def test_a_host_name_that_no_terminal_should_get_is_not_known() -> None:
    for name in ("gpu1\x1b[2J", "gpu\u20281", "gpu1\n"):
        read = facts(Evidence("a", Login(reached=True), Greeting(name, "boot", "net:[1]", 0)))[IdentityFacts]
        assert read == IdentityFacts("", "boot", "net:[1]", 0)


def test_noise_is_cleaned_for_a_terminal_and_cut() -> None:
    noise = "Welcome\x1b[31m!\n\n" + "".join(f"line {number}\n" for number in range(1000)) + "x" * 10000
    login = facts_of(Evidence("a", Login(reached=True), Greeting(noise=noise)), (LoginFacts,))[LoginFacts]
    assert login == LoginFacts(Login(reached=True), "Welcome?[31m!\nline 0\nline 1\nline 2")
