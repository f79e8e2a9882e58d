"""NCCL's own diagnostics found a problem

## What it finds
Problems that NCCL 2.31 and later reports with NCCL_RUN_DIAGNOSTICS: pairs of GPUs that exchange wrong data or none,
HCAs whose bandwidth is far from the median, links that are down, memory errors. The diagnostics run once over all
ranks, after the all-reduces. Tests that NCCL could not run (for example without ib_write_bw) are not reported.

## Why it matters
NCCL continues in spite of them. It will use these paths, so that the problem returns later as a hang, as wrong
gradients or as a slow job.

## What to type
On the named nodes: `nvidia-smi topo -p2p rw` and `nvidia-smi nvlink -s` for GPUs, `ibstat` for HCAs. To repeat the
diagnostics under the job's launcher, set NCCL_RUN_DIAGNOSTICS=1 in its environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Step
from ncheck.probe.parse.nccl_diagnostics import Diagnostic, Says, parse_diagnostics
from ncheck.probe.results import results_by_step

# p2p: write mismatch srcRank=0 ... dstRank=3     |    net bw: mode=same server_rank=0 ... client_rank=8
# net bw: cross-nic rank 3 (node0): 265.1 Gbit/s, >30% off median 391.5 Gbit/s
_RANK = expression(r"(?:\b[a-z]+_?[Rr]ank=|\brank )(\d{1,6})\b")


@dataclass(frozen=True)
class Found:
    """One problem that NCCL found."""

    nodes: tuple[str, ...]
    line: Diagnostic

    def text(self) -> str:
        """Return NCCL's message, with the name of its test."""
        return f"{self.line.check}: {self.line.words}" if self.line.check else self.line.words


@dataclass(frozen=True)
class Diagnosed:
    """One run of the diagnostics on the nodes of `step`. `failed` says why it did not finish, "" if it did."""

    step: Step
    found: tuple[Found, ...]
    untried: tuple[str, ...]
    spoke: bool
    failed: str


def diagnosed(probed: Mapping[str, ProbeFacts]) -> Diagnosed | None:
    """Return the last run; None if there was none."""
    ran = [(step, results) for step, results in results_by_step(probed).items() if step.method is Method.DIAGNOSTICS]
    return _diagnosed(*ran[-1]) if ran else None


def _diagnosed(step: Step, results: Mapping[str, NodeResult]) -> Diagnosed:
    lines = [(node, line) for node, result in results.items() for line in parse_diagnostics(result.log).lines]
    wrong = tuple(Found(_nodes(step, line) or (node,), line) for node, line in lines if line.says is Says.WRONG)
    named = {line for _, line in lines if line.says is Says.WRONG and _nodes(step, line)}
    failures = (f"{node}: {result.failure.words}" for node, result in results.items() if result.failure)
    return Diagnosed(
        step,
        tuple(
            one for one in wrong if one.line in named or not named
        ),  # a summary adds nothing to lines that name ranks
        tuple(dict.fromkeys(f"{line.check}: {line.words}" for _, line in lines if line.says is Says.UNTRIED)),
        bool(lines),
        next(failures, ""),
    )


def _nodes(step: Step, line: Diagnostic) -> tuple[str, ...]:
    ranks = sorted({int(rank) for rank in _RANK.findall(line.words)})
    nodes = [*_nodes_by_rank(step)]
    return tuple(dict.fromkeys(nodes[rank] for rank in ranks if rank < len(nodes)))


def _nodes_by_rank(step: Step) -> Iterator[str]:
    for node, ranks in zip(step.group, step.ranks, strict=True):
        yield from [node] * ranks


@cluster_check("NC742", Severity.WARNING, ProbeFacts, alone=True)
def nccl_diagnostics_found(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    run = diagnosed(cluster.facts(ProbeFacts))
    everybody = tuple(node.name for node in cluster)
    if run is None or not (run.spoke or run.failed):
        yield NotApplicable(
            "NCCL's own diagnostics were not run" if run is None else "NCCL printed no diagnostics", everybody
        )
        return
    for found in run.found:
        fix = "sudo iblinkinfo" if found.line.check == "net bw" else "nvidia-smi topo -p2p rw"
        yield Problem(f"NCCL's diagnostics: {found.text()}", fix, nodes=found.nodes, look=True)
    if run.failed:
        yield Inconclusive(f"NCCL's diagnostics did not finish: {run.failed}", run.step.group)
