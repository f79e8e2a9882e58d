"""The test of a GPU did not come to its end

## What it finds
GPUs on which a call of the driver failed or ended the process, or a kernel hung, while the GPU was tested alone: the
step, the driver's own message and its number (`--gpu-test quick`). A test that is late before the GPU computes, or in
its first matrix products, is unknown: the driver may wake the GPUs, or libraries come from a slow file system.

## Why it matters
A job on this GPU would fail or hang in the same way, and its other ranks would wait for it until a time limit.

## What to type
The command of the finding, on the node that it names, shows what the driver logged. Xid 79 and a GPU that is lost need
a restart of the machine, most others a reset: `ncheck explain Xid`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.probe.gpu_test import GpuTestFacts
from ncheck.probe.gpus_alone import fold_pci


@node_check("NC757", Severity.ERROR, GpuTestFacts)
def gpu_test_failed(node: NodeView) -> Iterator[Problem | Inconclusive]:
    gpus = node[GpuTestFacts].gpus
    late = [gpu for gpu in gpus if gpu.late]
    failed = [gpu for gpu in gpus if gpu.trouble and not gpu.late]
    if late:
        yield Inconclusive(f"the test of {fold_pci(late)} did not come to its end: {late[0].trouble}")
    if failed:
        yield Problem(
            f"the test of {fold_pci(failed)} failed: {failed[0].trouble}",
            node[GpuTestFacts].shown_by("sudo journalctl -k -g NVRM", "sudo journalctl -k -g amdgpu"),
            tuple(f"{gpu.pci} ({gpu.uuid}): {gpu.trouble}" for gpu in failed), look=True,
            summary="a GPU fails its test",
        )  # fmt: skip
