"""node[01-16] to names and back."""

from __future__ import annotations

import time

import pytest
from ncheck.hostlist import fold, unfold


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node07", ("node07",)),
        ("node[01-03,20]", ("node01", "node02", "node03", "node20")),
        ("node[1-10/4].ib", ("node1.ib", "node5.ib", "node9.ib")),
        ("rack[1-2]n[1-2]", ("rack1n1", "rack1n2", "rack2n1", "rack2n2")),
        ("10.0.0.[1-2]", ("10.0.0.1", "10.0.0.2")),
        ("login, node[1,3] ,gpu", ("login", "node1", "node3", "gpu")),
        ("a,a,b", ("a", "b")),
        ("fe80::1%eth0", ("fe80::1%eth0",)),
        ("::ffff:10.0.0.1", ("::ffff:10.0.0.1",)),
    ],
)
def test_a_list_stands_for_these_names_in_this_order(text: str, names: tuple[str, ...]) -> None:
    assert unfold(text) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-10000000]", "'n[1-10000000]' expands to more than 65536 hosts"),
        ("a[1-300]b[1-300]", "'a[1-300]b[1-300]' expands to more than 65536 hosts"),
        ("n[01-100]", "the range 01-100 mixes widths; write 001-100"),
        ("n[16-1]", "the range 16-1 is reversed; write 1-16"),
        ("n[1-3", "'n[1-3' is not a host range; write it as node[01-16,20]"),
        ("n[]", "'n[]' is not a host range; write it as node[01-16,20]"),
        ("n[1-2][3-4]", "'n[1-2][3-4]' is not a host range; write it as node[01-16,20]"),
        ("n[1-99999999999]", "[1-99999999999] is not a range; write it as [01-16,20]"),
        ("n[1,,2]", "[1,,2] is not a range; write it as [01-16,20]"),
        ("a,,b", "a host name is missing before or after a comma"),
        ("", "a host name is missing before or after a comma"),
    ],
)
def test_a_range_that_cannot_be_meant_is_told(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the whole message is asserted
        unfold(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["@all", "@@", "a!b", "a&b", "a^b", "n%s", "a;reboot", "$(id)", "`id`", "a b", "-oProxyCommand=id", "..",
             "a\x1b[31m", "a\nb", "nöde", "a|b", "*", "x" * 300, "fe80:::1", "1::2::3", "[", "]", "n[@all]"],
)  # fmt: skip
def test_nothing_but_host_names_reaches_the_node_sets(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  whatever it says, it fits a terminal
        unfold(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 160


def test_ten_thousand_hosts_are_quick() -> None:
    began = time.process_time()
    assert len(unfold("node[00001-10000]")) == 10000
    assert time.process_time() - began < 2  # a tenth of it, unless something grows with the square


def test_names_fold_in_their_natural_order_whatever_order_they_come_in() -> None:
    names = ["node10", "login", "node2", "node1", "node2"]
    assert fold(names) == fold(reversed(names)) == "login,node[1-2,10]"


def test_addresses_fold_to_what_unfolds_again() -> None:
    names = ("10.0.0.1", "10.0.0.2", "10.0.1.1", "fe80::1", "fe80::2")
    assert fold(names) == "10.0.0.[1-2],10.0.1.1,fe80::1,fe80::2"
    assert unfold(fold(names)) == names


def test_what_is_no_host_name_is_listed_as_it_is() -> None:
    assert fold(["n1", "n2", "@all", "n[9]"]) == "n[1-2],@all,n[9]"


def test_nothing_folds_to_nothing() -> None:
    assert fold([]) == ""
