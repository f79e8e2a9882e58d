"""What NCCL picks under the plan's variables: the plan is tried on NCCL itself before anybody relies on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ncheck.facts.answers import answer_of
from ncheck.facts.definition import TRYING_PLAN, Fact, no_answer
from ncheck.facts.environment import IFNAME, is_variable
from ncheck.facts.nccl_pick import Asked, NcclPickFacts, PickAnswer, answered
from ncheck.facts.nics import NicFacts
from ncheck.facts.plan_facts import PLAN_FACTS
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read, Unread
from ncheck.model.phase import NotAsked, Questions

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import JsonValue
    from ncheck.plan.advice import Advice
    from ncheck.plan.networks import Network
    from ncheck.settings import Settings


@dataclass(frozen=True)
class PlannedPickFacts:
    """What NCCL picks under the plan's `variables`; `interfaces` are those that the plan means by them."""

    pick: NcclPickFacts
    variables: Mapping[str, str] = field(default_factory=dict)
    interfaces: tuple[str, ...] = ()


PLANNED = Answer("planned-nccl-pick", shape=PickAnswer | Unread)


def planned(evidence: Evidence) -> Read[PlannedPickFacts]:
    """Read what NCCL picks under the plan's variables. Raises ValueError where the node does not say these."""
    if why := no_answer(PLANNED, evidence.reply(PLANNED)):
        return why
    answer = answer_of(PLANNED, evidence)
    picked = answered(answer)
    if isinstance(picked, Unread):
        return picked
    asked: Asked = answer.asked
    if asked.variables is None or asked.interfaces is None:
        raise ValueError("it does not say what it was asked")
    variables = {name: set_to for name, set_to in asked.variables.items() if is_variable(name)}
    return PlannedPickFacts(picked, variables, asked.interfaces)


_LONGEST = 10.0  # seconds to load NCCL and ask it once more


def exempt_alone(cluster: Cluster, _settings: Settings) -> dict[str, str]:
    """Return the nodes on which no plan is tried: a single node needs none."""
    alone = len(cluster.nodes) == 1
    return {node.name: "a single node needs no network between nodes" for node in cluster.nodes if alone}


def ask_pick(cluster: Cluster, _settings: Settings, left: float) -> Questions:
    """Make the plan from what is known so far, and ask every node on which NCCL has answered before."""
    from ncheck.plan.variables import advise

    advice = advise(cluster)
    asked_before, nics = cluster.connected_facts(NcclPickFacts), cluster.connected_facts(NicFacts)
    why = NotAsked(PLANNED, "NCCL could not be asked here which interface it picks")
    return {
        node.name: (_question(advice, node.name, nics.get(node.name), left) if node.name in asked_before else why,)
        for node in cluster.connected
    }


def _question(advice: Advice, node: str, nics: NicFacts | None, left: float) -> Answer | NotAsked:
    settings = {**advice.env, **advice.per_node.get(node, {})}
    set_to = {name: setting.value for name, setting in settings.items() if name.startswith("NCCL_")}
    variables: dict[str, JsonValue] = {name: value for name, value in set_to.items() if value is not None}
    if not variables or advice.network is None:
        return NotAsked(PLANNED, "the plan sets nothing that NCCL reads")
    meant: list[JsonValue] = [*_meant(advice.network, nics, node, set_to.get(IFNAME) or "")]
    asked: JsonValue = {"variables": variables, "interfaces": meant}
    return replace(PLANNED, arguments=asked, timeout=max(1.0, min(_LONGEST, left - 1.0)))


def _meant(network: Network, nics: NicFacts | None, node: str, value: str) -> Iterator[str]:
    """Yield the interfaces of this node in the plan's network, as far as the value of NCCL_SOCKET_IFNAME names them.

    Of several nodes that are one machine, the network has one.
    """
    from ncheck.network.subnets import subnet_addresses

    named = value.removeprefix("=").split(",") if value.startswith("=") else None
    found = network.members.get(node) or (subnet_addresses(nics) if nics else ())
    names = (address.interface.name for address in found if network.subnet in ("", address.subnet))
    yield from (name for name in dict.fromkeys(names) if named is None or name in named)


FACTS = (
    Fact(
        PlannedPickFacts, (PLANNED,), planned, TRYING_PLAN,
        needs=PLAN_FACTS, questions=ask_pick, exempt=exempt_alone,
    ),
)  # fmt: skip
