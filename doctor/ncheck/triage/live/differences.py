"""In what the ranks of a job differ although they must be alike: who is there, variables, versions, clocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from ncheck.expression import expression
from ncheck.facts.clock import ClockFacts
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job, RankProcess
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Sign
from ncheck.triage.facts.activity import ActivityFacts, ProcessActivity
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.watched_ranks import SOURCE, Watched, clean, listed, watched

READS = (ActivityFacts, ProcessesFacts, ClockFacts)


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield the ranks that are not there, and those that are not like the others."""
    yield from _missing(job, cluster)
    yield from _differences(job, tuple(watched(job, cluster)))
    yield from _clocks(job, cluster)


def _missing(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield the ranks that no process is, if every node was looked at on which they could be."""
    if any(one.rank is None for one in job.ranks):
        return
    missing = set(job.missing)
    for node in job.nodes:
        here = tuple(job.on(node))
        wanted = max((_whole(one, "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE") for one in here), default=0)
        locals_ = {one.local_rank for one in here}
        absent = sorted(set(range(wanted)) - locals_) if None not in locals_ else []
        if absent and missing:
            first = min(
                one.rank - one.local_rank for one in here if one.rank is not None and one.local_rank is not None
            )
            ranks = tuple(sorted({first + one for one in absent} & missing))
            missing -= set(ranks)
            if ranks:
                text = f"{node} has {len(here)} of its {wanted} ranks: no process for local {listed('rank', absent)}"
                yield Clue(SOURCE, "rank_missing", Grade.CERTAIN, text, ranks, (node,))
    looked_at = cluster.facts(ProcessesFacts)
    nodes = max(
        (_whole(one, "GROUP_WORLD_SIZE", "SLURM_NNODES", "SLURM_JOB_NUM_NODES") for one in job.ranks), default=0
    )
    if nodes == 0 and set(job.nodes) == set(cluster.names) and any(one.local_rank is not None for one in job.ranks):
        return  # each of these nodes has all of its ranks: the others are on nodes that were not named
    if missing and len(looked_at) == len(cluster) and nodes <= len(cluster):
        text = f"{listed('rank', sorted(missing))} of {job.size}: no process on {listed('', cluster.names)}"
        sure = len(cluster) > 1 or nodes == len(cluster)
        bare = tuple(name for name in cluster.names if name not in job.nodes)
        if len(bare) > len(missing):
            bare = ()  # the job need not have been on all of these
        elif bare:
            text += f"; {listed('', bare)} {'has' if len(bare) == 1 else 'have'} no rank"
        yield Clue(SOURCE, "rank_missing", Grade.LIKELY if sure else Grade.POSSIBLE, text, tuple(sorted(missing)), bare,
                   others=("rank_crashed", "rendezvous_misconfig"))  # fmt: skip


def _whole(rank: RankProcess, *names: str) -> int:
    values = (rank.variables.get(name, "") for name in names)
    return max((int(value) for value in values if re.fullmatch(r"\d{1,6}", value)), default=0)


_MUST_AGREE = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_NTHREADS", "NCCL_BUFFSIZE", "NCCL_LL_BUFFSIZE", "NCCL_NET", "NCCL_NET_PLUGIN",
    "NCCL_IB_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC", "NCCL_COMM_ID",
    "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS", "TORCH_DISTRIBUTED_DEBUG", "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
)  # fmt: skip


def _differences(job: Job, seen: Sequence[Watched]) -> Iterator[Sign]:
    ranks = [one for one in job.ranks if one.process.variables is not None]
    for name in _MUST_AGREE:
        yield from _odd(ranks, [one.variables.get(name, "not set") for one in ranks], name, "collective_mismatch",
                        f"the ranks have different values of {name}")  # fmt: skip
    for name in ("WORLD_SIZE", "MASTER_PORT"):
        yield from _odd(ranks, [one.variables.get(name, "not set") for one in ranks], name, "rendezvous_misconfig", "")
    yield from _addresses(job, ranks)
    known = [(one.rank, version) for one in seen if (version := _nccl(one.own))]
    grade = Grade.LIKELY if any(one.holds_gpu for one in seen) else Grade.POSSIBLE
    yield from _odd(
        [rank for rank, _ in known], [version for _, version in known], "NCCL", "version_mismatch", "", grade
    )


def _odd(  # noqa: PLR0913, PLR0917  what differs, and in which words
    ranks: Sequence[RankProcess],
    values: Sequence[str],
    name: str,
    cause: str,
    meaning: str,
    grade: Grade = Grade.LIKELY,
) -> Iterator[Clue]:
    """Yield a clue if values differ between ranks; those in the minority are named, of two equal parts none."""
    counts = Counter(values).most_common()
    if len(counts) < 2:  # noqa: PLR2004
        return
    usual, times = counts[0]
    decided = times > counts[1][1]
    few = [one for one, value in zip(ranks, values, strict=True) if decided and value != usual]
    owners = {value: [one for one, own in zip(ranks, values, strict=True) if own == value] for value, _ in counts[:4]}
    parts = "; ".join(f"{clean(value)} on {listed('rank', _numbers(them))}" for value, them in owners.items())
    nodes = tuple(dict.fromkeys(one.node for one in few))
    yield Clue(SOURCE, cause, grade, f"{name} differs: {parts}", tuple(_numbers(few)), nodes, meaning=meaning)


def _numbers(ranks: Iterable[RankProcess]) -> list[int]:
    return [one.rank for one in ranks if one.rank is not None]


_LOOPBACK = expression(r"^(?:localhost(?:\.localdomain)?|127\.[\d.]+|::1)$")


def _addresses(job: Job, ranks: Sequence[RankProcess]) -> Iterator[Sign]:
    """Yield a MASTER_ADDR that other nodes cannot use, or on which ranks disagree; a host may have several names."""
    named = [(one, one.variables["MASTER_ADDR"]) for one in ranks if one.variables.get("MASTER_ADDR")]
    first = job.numbered(0)
    lost = [(one, address) for one, address in named if first and one.node != first.node and _LOOPBACK.match(address)]
    if lost and first:
        nodes = tuple(dict.fromkeys(one.node for one, _ in lost))
        text = f"MASTER_ADDR is {clean(lost[0][1])} on {listed('', nodes)}, and rank 0 runs on {first.node}"
        yield Clue(SOURCE, "rendezvous_misconfig", Grade.LIKELY, text, tuple(_numbers(one for one, _ in lost)), nodes,
                   looks=('echo "$MASTER_ADDR"',))  # fmt: skip
    else:
        others = [(one, address) for one, address in named if not _LOOPBACK.match(address)]
        yield from _odd([one for one, _ in others], [address for _, address in others], "MASTER_ADDR",
                        "rendezvous_misconfig", "", Grade.POSSIBLE)  # fmt: skip


# /usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5
_IN_NAME = expression(r"/libnccl\.so\.(\d+\.\d+\.\d+)$")


def _nccl(process: ProcessActivity) -> str:
    """Return the version of NCCL that a rank has loaded, "" if no file says it."""
    for path, version in (process.libraries or {}).items():
        if "/libnccl.so" in path:
            named = _IN_NAME.search(path)
            return version or (named[1] if named else "")
    return ""


_FAR_APART = 30.0  # seconds


def _clocks(job: Job, cluster: Cluster) -> Iterator[Sign]:
    offsets = {node: it.offset for node, it in cluster.facts(ClockFacts).items() if node in job.nodes}
    if not offsets or max(offsets.values()) - min(offsets.values()) < _FAR_APART:
        return
    middle = median(offsets.values())
    early, late = min(offsets, key=offsets.__getitem__), max(offsets, key=offsets.__getitem__)
    apart = offsets[late] - offsets[early]
    odd = [node for node, offset in offsets.items() if len(offsets) > 2 and abs(offset - middle) >= _FAR_APART]  # noqa: PLR2004
    text = f"the clock of {late} is {apart:.0f} s ahead of that of {early}"
    yield Clue(SOURCE, "clock_skew", Grade.POSSIBLE, text, nodes=tuple(odd))
