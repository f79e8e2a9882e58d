"""To which addresses each node is asked for a route, and what a kernel answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.facts.routes import ROUTES, ask_routes
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Answer, Login
from ncheck.model.fact import Absent
from ncheck.model.node import Node
from ncheck.model.phase import NotAsked
from ncheck.parse.interface_names import Kind
from ncheck.settings import Settings

LOGIN = LoginFacts(Login(reached=True))
ASK = """
import json, sys
from ncheck.agent.answers.routes import answer
print(json.dumps(answer(None, {"addresses": ["10.9.0.2"]}, 5.0)))
"""


def node(*ips: str) -> Facts:
    """Return a node with one interface an address; NCCL picks the first of them."""
    nics = tuple(
        Interface(f"eth{n}", n + 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address(ip, 24),))
        for n, ip in enumerate(ips)
    )
    nccl = {LoadedNcclFacts: LoadedNcclFacts("2.28.3", "/x/libnccl.so.2"), NcclPickFacts: Absent("not asked")}
    return {LoginFacts: LOGIN, NicFacts: NicFacts(nics), EnvironmentFacts: EnvironmentFacts({}, {}), **nccl}


def asked(nodes: Mapping[str, Facts]) -> dict[str, object]:
    """Return what each node is asked, or why it is not."""
    cluster = Cluster(tuple(map(Node, nodes)), nodes)
    found = {name: question for name, (question,) in ask_routes(cluster, Settings(), 20.0).items()}
    return {
        name: one.arguments if isinstance(one, Answer) else one.reason if isinstance(one, NotAsked) else one
        for name, one in found.items()
    }


def test_a_node_is_asked_about_picks_that_lie_in_no_subnet_of_its_own() -> None:
    nodes = {"a": node("10.1.0.1"), "b": node("10.9.0.2", "10.1.0.2")}
    assert asked(nodes) == {
        "a": {"addresses": ["10.9.0.2"]},
        "b": "the addresses that NCCL uses on the other nodes are in subnets of this node",
    }


def test_a_kernel_without_a_route_says_so_and_nothing_is_sent() -> None:
    told = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", ASK], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(told.stdout)["routes"]["10.9.0.2"] == "Network is unreachable"
    assert ROUTES.key == "answer:routes"
