"""Open MPI was built with other options on some nodes

## What it finds
Nodes whose Open MPI has the release of the other nodes, and was configured with other options (--with-cuda,
--with-rocm, --with-ucx, --with-ucc, --with-hcoll, --with-verbs, --with-ofi), as `ompi_info` prints them. Installations
that do not say how they were configured are not compared, nor are other releases: see mpi-differs.

## Why it matters
A rank that hands a GPU's memory to an Open MPI without CUDA ends with a segmentation fault in its first MPI_Allreduce,
while the same call works on the other nodes. Builds with and without UCX choose different transports: "PML add procs
failed", or the job runs over TCP. A build of the distribution beside one of HPC-X or of a module is the usual cause.

## What to type
`ompi_info --parsable | grep config:cli` on the named nodes and on a healthy one. `mpirun --prefix DIR` selects one
installation for all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, split
from ncheck.facts.mpi_daemon import MpiDaemonFacts, MpiProgram


@cluster_check("NC221", Severity.WARNING, MpiDaemonFacts)
def mpi_build_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    found = {node: facts.starter for node, facts in cluster.facts(MpiDaemonFacts).items() if facts.starter}
    known = {node: mpi for node, mpi in found.items() if mpi.built_with is not None}
    if not known:
        yield NotApplicable("no Open MPI that says how it was configured")
    for release in sorted({mpi.release for mpi in known.values()}):
        parted = split({node: _options(mpi) for node, mpi in known.items() if mpi.release == release})
        if parted:
            evidence = tuple(f"{mpi.real_path} on {node}" for node, mpi in known.items() if node in parted.odd)
            yield Problem(
                f"Open MPI {release} was built with other options: {parted.summary()}",
                "ompi_info --parsable | grep config:cli", evidence, parted.odd, look=True,
                summary="another build of Open MPI",
            )  # fmt: skip


def _options(mpi: MpiProgram) -> str:
    return "+".join(mpi.built_with or ()) or "none"
