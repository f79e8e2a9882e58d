"""The CUDA toolkit differs between nodes

## What it finds
Nodes whose CUDA toolkit has another version than that of the other nodes. It is the one that torch and setuptools
compile with: CUDA_HOME, CUDA_PATH, the nvcc on the PATH, or /usr/local/cuda. Nodes without a toolkit are not compared:
a job that compiles nothing needs none. Its own libraries of CUDA come with torch: see cuda-builds-mixed and
library-differs; the driver's are another thing: see driver-differs.

## Why it matters
What a job compiles when it starts (DeepSpeed's operators, fused kernels, extensions of torch) is compiled on each node
with the toolkit there. "The detected CUDA version mismatches the version that was used to compile PyTorch" then ends
the ranks of one node, or its kernels differ from the others in speed and last bits.

## What to type
`nvcc --version; cat /usr/local/cuda/version.json` on the named nodes. Install the majority's toolkit there, or lead
CUDA_HOME to it: `export CUDA_HOME=/usr/local/cuda-12.4`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, fold, nodes_by_value, split
from ncheck.facts.cuda import CudaToolkitFacts, alike


@cluster_check("NC230", Severity.WARNING, CudaToolkitFacts)
def cuda_toolkit_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    toolkits = cluster.facts(CudaToolkitFacts)
    versions = alike({node: own.version for node, own in toolkits.items()})
    if unsaid := tuple(node for node in toolkits if node not in versions):
        yield NotApplicable("its toolkit does not say its exact version", unsaid)
    if parted := split(versions):
        places = nodes_by_value({node: f"{toolkits[node].version} in {toolkits[node].path}" for node in versions})
        evidence = tuple(f"{place} on {fold(nodes)}" for place, nodes in places.items())
        fix = f"{quote(toolkits[parted.odd[0]].path)}/bin/nvcc --version"
        summary = "the CUDA toolkit differs"
        yield Problem(f"{summary}: {parted.summary()}", fix, evidence, parted.odd, look=True, summary=summary)
