"""A resource limit is much lower on some node than on the others

## What it finds
Nodes on which a non-interactive ssh login, as launchers use it, may have less than a quarter of the open files
(nofile), processes and threads (nproc), address space (as), CPU time (cpu), file size (fsize), stack or memory (data)
that most of the nodes allow, or has such a limit where they have none. 65536 open files, 16384 processes and a stack of
8 MiB are enough for any job (NCCL's guide counts 32,768 open files for a large one). job-limit-low reports limits under
which no job runs.

## Why it matters
The job works wherever it was tried, and fails when this node is part of it: one rank ends with "Too many open files",
"Resource temporarily unavailable" or "Cannot allocate memory", the others wait for it. A file in
/etc/security/limits.d, or a container's start, was forgotten on this node.

## What to type
The line of the finding on the named nodes, then log in again. `ulimit -a` on a node that works shows the right limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from ncheck import Cluster, Fix, Problem, Severity, cluster_check, fold, nodes_by_value
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.login import IdentityFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.login_variables import limit_set_to, set_at

LESS = 4  # so many times less than on the other nodes


@dataclass(frozen=True)
class ConfLimit:
    """A limit by its name in limits.conf. Below `error`, job-limit-low reports it; `enough` is so for any job."""

    name: str
    what: str
    of: Callable[[LimitsFacts], int | None]
    error: int
    enough: float = inf
    unit: int = 1  # of a number in limits.conf: bytes or seconds


LIMITS = (
    ConfLimit("nofile", "open files", lambda limits: limits.open_files, 1024, 65536),
    ConfLimit("nproc", "processes and threads", lambda limits: limits.processes, 512, 16384),
    ConfLimit("as", "address space", lambda limits: limits.address_space, 4 * 2**30, unit=1024),
    ConfLimit("cpu", "CPU time of each process", lambda limits: limits.cpu_seconds, 7 * 24 * 3600, unit=60),
    ConfLimit("fsize", "the size of a file", lambda limits: limits.file_size, 2**30, unit=1024),
    ConfLimit("stack", "the stack of each thread", lambda limits: limits.stack, 2**20, 8 * 2**20, unit=1024),
    ConfLimit("data", "memory of each process", lambda limits: limits.data, 4 * 2**30, unit=1024),
)


@cluster_check("NC615", Severity.WARNING, LimitsFacts, also=(IdentityFacts,))
def limits_differ(cluster: Cluster) -> Iterator[Problem]:
    identities, facts = cluster.facts(IdentityFacts), cluster.facts(LimitsFacts)
    exempt = {node for node, identity in identities.items() if identity.user_id == 0}  # from nproc
    for limit in LIMITS:
        values = {
            node: _number(limit.of(limits))
            for node, limits in facts.items()
            if limit.name != "nproc" or node not in exempt
        }
        usual = sorted(values.values())[len(values) // 2] if values else inf
        low = {node: own for node, own in values.items() if limit.error <= own < limit.enough and LESS * own < usual}
        wanted = "unlimited" if usual == inf else f"{usual / limit.unit:.0f}"
        rows: dict[str, tuple[float, Fix, tuple[str, ...]]] = {}
        for node, own in low.items():
            fix = limit_set_to(wanted, limit.name, facts[node], identities.get(node))
            rows[node] = own, fix, set_at(facts[node].set_in.get(limit.name, ()))
        for (own, fix, evidence), nodes in nodes_by_value(rows).items():
            there = f"limited to {_text(own)} on {fold(nodes)}"
            yield Problem(
                f"{limit.what} ({limit.name}) {there}; other nodes have {_text(usual)}",
                fix.line, evidence, nodes, look=fix.look, summary="a resource limit is lower than on the other nodes",
            )  # fmt: skip


def _number(limit: int | None) -> float:
    return inf if limit is None else limit


def _text(limit: float) -> str:
    return "unlimited" if limit == inf else f"{limit:.0f}"
