"""The ranks of a running job, as they came to the meeting of `ncheck.preflight()`: the run itself contributes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from ncheck.lazy_dataclass import dataclass

# Kinds of trouble; the other ones are of a single connection.
TWICE, SIZE, PORT = "duplicate-rank", "world-size", "port-taken"


@dataclass(frozen=True)
class RankTrouble:
    """What is wrong with ranks that came: two of one number, another WORLD_SIZE, a connection that broke."""

    kind: str
    ranks: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class RanksFacts:
    """The ranks of one node, and what is known of the whole job, which is the same on every node.

    `size` is the number of ranks that the launcher announced. `came` are this node's ranks that called preflight,
    and `pids` their processes; `ended` maps those whose process ended before the verdict to its number; `missing`:
    ranks that should run here and did not come in time; `waited`: seconds. `homeless` are missing ranks of no known
    host. `could_come`: the network does not explain who is missing, since others came by it, or all are on one
    machine. `packages` are those of which is known that the job uses them, by the name of the module (torch,
    paddle): rank 0 has imported them, or its launcher runs them. `version` is the node's own ncheck, "" unknown;
    `ours` that of the process that judges.
    """

    size: int
    came: tuple[int, ...]
    pids: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    ended: Mapping[int, int] = field(default_factory=dict)
    homeless: tuple[int, ...] = ()
    could_come: bool = True
    troubles: tuple[RankTrouble, ...] = ()
    waited: float = 0.0
    packages: tuple[str, ...] = ()
    version: str = ""
    ours: str = ""


def ranks_text(numbers: Collection[int]) -> str:
    """Return "rank 3", "ranks 3 and 5" or "ranks 0 to 7, 12 and 14", for people."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    parts = [part for span in spans for part in _parts(span)]
    if len(parts) > _MOST:
        parts = [*parts[:_MOST], f"{len(parts) - _MOST} more"]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"{'rank' if len(set(numbers)) == 1 else 'ranks'} {listed}"


_MOST = 12  # parts of a list of ranks


def _parts(span: list[int]) -> list[str]:
    return [f"{span[0]} to {span[-1]}"] if len(span) > 2 else [str(number) for number in span]  # noqa: PLR2004


@dataclass(frozen=True)
class MissingRanks:
    """Who did not come, for people; `nodes` are those where they should be, or all others where that is not known."""

    message: str
    nodes: tuple[str, ...]
    evidence: tuple[str, ...]


WAIT_LONGER = "set NCHECK_TIMEOUT=120 for all ranks, if they need longer to start"  # a sentence


def missing_ranks(known: Mapping[str, RanksFacts], *, could_come: bool) -> MissingRanks | None:
    """Return the ranks that did not come and that could, or could not; None where there are none."""
    nodes = {name: facts for name, facts in known.items() if facts.could_come == could_come}
    placed = {name: facts.missing for name, facts in nodes.items() if facts.missing}
    homeless = next((facts.homeless for facts in nodes.values()), ())
    everyone = [*homeless, *(rank for ranks in placed.values() for rank in ranks)]
    if not everyone:
        return None
    seconds = max(facts.waited for facts in nodes.values())
    evidence = [f"{ranks_text(ranks)} should be on {name}" for name, ranks in placed.items()]
    if homeless:
        evidence.append(f"the launcher's variables do not say on which host {ranks_text(homeless)} should be")
    came = (name for name, facts in nodes.items() if facts.came)
    silent = [rank for name, ranks in placed.items() if nodes[name].came for rank in ranks]
    message = absence(silent, [rank for rank in everyone if rank not in silent], seconds)
    return MissingRanks(message, tuple(placed or came), tuple(evidence))


def absence(silent: Collection[int], unheard: Collection[int], seconds: float) -> str:
    """Return what is known of missing ranks: the network let others of the same node come, or nobody knows."""
    parts = [f"{ranks_text(silent)} did not call ncheck.preflight()"] if silent else []
    parts += [f"{ranks_text(unheard)} did not reach rank 0"] if unheard else []
    why = ": not started, or blocked" if unheard else ""
    return f"{' and '.join(parts)} within {seconds:.0f} s{why}"
