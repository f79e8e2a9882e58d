"""Which faults of a network the checks still find where each node dials only some others; nothing is dialled for real.

Nodes of two networks get the questions that ncheck asks, and answer them as nodes with one planted fault would. The
checks judge these answers. The bench ends with an error where a fault that is promised is not found, or a node is
blamed that has no part in it. With --write the figures go to docs/scale.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from fanout import ROOT, write

if TYPE_CHECKING:
    from ncheck.facts.nics import NicFacts
    from ncheck.model.check import Check
    from ncheck.model.cluster import Cluster, Facts
    from ncheck.model.evidence import Answer, JsonValue

MARK = ("<!-- mesh-sample: written by bench/mesh_sample.py --write -->", "<!-- end of mesh-sample -->")
WIRES = 2
RACK = 16
SEGMENTS = 181  # of 256 KiB, each way
ALONE = 8  # links of one subnet that a node measures again
Row = list["JsonValue"]  # node, source, address, port, subnet, job: as the agent makes them of its question
Fails = Callable[[str, str, str], str]  # source node, target node, subnet: the cause, "" if the link works


def works(_source: str, _target: str, _subnet: str) -> str:
    return ""


@dataclass(frozen=True)
class Fault:
    """One planted fault. `named` are the nodes that may be named, and `must` must all be.

    `loss`: the shares of packets that are lost to and from a node. `gone`: nodes that are not there.
    """

    fails: Fails = works
    named: frozenset[str] = frozenset()
    must: frozenset[str] = frozenset()
    loss: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    same_address: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()


def subnet_of(wire: int) -> str:
    return f"10.{wire}.0.0/16"


def ip(wire: int, number: int) -> str:
    return f"10.{wire}.{number // 250}.{number % 250 + 1}"


def _one(names: list[str], chance: Random) -> tuple[str, frozenset[str]]:
    node = chance.choice(names)
    return node, frozenset((node,))


def deaf(names: list[str], chance: Random) -> Fault:
    node, alone = _one(names, chance)
    return Fault(lambda _source, target, _subnet: "filtered" if target == node else "", alone, alone)


def mute(names: list[str], chance: Random) -> Fault:
    node, alone = _one(names, chance)
    return Fault(lambda source, _target, _subnet: "unroutable" if source == node else "", alone, alone)


def bad_nic(names: list[str], chance: Random) -> Fault:
    (node, alone), bad = _one(names, chance), subnet_of(chance.randrange(WIRES))
    return Fault(
        lambda source, target, subnet: "filtered" if subnet == bad and node in (source, target) else "", alone, alone
    )


def large_lost(names: list[str], chance: Random) -> Fault:
    """Let a node send packets that are larger than the network carries."""
    node, alone = _one(names, chance)
    return Fault(
        lambda source, target, _: "large-lost" if source == node else "large-lost-back" if target == node else "",
        alone, alone,
    )  # fmt: skip


def lossy(names: list[str], chance: Random) -> Fault:
    node, alone = _one(names, chance)
    shares = chance.choice(((0.06, 0.06), (0.1, 0.0), (0.0, 0.1)))
    return Fault(named=alone, must=alone, loss={node: shares})


def far_dead(names: list[str], chance: Random) -> Fault:
    """Let a node reach its rack and nothing else."""
    node, alone = _one(names, chance)
    rack = _rack(names, names.index(node) // RACK)
    return Fault(
        lambda source, target, _: "filtered" if node in (source, target) and not {source, target} <= rack else "",
        alone, alone,
    )  # fmt: skip


def _rack(names: list[str], number: int) -> frozenset[str]:
    return frozenset(names[RACK * number : RACK * (number + 1)])


def rack_cut_off(names: list[str], chance: Random) -> Fault:
    """Cut off a rack of any size, wherever in the list it begins."""
    size = chance.choice((8, 16, 24, 40, 72))
    first = chance.randrange(len(names) - size)
    rack = frozenset(names[first : first + size])
    return Fault(lambda source, target, _: "filtered" if (source in rack) != (target in rack) else "", rack, rack)


def halves(names: list[str], chance: Random) -> Fault:
    """Take away the route between two halves: of the list, or by chance."""
    half = frozenset(chance.choice((names, chance.sample(names, len(names))))[: len(names) // 2])
    every = frozenset(names)
    return Fault(lambda source, target, _: "unroutable" if (source in half) != (target in half) else "", every, every)


def between_racks(names: list[str], chance: Random) -> Fault:
    one, other = (_rack(names, number) for number in chance.sample(range(len(names) // RACK), 2))
    ways = ((one, other), (other, one))
    return Fault(
        lambda source, target, _: "filtered" if any(source in near and target in far for near, far in ways) else "",
        one | other,
    )


def one_pair(names: list[str], chance: Random) -> Fault:
    pair = frozenset(chance.sample(names, 2))
    return Fault(lambda source, target, _: "filtered" if pair == {source, target} else "", pair, pair)


def same_address(names: list[str], chance: Random) -> Fault:
    pair = tuple(chance.sample(names, 2))
    return Fault(named=frozenset(pair), must=frozenset(pair), same_address=pair)


def stranger(names: list[str], chance: Random) -> Fault:
    """Let a machine outside the list have a node's address, and answer some of the others in its place."""
    node, alone = _one(names, chance)
    deceived, first = frozenset(chance.sample(names, int(chance.uniform(0.3, 1.0) * len(names)))), subnet_of(0)
    return Fault(
        lambda source, target, subnet: "stranger" if (target, subnet) == (node, first) and source in deceived else "",
        alone, alone,
    )  # fmt: skip


