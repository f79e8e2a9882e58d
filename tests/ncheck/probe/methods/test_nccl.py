"""Which network NCCL is pinned to, and identifiers that lead elsewhere than to the node that gave them: nobody is made
to connect there.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Mapping
from typing import Any

import pytest
from ncheck.facts.infiniband import EFA, HcaPort, InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPlugin, NetPluginFacts
from ncheck.model.fact import Absent

from tests.ncheck.probe.driven import Driven, meets

OWN = {"gpu01": "10.20.0.11", "gpu02": "10.20.0.12", "gpu03": "10.20.0.13", "gpu04": "10.20.0.14"}
FAMILY_V4, FAMILY_V6 = struct.pack("<H", 2), struct.pack("<H", 10)


def v4(address: str, magic: bytes = b"magic!!!") -> str:
    return (magic + FAMILY_V4 + b"\x9c\x40" + socket.inet_aton(address)).hex().ljust(256, "0")


def v6(address: str) -> str:
    raw = b"magic!!!" + FAMILY_V6 + b"\x9c\x40" + bytes(4) + socket.inet_pton(socket.AF_INET6, address)
    return raw.hex().ljust(256, "0")


def gives(one: str) -> Any:
    """Return a cluster in which gpu02 gives this identifier for every step."""

    def answer(arguments: Mapping[str, Any]) -> dict[str, Any]:
        mine = one if arguments["node"] == "gpu02" else v4(OWN[arguments["node"]])
        return {**meets(arguments), "ids": [mine] * arguments["count"]}

    return answer


def met_by(one: str, driven: Driven) -> list[tuple[str, ...]]:
    return [tuple(asked["group"]) for asked in driven.asked if asked["id"] == one and len(asked["group"]) > 1]


@pytest.mark.parametrize("one", [v4("203.0.113.7"), v6("2001:db8::7"), v4("127.0.0.1"), v4("169.254.169.254")])
def test_nobody_is_made_to_connect_to_an_address_that_is_not_the_nodes_own(one: str) -> None:
    driven = Driven(meeting=gives(one)).run()
    assert met_by(one, driven) == []
    failed = [result.failure.words for result in driven.probed("gpu02").results if result.failure]
    assert [re.sub(r"address [0-9a-f.:]+,", "address X,", words) for words in failed[:1]] in (
        [], ["its NCCL identifier contains the address X, which is not its own"],
    )  # fmt: skip


def test_whom_a_bad_identifier_leads_the_step_is_that_nodes_failure_alone() -> None:
    one = v4("203.0.113.7")
    driven = Driven(meeting=lambda arguments: {**meets(arguments), "ids": [one] * arguments["count"]}).run()
    assert met_by(one, driven) == []
    words = {result.failure.words for node in OWN for result in driven.probed(node).results if result.failure}
    assert words == {"its NCCL identifier contains the address 203.0.113.7, which is not its own"}


@pytest.mark.parametrize("one", [v4(OWN["gpu02"]), "00" * 128, "ff" * 128])
def test_an_own_address_and_what_nccl_itself_refuses_are_taken(one: str) -> None:
    assert met_by(one, Driven(meeting=gives(one)).run())


def test_an_older_library_has_the_address_first() -> None:
    loaded: dict[type[object], object] = {LoadedNcclFacts: LoadedNcclFacts("2.12.10", "/lib/x")}
    old = dict.fromkeys(OWN, loaded)
    strange, own = (v4(address, b"")[:256] for address in ("203.0.113.7", OWN["gpu02"]))
    assert met_by(strange, Driven(meeting=gives(strange), facts=old).run()) == []
    assert met_by(own, Driven(meeting=gives(own), facts=old).run())


def pinned(**facts: object) -> set[str]:
    """Return NCCL_NET of the steps between nodes; `facts` are those of every node by name."""
    known = {fact: facts[fact.__name__] for fact in (InfinibandFacts, NetPluginFacts) if fact.__name__ in facts}
    asked = Driven(facts=dict.fromkeys(OWN, known)).run().asked  # type: ignore[arg-type]
    return {one["net"] for one in asked if one.get("net")}


def test_nccl_is_pinned_to_the_network_that_it_uses_and_never_away_from_a_plug_in() -> None:
    efa = InfinibandFacts((HcaPort("rdmap0s6", 1, "Active", "LinkUp", 100.0, EFA),), "sysfs")
    none = Absent("no InfiniBand or RoCE device")
    ofi, tcpx, sharp = (
        NetPluginFacts(NetPlugin("libnccl-net.so", "/x/libnccl-net.so", kind))
        for kind in ("aws-ofi-nccl", "GPUDirect-TCPX", "nccl-rdma-sharp")
    )
    assert pinned() == {"IB"}
    assert pinned(NetPluginFacts=sharp) == {"IB"}
    assert pinned(InfinibandFacts=none) == {"Socket"}
    assert pinned(InfinibandFacts=none, NetPluginFacts=tcpx) == set()
    assert pinned(InfinibandFacts=efa, NetPluginFacts=ofi) == set()
    assert pinned(InfinibandFacts=efa) == set()
