"""What happens after a try that failed: the tries so far, what was proved and which nodes are left, to the next action.

Nothing here runs anything. A node loses its place only if it is proved to be at fault. Every action has one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.next_step import Action

SAME_ROOT = 3  # tries that end by one root: another one would end by it, too
_PARTNERS = 2  # that a suspect is measured with
# What the diagnosis wants to be done to a node: a job can go on without that node.
_WITHOUT = (Action.RESTART_WITHOUT, Action.REBOOT, Action.RESET_GPU, Action.DRAIN, Action.TICKET)
_NOT_AGAIN = {
    Action.STOP: "a second start would fail in the same way",
    Action.FIX_FIRST: "this must be fixed first",
    Action.LOOK: "the log does not show whether a second start can succeed",
}


@dataclass(frozen=True)
class Try:
    """One try that failed, on `nodes` in the order of the job.

    `advice` is what the diagnosis says to do next, `cause` its name, "" where the log shows none. `at_fault`
    are the nodes of the job that it names, `ranks` the ranks. `step` is the furthest step in the log, None if it has
    none. `ended`: why the job must not be started again whatever its log says: a signal, a time limit.
    """

    nodes: tuple[str, ...]
    advice: Action = Action.RESTART
    cause: str = ""
    meaning: str = ""
    fix: str = ""
    at_fault: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    step: tuple[int, ...] | None = None
    ended: str = ""

    @property
    def root(self) -> tuple[object, ...]:
        """What makes two failures the same one."""
        return self.cause, self.at_fault, self.ranks

    @property
    def shown(self) -> str:
        """The failure in words."""
        where = fold(self.at_fault) if self.at_fault else f"rank {self.ranks[0]}" if self.ranks else ""
        return f"{self.meaning or 'the log shows no cause'}{where and f' ({where})'}"


@dataclass(frozen=True)
class Proof:
    """Whether one node is proved to be at fault, and by what: "n07 fails with n01 and n02, which pass together"."""

    proved: bool
    reason: str


@dataclass(frozen=True)
class Limits:
    """How often the job may be started again, and whether on fewer nodes."""

    retries: int
    shrink: bool = False


@dataclass(frozen=True)
class Prove:
    """Measure this suspect with these partners, and decide again."""

    suspect: str
    partners: tuple[str, ...]


@dataclass(frozen=True)
class Again:
    """Start the job again on these nodes."""

    nodes: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class End:
    """Do not start the job again."""

    sentence: str


def next_action(
    tries: Sequence[Try], limits: Limits, spares: Sequence[str] = (), proofs: Mapping[str, Proof] | None = None
) -> Prove | Again | End:
    """Return what to do after the last of these tries. `proofs` are those of its suspects that were measured so far."""
    last = tries[-1]
    if why := _reason_to_end(tries, limits):
        return End(f"not restarted: {why}")
    if last.advice not in _WITHOUT:
        return Again(last.nodes, f"restart on the same nodes: {last.shown}")
    if not last.at_fault:
        return Again(last.nodes, f"restart on the same nodes: {last.shown}, and the log names no node of the job")
    return _without(tries, limits, tuple(spares), proofs or {})


def _reason_to_end(tries: Sequence[Try], limits: Limits) -> str:
    last, before = tries[-1], tries[-2] if len(tries) > 1 else None
    if last.ended:
        return last.ended
    if why := _NOT_AGAIN.get(last.advice):
        return f"{why}: {last.fix if last.advice is Action.FIX_FIRST and last.fix else last.shown}"
    if len(tries) >= SAME_ROOT and len({one.root for one in tries[-SAME_ROOT:]}) == 1:
        return f"{SAME_ROOT} tries ended in the same way: {last.shown}"
    if len(tries) > limits.retries:
        return f"it was started {len(tries)} times (--retry {limits.retries}): {last.shown}"
    stays = before and before.nodes == last.nodes  # else it may be the new nodes that ended it early
    if before and stays and before.step and last.step and last.step <= before.step:
        return f"no progress: the try before came to {_step(before.step)}, this one to {_step(last.step)}"
    return ""


def _step(step: tuple[int, ...]) -> str:
    *epoch, number = step
    return f"epoch {epoch[0]}, step {number}" if epoch and epoch[0] else f"step {number}"


def _without(
    tries: Sequence[Try], limits: Limits, spares: tuple[str, ...], proofs: Mapping[str, Proof]
) -> Prove | Again | End:
    """Return the action where the diagnosis names nodes of the job."""
    last = tries[-1]
    if len(last.at_fault) > max(1, len(last.nodes) // 2):
        share = f"{len(last.at_fault)} of {len(last.nodes)} nodes are named, so it is not the fault of one node"
        return Again(last.nodes, f"restart on the same nodes, nobody is excluded: {share}: {last.shown}")
    named_before = {node for one in tries for node in one.at_fault}
    others = [node for node in (*last.nodes, *spares) if node not in last.at_fault]
    others.sort(key=named_before.__contains__)
    unproved = [node for node in last.at_fault if node not in proofs]
    if unproved and len(others) < _PARTNERS:
        need = f"{_PARTNERS} other nodes to compare {fold(last.at_fault)} with"
        return Again(last.nodes, f"restart on the same nodes: nobody is excluded without proof, and it needs {need}")
    if unproved:
        return Prove(unproved[0], tuple(others[:_PARTNERS]))
    guilty = [node for node in last.nodes if node in last.at_fault and proofs[node].proved]
    innocent = "; ".join(dict.fromkeys(proofs[node].reason for node in last.at_fault if node not in guilty))
    if not guilty:
        return Again(last.nodes, f"restart on the same nodes, nobody is excluded: {innocent}")
    reasons = "; ".join(dict.fromkeys(proofs[node].reason for node in guilty))
    instead = dict(zip(guilty, spares, strict=False))
    lost = [node for node in guilty if node not in instead]
    left = tuple(instead.get(node, node) for node in last.nodes if node not in lost)
    if not left or (lost and not limits.shrink):
        how = "name one with --spare" + (", or allow fewer nodes with --shrink" if left else "")
        return End(f"not restarted: no spare for {fold(lost)}: {how} ({reasons})")
    places = [f"{fold([spare])} takes the place of {fold([node])}" for node, spare in instead.items()]
    places += [f"without {fold(lost)}, on {len(left)} nodes"] if lost else []
    return Again(left, f"restart, {', '.join(places)}: {reasons}")
