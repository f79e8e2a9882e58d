"""The GPU driver is too old for the job's CUDA

## What it finds
Nodes whose driver is older than the CUDA version needs that the job's NCCL, torch, jax or CuPy was built for. From CUDA
11 on, one driver serves a whole major version: 450.80.02 for 11, 525.60.13 for 12, 580.65.06 for 13 (NVIDIA's CUDA
Compatibility). Where a forward compatibility package is installed, or the driver's libraries know that CUDA, nothing is
reported.

## Why it matters
CUDA fails at init: "CUDA driver version is insufficient for CUDA runtime version", or "The NVIDIA driver on your system
is too old" of torch. NCCL says the same on its first call.

## What to type
`nvidia-smi` shows the driver; install the newer one on the named nodes, or a build of the job's packages for an older
CUDA: `pip install torch --index-url https://download.pytorch.org/whl/cu126`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.expression import expression
from ncheck.facts.gpu_health import NvidiaDriverFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts, NcclCopiesFacts
from ncheck.parse.cuda_compatibility import needed_driver

# 2.5.1+cu124, 0.4.30+cuda12.cudnn91
_BUILD = expression(r"\+cu(\d{1,2})(\d)(?:\D|$)|\+cuda(\d{2})")

# cupy-cuda12x
_NAMED = expression(r"-cuda(\d{2})x$")


@node_check(
    "NC535",
    Severity.ERROR,
    GpuFacts,
    also=(LoadedNcclFacts, NcclCopiesFacts, InterpreterFacts, NvidiaDriverFacts),
    next_step="fix-first",
)
def driver_too_old_for_cuda(node: NodeView) -> Iterator[Problem | NotApplicable]:
    gpus, builds = node[GpuFacts], dict(_builds(node))
    if not builds or not gpus.driver:
        yield NotApplicable("no package of the job says which CUDA it was built for")
        return
    needs = {what: needed for what, cuda in builds.items() if (needed := _needed(gpus, cuda))}
    driver = node.maybe(NvidiaDriverFacts)
    if needs and isinstance(driver, NvidiaDriverFacts) and driver.compatibility:
        yield NotApplicable(f"CUDA's forward compatibility package is installed: {driver.compatibility[0]}")
    elif needs:
        lines = tuple(
            f"{what} was built for CUDA {builds[what]}: driver {needed} or later" for what, needed in needs.items()
        )
        message = f"driver {gpus.driver} is too old: {lines[0]}"
        yield Problem(
            message,
            "modinfo -F version nvidia",
            lines,
            look=True,
            summary="the GPU driver is too old for the job's CUDA",
        )


def _needed(gpus: GpuFacts, cuda: str) -> str:
    """Return the driver that is needed for this CUDA, "" where the driver or its libraries are new enough."""
    own, wanted = gpus.cuda.partition(".")[0], cuda.partition(".")[0]
    if own.isdecimal() and wanted.isdecimal() and int(own) >= int(wanted) >= _MINOR_COMPATIBLE:
        return ""
    return needed_driver(gpus.driver, cuda)


_MINOR_COMPATIBLE = 11  # the first major version in which a driver serves all minor versions


def _builds(node: NodeView) -> Iterator[tuple[str, str]]:
    """Yield what the job loads, and the CUDA version that it was built for."""
    loaded, copies = node.maybe(LoadedNcclFacts), node.maybe(NcclCopiesFacts)
    if isinstance(loaded, LoadedNcclFacts) and isinstance(copies, NcclCopiesFacts):
        for copy in copies.copies:
            if copy.path == loaded.path and copy.cuda:
                yield f"NCCL {loaded.version}", copy.cuda
    python = node.maybe(InterpreterFacts)
    if isinstance(python, InterpreterFacts):
        for name, version in python.frameworks.items():
            if found := _BUILD.search(version) or _NAMED.search(name):
                yield f"{name} {version}", ".".join(part for part in found.groups() if part)