def healthy(names: list[str], chance: Random) -> Fault:
    """Leave out one node in a hundred, and break nothing."""
    return Fault(gone=frozenset(chance.sample(names, len(names) // 100)))


@dataclass(frozen=True)
class Kind:
    """A kind of fault: `found`, the least share of the clusters in which it must be; None if chance decides.

    `many`: so many times as many clusters as of the others.
    """

    name: str
    plant: Callable[[list[str], Random], Fault]
    found: float | None = 1.0
    many: int = 1


KINDS = (
    Kind("none, and 1 % of the nodes away", healthy, None),
    Kind("a node that nobody reaches", deaf),
    Kind("a node that reaches nobody", mute),
    Kind("a node without one of its two networks", bad_nic),
    Kind("a node that reaches its rack alone", far_dead),
    Kind("a node that loses large packets", large_lost),
    Kind("a node that loses 6 to 10 % of its packets", lossy),
    Kind("8 to 72 neighbours cut off from the rest", rack_cut_off),
    Kind("two halves without a route", halves),
    Kind("a firewall between two racks of 16", between_racks),
    Kind("one address on two nodes", same_address),
    Kind("a machine outside has a node's address", stranger),
    Kind("one blocked pair", one_pair, None, many=10),
)


@dataclass(frozen=True)
class Tally:
    """Clusters with one kind of fault: in how many it was found, and in how many a node without part in it was named.

    `unsure`: in how many a check could not decide. `seconds`: CPU of the checks for one cluster. `dialled`: the others
    that each node dialled.
    """

    nodes: int
    dialled: int
    kind: Kind
    runs: int
    found: int
    wrong: int
    unsure: int
    seconds: float


class Mesh:
    """Simulated nodes, with the questions that ncheck asks them, and what is known of them without a fault."""

    def __init__(self, count: int) -> None:
        self.names = [f"n{number:04}" for number in range(count)]
        self.cluster = self._cluster({})
        self.questions = self._questions(self.cluster)
        self.facts = self._facts(self.cluster, self.questions, Fault(), Random(0))  # noqa: S311  nothing is random here

    def _nics(self, number: int, same: Mapping[int, int]) -> NicFacts:
        from ncheck.facts.nics import Address, Interface, NicFacts
        from ncheck.parse.interface_names import Kind as Nic

        def wire(place: int) -> Interface:
            held = ip(place, same.get(number, number) if place == 0 else number)
            return Interface(
                f"eth{place}", 2 + place, Nic.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address(held, 16),),
                default_route=place == 0,
            )  # fmt: skip

        return NicFacts(tuple(wire(place) for place in range(WIRES)))

    def _cluster(self, same: Mapping[int, int]) -> Cluster:
        from ncheck.facts.environment import EnvironmentFacts
        from ncheck.facts.infiniband import InfinibandFacts
        from ncheck.facts.links import ListenFacts
        from ncheck.facts.login import IdentityFacts, LoginFacts
        from ncheck.facts.nccl import LoadedNcclFacts
        from ncheck.facts.nccl_pick import NcclPickFacts
        from ncheck.facts.nics import NicFacts
        from ncheck.facts.run import JobFacts
        from ncheck.model.cluster import Cluster
        from ncheck.model.evidence import Login
        from ncheck.model.fact import Absent
        from ncheck.model.node import Node

        alike: Facts = {
            LoginFacts: LoginFacts(Login(reached=True)), EnvironmentFacts: EnvironmentFacts({}, {}),
            LoadedNcclFacts: LoadedNcclFacts("2.28.3", "/usr/lib/libnccl.so.2"), NcclPickFacts: Absent("not asked"),
            InfinibandFacts: Absent("no device"), JobFacts: JobFacts(),
        }  # fmt: skip
        known = {
            name: {
                **alike,
                IdentityFacts: IdentityFacts(name, name, "net:[1]", 0),
                NicFacts: (nics := self._nics(number, same)),
                ListenFacts: ListenFacts({nic.addresses[0].ip: 40000 for nic in nics.interfaces}),
            }
            for number, name in enumerate(self.names)
        }
        return Cluster(tuple(map(Node, self.names)), known, token="0f3a")  # noqa: S106  no secret

    def _questions(self, cluster: Cluster) -> dict[str, Answer]:
        from ncheck.facts.links import ask_connect
        from ncheck.model.evidence import Answer
        from ncheck.settings import Settings

        asked = ask_connect(cluster, Settings(), 40.0)
        return {name: one for name, (one,) in asked.items() if isinstance(one, Answer)}

    def _facts(
        self, cluster: Cluster, questions: Mapping[str, Answer], fault: Fault, chance: Random
    ) -> dict[str, Facts]:
        """Return what is known of all nodes, with the links as ncheck reads them from the nodes' answers."""
        from ncheck.facts.links import CONNECT, LinkFacts, links
        from ncheck.model.evidence import Evidence, Login, Reply, Status

        found = {}
        for name in cluster.names:
            facts = cluster.known[name]
            rows = list(_rows(questions[name]))
            touched = any(fault.fails(name, str(row[0]), str(row[4])) for row in rows) or any(
                name in fault.loss or row[0] in fault.loss for row in rows
            )
            if cluster is self.cluster and not touched and hasattr(self, "facts"):
                found[name] = self.facts[name]
                continue
            reply = Reply(
                Status.OK, value=answer(name, rows, fault, chance), asked=(questions[name].kept or {}).get(name)
            )
            held = links(Evidence(name, Login(reached=True), replies={CONNECT.key: reply}))
            found[name] = {**facts, LinkFacts: held}
        return found

    def with_fault(self, fault: Fault, chance: Random) -> Cluster:
        from ncheck.model.cluster import Cluster

        cluster, questions = self.cluster, self.questions
        if fault.gone:
            cluster = cluster.only(set(self.names) - fault.gone)
            questions = self._questions(cluster)
        if fault.same_address:
            one, other = map(self.names.index, fault.same_address)
            cluster = self._cluster({other: one})
            questions = self._questions(cluster)
        return Cluster(cluster.nodes, self._facts(cluster, questions, fault, chance))


def _rows(question: Answer) -> Iterator[Row]:
    from ncheck.agent.answers.connect import rows

    yield from rows(question.arguments)


def answer(name: str, rows: list[Row], fault: Fault, chance: Random) -> JsonValue:
    """Return what the agent of a node would answer."""
    reaches: dict[tuple[JsonValue, JsonValue], list[int]] = {}
    broken, before, lossy = [], [], {}
    for target, source, address, _port, subnet, _job in rows:
        ends = {"source": source, "target": target, "address": address, "subnet": subnet}
        cause = fault.fails(name, str(target), str(subnet))
        if cause:
            broken.append({**ends, "cause": cause, "detail": "", "port": 0})
        counts = reaches.setdefault((subnet, source), [0, 0])
        counts[0] += 1
        counts[1] += not cause
        if not cause and (loss := _loss(name, str(target), fault, chance)):
            before.append({**ends, **loss, "alone": False})
            lossy.setdefault(subnet, []).append((ends, str(target)))
    alone = [
        {**ends, **loss, "alone": True}
        for links in lossy.values() for ends, target in links[:ALONE] if (loss := _loss(name, target, fault, chance))
    ]  # fmt: skip
    return {
        "reaches": [
            {"subnet": subnet, "source": source, "tried": tried, "reached": reached}
            for (subnet, source), (tried, reached) in reaches.items()
        ],
        "broken": broken, "tried": sorted({str(row[0]) for row in rows}), "lossy": [*before, *alone], "late": [],
        "counted": True,
    }  # fmt: skip


def _loss(name: str, target: str, fault: Fault, chance: Random) -> dict[str, JsonValue]:
    """Return the segments that were lost and sent each way; {} if none was lost."""
    to_name, from_name = fault.loss.get(name, (0.0, 0.0))
    to_target, from_target = fault.loss.get(target, (0.0, 0.0))
    there, back = ([_binomial(share, chance), SEGMENTS] for share in (from_name + to_target, from_target + to_name))
    return {"there": there, "back": back} if there[0] or back[0] else {}


def _binomial(share: float, chance: Random) -> int:
    return sum(chance.random() < share for _ in range(SEGMENTS)) if share else 0


def checks() -> list[Check]:
    """Return the checks that read the links, and the one of addresses."""
    from ncheck.facts.links import LinkFacts
    from ncheck.steps.registry import load_checks

    chosen = load_checks().select(())
    return [one for one in chosen if LinkFacts in one.reads or one.name == "address-on-two-nodes"]


def tally(mesh: Mesh, kind: Kind, runs: int, judged_by: list[Check]) -> Tally:
    """Plant so many faults of a kind, one in each cluster, and judge them."""
    from ncheck.model.finding import Outcome
    from ncheck.steps.judge import judge

    found = wrong = unsure = judged = 0
    spent = 0.0
    for seed in range(runs * kind.many):
        chance = Random(f"{kind.name} {len(mesh.names)} {seed}")  # noqa: S311  the same faults in every run
        fault = kind.plant(mesh.names, chance)
        cluster = mesh.with_fault(fault, chance)
        if kind.found is None and seed and all(facts is mesh.facts[name] for name, facts in cluster.known.items()):
            continue  # no node saw anything of it
        judged += 1
        began = time.process_time()
        said = judge(judged_by, cluster)
        spent += time.process_time() - began
        named = {node for finding in said.findings for node in finding.nodes}
        found += bool(named & fault.named) and fault.must <= named
        wrong += not named <= fault.named
        unsure += any(one.outcome in (Outcome.UNKNOWN, Outcome.CRASHED) for one in said.joined)
    dialled = sorted(len({row[0] for row in _rows(question)}) for question in mesh.questions.values())
    return Tally(
        len(mesh.names), dialled[len(dialled) // 2], kind, runs * kind.many, found, wrong, unsure, spent / judged
    )  # fmt: skip


def judge_tallies(tallies: list[Tally]) -> None:
    """End the bench with an error where the sample does not hold what is promised of it."""
    for one in tallies:
        if one.wrong or one.unsure:
            sys.exit(f"bench: {one.nodes} nodes, {one.kind.name}: {one.wrong} wrong, {one.unsure} unsure")
        if one.kind.found is not None and one.found < one.kind.found * one.runs:
            sys.exit(f"bench: {one.nodes} nodes, {one.kind.name}: found in {one.found} of {one.runs}")


def section(tallies: list[Tally]) -> str:
    """Return the figures, in Markdown."""
    sizes = {one.nodes: one.dialled for one in tallies}
    by_kind: dict[str, list[Tally]] = {}
    for one in tallies:
        by_kind.setdefault(one.kind.name, []).append(one)
    rows = [
        f"| {name} | {' | '.join('-' if one.kind.plant is healthy else f'{one.found} of {one.runs}' for one in same)} "
        f"| {sum(one.wrong for one in same)} of {sum(one.runs for one in same)} |"
        for name, same in by_kind.items()
    ]
    heads = " | ".join(f"{nodes:,} nodes" for nodes in sizes)
    shares = ", ".join(f"{dialled} of {nodes - 1:,}" for nodes, dialled in sizes.items())
    slowest = max(one.seconds for one in tallies)
    text = (
        f"Simulated clusters with two networks and one fault each, by chance. Each node dials {shares} others. Found: "
        "the checks name the nodes at fault. Wrong: they name a node without part in it. No check was undecided. The "
        f"checks took at most {slowest:.1f} s of CPU for a cluster, in the mean of a kind."
    )
    head, line = f"| fault | found: {heads} | wrong |", f"|---|{'---|' * len(sizes)}---|"
    return "\n".join([text, "", head, line, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="512:60,1024:20,4096:5", help="sizes, each with its number of clusters")
    parser.add_argument("--only", default="", help="kinds of faults whose name holds this")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/scale.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    judged_by, tallies = checks(), []
    for size, runs in (map(int, each.split(":")) for each in asked.nodes.split(",")):
        mesh = Mesh(size)
        for kind in KINDS:
            if asked.only in kind.name:
                tallies.append(tally(mesh, kind, runs, judged_by))
                print(tallies[-1], flush=True)
    print("", section(tallies), sep="\n")
    judge_tallies(tallies)
    if asked.write:
        write(section(tallies), ROOT / "docs" / "scale.md", MARK)


if __name__ == "__main__":
    main()
