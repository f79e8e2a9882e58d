"""/proc/net/bonding as the driver writes it, in its modes, for root and for others."""

from __future__ import annotations

import pytest
from ncheck.facts.bonds import Bond, Slave, bond_in

BACKUP = """\
Ethernet Channel Bonding Driver: v5.15.0-91-generic

Bonding Mode: fault-tolerance (active-backup)
Primary Slave: None
Currently Active Slave: eno1
MII Status: up
MII Polling Interval (ms): 100
Up Delay (ms): 0
Down Delay (ms): 0
Peer Notification Delay (ms): 0

Slave Interface: eno1
MII Status: up
Speed: 25000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: b8:59:9f:00:00:01
Slave queue ID: 0

Slave Interface: eno2
MII Status: down
Speed: Unknown
Duplex: Unknown
Link Failure Count: 3
Permanent HW addr: b8:59:9f:00:00:02
Slave queue ID: 0
"""

LACP = """\
Ethernet Channel Bonding Driver: v6.1.0-18-amd64

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer3+4 (1)
MII Status: up
MII Polling Interval (ms): 100
Up Delay (ms): 0
Down Delay (ms): 0
Peer Notification Delay (ms): 0

802.3ad info
LACP active: on
LACP rate: fast
Min links: 0
Aggregator selection policy (ad_select): stable
{root}
Slave Interface: enp65s0f0
MII Status: up
Speed: 100000 Mbps
Duplex: full
Link Failure Count: 1
Permanent HW addr: 0c:42:a1:00:00:0a
Slave queue ID: 0
Aggregator ID: 1
Actor Churn State: none
Partner Churn State: none
Actor Churned Count: 0
Partner Churned Count: 0
details actor lacp pdu:
    system priority: 65535
    port key: 21
    port state: 63
details partner lacp pdu:
    system priority: 127
    oper key: 5
    port state: 63

Slave Interface: enp65s0f1
MII Status: up
Speed: 100000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: 0c:42:a1:00:00:0b
Slave queue ID: 0
Aggregator ID: 2
Actor Churn State: churned
Partner Churn State: churned
"""

FOR_ROOT = """\
System priority: 65535
System MAC address: 0c:42:a1:00:00:0a
Active Aggregator Info:
\tAggregator ID: 1
\tNumber of ports: 1
\tActor Key: 21
\tPartner Key: 5
\tPartner Mac Address: 44:38:39:ff:00:01
"""


def test_an_active_backup_bond_names_the_slave_that_carries_all() -> None:
    assert bond_in("bond0", BACKUP) == Bond(
        "bond0", "fault-tolerance (active-backup)", up=True, active="eno1",
        slaves=(Slave("eno1", up=True, speed=25000), Slave("eno2", up=False)),
    )  # fmt: skip


def test_a_bond_whose_slaves_are_all_down_has_no_active_one() -> None:
    text = BACKUP.replace("Currently Active Slave: eno1", "Currently Active Slave: None")
    assert bond_in("bond0", text.replace("MII Status: up", "MII Status: down")) == Bond(
        "bond0", "fault-tolerance (active-backup)", up=False,
        slaves=(Slave("eno1", up=False, speed=25000), Slave("eno2", up=False)),
    )  # fmt: skip


@pytest.mark.parametrize(("root", "aggregator"), [(FOR_ROOT, 1), ("", None)])
def test_a_bond_of_lacp_tells_the_aggregators_of_its_slaves_to_all_and_its_own_to_root(
    root: str, aggregator: int | None
) -> None:
    slaves = (
        Slave("enp65s0f0", up=True, speed=100000, aggregator=1),
        Slave("enp65s0f1", up=True, speed=100000, aggregator=2),
    )
    assert bond_in("bond1", LACP.format(root=root)) == Bond(
        "bond1", "IEEE 802.3ad Dynamic link aggregation", up=True, slaves=slaves, aggregator=aggregator
    )


@pytest.mark.parametrize("text", ["", "\n", "MII Status: up\n", "Slave Interface: eno1\nMII Status: up\n"])
def test_text_that_is_not_a_bonding_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a file of the bonding driver"):
        bond_in("bond0", text)
