"""Which of the listed nodes are one machine, and which are only not known to be several."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import doubles, machines


def who(boot_id: str, network_namespace: str = "net:[1]") -> IdentityFacts:
    return IdentityFacts("n", boot_id, network_namespace, 0)


def test_a_machine_under_three_names_is_the_first_of_them() -> None:
    identities = {"a": who("one"), "b": who("two"), "c": who("one"), "d": who("one")}
    assert doubles("abcd", identities) == {"c": "a", "d": "a"}
    nics = {name: NicFacts(()) for name in "cabd"}
    assert list(machines(nics, identities)) == ["c", "b"]


def test_containers_of_one_machine_are_machines_of_their_own() -> None:
    assert doubles("ab", {"a": who("one"), "b": who("one", "net:[2]")}) == {}


def test_nodes_of_which_it_is_not_known_are_not_taken_for_one() -> None:
    assert doubles("abcd", {"a": who(""), "b": who(""), "c": who("one", ""), "d": who("one", "")}) == {}
    assert doubles("ab", {}) == {}
