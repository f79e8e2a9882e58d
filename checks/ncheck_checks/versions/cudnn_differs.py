"""The cuDNN that the job loads differs between nodes

## What it finds
Nodes whose job would load another version of cuDNN than on the other nodes. It is the copy that the dynamic loader
gives to torch, or to the other framework in the job's Python: that of LD_LIBRARY_PATH, of a wheel, or of the system. A
cuDNN of the system that no framework loads is not compared. Where all nodes load that of the wheel nvidia-cudnn, its
versions are left to library-differs.

## Why it matters
Each release chooses other algorithms for convolutions and attention: the ranks differ in speed and in their last bits.
A framework that was built for a later one fails with "Loaded runtime CuDNN library: 8.9.7 but source was compiled with:
9.1.0", CUDNN_STATUS_NOT_INITIALIZED or CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, on that node only.

## What to type
`python3 -c 'import torch; print(torch.backends.cudnn.version())'` on the named nodes. Take a system's cuDNN out of
LD_LIBRARY_PATH, so that the wheel's is loaded, or install the majority's release:
`sudo apt-get install 'libcudnn9-cuda-12=9.1.0*'`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, fold, nodes_by_value, split
from ncheck.facts.cuda import CudnnFacts, alike


@cluster_check("NC231", Severity.WARNING, CudnnFacts)
def cudnn_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    loaded = {node: own for node, own in cluster.facts(CudnnFacts).items() if own.path}
    versions = alike({node: own.version for node, own in loaded.items()})
    if unsaid := tuple(node for node in cluster.facts(CudnnFacts) if node not in versions):
        yield NotApplicable("the job loads no cuDNN, or one that does not say its exact version", unsaid)
    if versions and all(loaded[node].of_wheel for node in versions):
        yield NotApplicable("the job loads that of its wheel: see NC222", tuple(versions))
    elif parted := split(versions):
        copies = nodes_by_value({node: f"{loaded[node].version} from {loaded[node].path}" for node in versions})
        evidence = tuple(f"{copy} on {fold(nodes)}" for copy, nodes in copies.items())
        fix = f"ls -l {quote(loaded[parted.odd[0]].path)}"
        summary = "cuDNN differs"
        yield Problem(f"{summary}: {parted.summary()}", fix, evidence, parted.odd, look=True, summary=summary)
