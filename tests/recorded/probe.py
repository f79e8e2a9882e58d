"""What the nodes of a recorded cluster told of the probe, from what their links give: a model, no measurement.

One operation takes t = alpha + S/B; the rounds are those that ncheck's own schedule asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from ncheck.hostlist import fold
from ncheck.model.evidence import Evidence, JsonValue, Login, Note, Reply, Status
from ncheck.model.op import Op
from ncheck.probe.facts import MEETING, TASK, ProbeFacts, probed
from ncheck.probe.methods.driver import GIB, KIB, MIB, step_arguments
from ncheck.probe.node_result import Method, Stage, Step
from ncheck.probe.results import Collective, collectives
from ncheck.probe.schedule import pair_rounds, scaling_groups
from ncheck.probe.search import searched

from .host import Hca, Host
from .software import LIBRARIES

SWEEP = (8, 64 * KIB, MIB, 16 * MIB, 256 * MIB, GIB)
LARGE = (MIB, 64 * MIB, GIB)
TIMING: JsonValue = {"warm_ups": 2, "repeats": 5, "iterations": 1}
MOVES = 7  # of each size: warm-ups and repeats
REACHED = 0.96  # of what the links give
RING = 371.0  # GB/s: 18 NVLinks
# GB/s of 8 H100s: NVLS, and what an all-to-all has of a ring
INSIDE = {**dict.fromkeys(Op, RING), Op.ALL_REDUCE: 490.0, Op.ALL_TO_ALL: 0.9 * RING}
# Seconds before anything flows, by stage
ALPHA = {Stage.INSIDE: 3e-5, Stage.PAIR: 6e-5, Stage.SCALING: 1.2e-4, Stage.ALL: 3.5e-4}
CHATTER = 1_900_000  # bytes of ssh and of the ranks' meeting, by the Ethernet NIC


def none_asked() -> dict[str, Reply | Note]:
    """Return the notes of a node on which nothing was to be measured."""
    return dict.fromkeys((TASK.key, MEETING.key), Note("--probe none"))


def measured(
    hosts: tuple[Host, ...], slow: Mapping[str, float] | None = None, left_out: tuple[str, ...] = ()
) -> tuple[Host, ...]:
    """Return the cluster as the probe measured it. `slow` is the share of their NICs' rate that nodes reach.

    `left_out` are nodes that --drop-bad left out when all pairs had met.
    """
    run = _Run({host.name: host for host in hosts}, slow or {})
    run.alone_and_in_pairs()
    run.leave_out(left_out)
    good = tuple(name for name in run.hosts if name not in left_out)
    for group in scaling_groups(good):
        run.each([group], Stage.SCALING, LARGE)
    run.each([good], Stage.ALL, SWEEP)
    return run.ended()


def measured_in(
    hosts: tuple[Host, ...], ops: Sequence[Op], crossing: Mapping[tuple[Op, str, str], float] | None = None
) -> tuple[Host, ...]:
    """Return the cluster as it was measured in these operations. `crossing` is the share of their NICs' rate that an
    operation reaches between two nodes, and so on all nodes.
    """
    run = _Run({host.name: host for host in hosts}, {}, crossing or {})
    for op in ops:
        run.op = op
        run.alone_and_in_pairs()
        run.each([tuple(run.hosts)], Stage.ALL, SWEEP)
    return run.ended()


def answered(replies: Mapping[str, Reply | Note]) -> dict[str, Reply]:
    """Return what the node itself answered."""
    return {key: reply for key, reply in replies.items() if isinstance(reply, Reply)}


@dataclass
class _Run:
    """One probe as it goes on: the replies of each node so far."""

    hosts: Mapping[str, Host]
    slow: Mapping[str, float]
    crossing: Mapping[tuple[Op, str, str], float] = field(default_factory=dict)
    op: Op = Op.ALL_REDUCE
    number: int = 0
    replies: dict[str, dict[str, Reply | Note]] = field(default_factory=dict)

    def each(self, groups: Sequence[tuple[str, ...]], stage: Stage, sizes: tuple[int, ...]) -> None:
        """Run these groups at once."""
        self.number += 1
        for group in groups:
            step = self.step(group, stage, sizes)
            for node in group:
                self.replies.setdefault(node, {})[f"{TASK.key}#{self.number}"] = self.result(step, node)

    def alone_and_in_pairs(self) -> None:
        """Run each node by itself, and rounds of pairs: one of further operations, and more if a pair is slow."""
        self.each([(name,) for name in self.hosts], Stage.INSIDE, SWEEP)
        while pairs := pair_rounds(tuple(self.hosts), self.ran()):
            met = searched(self.ran(), lambda _: None).meetings
            if self.op is not Op.ALL_REDUCE and met and all(one.fast for one in met):
                break
            self.each(pairs, Stage.PAIR, LARGE)

    def ran(self) -> tuple[Collective, ...]:
        """Return what ran of this operation."""
        return tuple(one for one in collectives(self.known()) if one.step.op is self.op)

    def ended(self) -> tuple[Host, ...]:
        return tuple(
            replace(host, probe={MEETING.key: _met(host), **self.replies[name]}) for name, host in self.hosts.items()
        )

    def leave_out(self, nodes: tuple[str, ...]) -> None:
        """Note on these nodes that they have no part in what follows."""
        self.number += 1 if nodes else 0
        asked = step_arguments(self.step(tuple(self.hosts), Stage.ALL, SWEEP))
        for node in nodes:
            why = Note(f"--drop-bad left out {fold(nodes)}", asked=asked)
            self.replies[node][f"{TASK.key}#{self.number}"] = why

    def step(self, group: tuple[str, ...], stage: Stage, sizes: tuple[int, ...]) -> Step:
        ranks = (1,) * len(group) if stage is Stage.PAIR else tuple(self.hosts[name].gpus for name in group)
        net = "" if stage is Stage.INSIDE else "IB"
        return Step(self.number, stage, Method.NCCL, group, ranks, sizes, net=net, repeats=5, op=self.op)

    def known(self) -> dict[str, ProbeFacts]:
        told = {
            node: probed(Evidence(node, Login(reached=True), replies=answered(replies)))
            for node, replies in self.replies.items()
        }
        return {node: facts for node, facts in told.items() if isinstance(facts, ProbeFacts)}

    def result(self, step: Step, node: str) -> Reply:
        host = self.hosts[node]
        first = sum(step.ranks[: step.group.index(node)])
        mine = step.ranks[step.group.index(node)]
        wire = next(nic.name for nic in host.nics if nic.default_route)
        asked: JsonValue = {
            **step_arguments(step), "node": node, "planned": [*_rails(host), wire], "timeout": 20.0,
            "variables": {"NCCL_NET": step.net} if step.net else {}, "id": _id(step.group[0], step.round),
            "first": first, "gpus": list(range(mine)),
        }  # fmt: skip
        value: JsonValue = {
            "rows": list(self.rows(step, host.number)), "carried": self.carried(step, host, wire),
            "version": host.nccl, "library": f"{LIBRARIES}/libnccl.so.{host.nccl}", "used": _used(step, host, wire),
            "log": [], "failure": None, "start": 1.4 + 0.1 * len(step.group), "left": [],
        }  # fmt: skip
        return Reply(Status.OK, value=value, seconds=2.5, asked=asked)

    def rows(self, step: Step, number: int) -> Iterator[JsonValue]:
        """Yield each size, out of place and in place; clocks of nodes differ a little."""
        rate = self.rate(step) * 1e9
        for size in step.sizes:
            for in_place in (False, True):
                moved = size * step.op.bus_factor(step.world)
                own = 1 + number / 2000 - (0.002 if in_place else 0)
                seconds = round((ALPHA[step.stage] + moved / rate) * own, 9)
                spread: JsonValue = {"fastest": round(seconds * 0.99, 9), "slowest": round(seconds * 1.02, 9)}
                times: JsonValue = {"seconds": seconds, **spread, "timing": TIMING}  # type: ignore[dict-item]
                yield {"size": size, "in_place": in_place, **times, "wrong": 0}  # type: ignore[dict-item]

    def rate(self, step: Step) -> float:
        """Return what the slowest part of the group gives, in GB/s of bus bandwidth."""
        if step.stage is Stage.INSIDE:
            return INSIDE[step.op] * REACHED
        one_each = step.stage is Stage.PAIR or step.op is Op.ALL_TO_ALL
        nics = min(
            sum(hca.rate for hca in _active(self.hosts[node])[: 1 if one_each else None])
            / 8 * self.slow.get(node, 1.0)
            for node in step.group
        )  # fmt: skip
        crossing = [share for (op, *two), share in self.crossing.items() if op is step.op and {*two} <= {*step.group}]
        nics *= min(crossing, default=1.0)
        if step.op is Op.ALL_TO_ALL:
            leaving = (step.world - step.ranks[0]) / (step.world - 1)
            nics *= (0.85 if len(step.group) > 2 else 1) / leaving
        tree = step.op is Op.ALL_REDUCE and step.world > len(step.group) == 2
        twice = 2 * (step.world - 1) / step.world if tree else 1
        return min(INSIDE[step.op], nics * twice) * REACHED

    def carried(self, step: Step, host: Host, wire: str) -> dict[str, JsonValue]:
        """Return what left by each rail: in a ring every node sends what it adds to, once for each size and repeat."""
        nodes = len(step.group)
        sent = sum(step.sizes) * 2 * MOVES * 2 * (nodes - 1) // nodes if nodes > 1 else 0
        rails = _rails(host)
        used = rails[:1] if step.stage is Stage.PAIR else rails
        shares = {rail: sent // len(used) if rail in used else 0 for rail in rails}
        chatter = CHATTER if nodes > 1 else 40_000
        return {device: {"sent": count, "received": count} for device, count in {**shares, wire: chatter}.items()}


def _active(host: Host) -> list[Hca]:
    return [hca for hca in host.hcas if hca.state == "Active"]


def _rails(host: Host) -> list[str]:
    return [f"{hca.name}:1" for hca in _active(host)]


def _used(step: Step, host: Host, wire: str) -> list[JsonValue]:
    """Return NCCL's own line of the network that it uses."""
    if step.stage is Stage.INSIDE:
        return []
    rails = " ".join(f"[{place}]{hca.name}:1/IB" for place, hca in enumerate(_active(host)))
    address = next(nic.ip for nic in host.nics if nic.name == wire)
    return [f"NCCL INFO NET/IB : Using {rails} [RO]; OOB {wire}:{address}<0>"]


def _id(leader: str, number: int) -> str:
    """Return 256 hexadecimal digits that are nobody's rendezvous."""
    return "".join(sha256(f"{leader} {number} {part}".encode()).hexdigest() for part in range(4))


def _met(host: Host) -> Reply:
    ids: JsonValue = [_id(host.name, number) for number in range(1, 13)]
    path = f"{LIBRARIES}/libnccl.so.{host.nccl}"
    return Reply(Status.OK, value={"ids": ids, "version": host.nccl, "path": path}, seconds=0.2)
