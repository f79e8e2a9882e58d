"""NCCL's own diagnostics found something

## What it finds
What NCCL says of itself from 2.31 on, where NCCL_RUN_DIAGNOSTICS asks for it: pairs of GPUs that give each other wrong
data or none, HCAs whose bandwidth is far from the median, links that are down, memory errors. It is asked once, over
all ranks, after the all-reduces. Checks that NCCL could not run (no ib_write_bw there, say) are not among them.

## Why it matters
NCCL goes on all the same. These are the paths that it means to use: what is wrong there comes back later as a hang,
as wrong gradients or as a job that is slow for no reason.

## What to type
`nvidia-smi topo -p2p rw` and `nvidia-smi nvlink -s` on the named nodes for GPUs, `ibstat` for HCAs; and the diagnostics
again, under the job's own launcher: NCCL_RUN_DIAGNOSTICS=1 in its environment.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import ClusterView, Doubt, Moot, Problem, Severity, cluster_check
from doctor.model.facts import ProbeFacts
from doctor.probe.verdicts.diagnosed import diagnosed


@cluster_check("NC742", Severity.WARNING, ProbeFacts, alone=True)
def nccl_diagnostics_found(cluster: ClusterView) -> Iterator[Problem | Doubt | Moot]:
    run = diagnosed(cluster.each(ProbeFacts))
    everybody = tuple(node.name for node in cluster)
    if run is None or not (run.spoke or run.failed):
        yield Moot("NCCL's own diagnostics were not run" if run is None else "NCCL printed no diagnostics", everybody)
        return
    for found in run.found:
        fix = "ibstat" if found.line.check == "net bw" else "nvidia-smi topo -p2p rw"
        yield Problem(f"NCCL's diagnostics: {found.told()}", fix, nodes=found.nodes)
    if run.failed:
        yield Doubt(f"NCCL's diagnostics came to no end: {run.failed}", run.step.group)
