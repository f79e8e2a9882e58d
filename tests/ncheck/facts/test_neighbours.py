"""The ARP table: read as the kernel prints it, and refused if it is something else."""

from __future__ import annotations

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.neighbours import ARP, Neighbour, NeighbourFacts
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Unread

TABLE = """\
IP address       HW type     Flags       HW address            Mask     Device
10.80.0.3        0x1         0x2         d2:cd:80:56:8a:c2     *        eth0
10.80.0.4        0x1         0x0         00:00:00:00:00:00     *        eth0
10.80.0.5        0x1         0x6         02:00:00:00:00:99     *        bond0.100
10.81.0.5        0x20        0x2         80:00:02:08:fe:80:00:00:00:00     *        ib0
"""


def read(reply: Reply) -> object:
    return facts_of(Evidence("gpu01", Login(reached=True), replies={ARP.key: reply}), [NeighbourFacts])[NeighbourFacts]


def test_who_answered_is_read_and_who_did_not_is_left_out() -> None:
    assert read(Reply(Status.OK, value=TABLE)) == NeighbourFacts(
        (Neighbour("10.80.0.3", "d2:cd:80:56:8a:c2", "eth0"), Neighbour("10.80.0.5", "02:00:00:00:00:99", "bond0.100"))
    )


@pytest.mark.parametrize("value", [None, "", "x", 7, [], TABLE.replace("10.80.0.3", "$(x)"), TABLE + "10.0.0.1 0x1\n"])
def test_what_is_no_table_is_no_fact(value: JsonValue) -> None:
    assert isinstance(read(Reply(Status.OK, value=value)), Unread)


def test_a_node_without_the_file_is_unread() -> None:
    assert isinstance(read(Reply(Status.MISSING)), Unread)
