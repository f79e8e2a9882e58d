"""torch was not built for the GPUs of its node

## What it finds
Nodes with NVIDIA GPUs whose job interpreter has a torch that was built for the CPU only, or for AMD's ROCm, and nodes
with AMD GPUs whose torch was not built for ROCm, according to torch's own version.py. Where the interpreter has another
framework, such as jax or tensorflow, torch may only help it, and the node is skipped. It is a warning, because a job of
gloo may mean to use the CPUs; a CPU build on some nodes only is an error of framework-differs.

## Why it matters
`torch.cuda.is_available()` is False, without any error: the ranks of this node train on the CPU, or stop with "Torch
not compiled with CUDA enabled" or "Distributed package doesn't have NCCL built in". A package that pulled torch from
the wrong index, or a `conda install` without the GPU build, is the usual cause.

## What to type
`python3 -c 'import torch; print(torch.__version__, torch.version.cuda, torch.version.hip)'` on the named nodes; then
install a build for CUDA or ROCm, for example
`python3 -m pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu126`. If the job uses
another Python than the one in the finding: `ncheck --python /path/to/python nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts

_OTHERS = ("tensorflow", "jax", "oneflow", "paddle", "mxnet", "cupy")  # what can use the GPUs instead of torch


@node_check("NC215", Severity.WARNING, InterpreterFacts, GpuFacts)
def torch_without_gpu(node: NodeView) -> Iterator[Problem | NotApplicable]:
    python, gpus = node[InterpreterFacts], node[GpuFacts]
    torch, count = python.torch, len(gpus.gpus)
    if torch is None or not count:
        without = "torch does not say how it was built" if "torch" in python.frameworks else "no torch"
        yield NotApplicable(without if torch is None else "no GPU")
    elif not (torch.cuda if gpus.vendor == "NVIDIA" else torch.hip):
        if any(name.startswith(_OTHERS) for name in python.frameworks):
            yield NotApplicable("torch has no CUDA or ROCm, and another framework may use the GPUs")
            return
        kinds = {"CUDA": torch.cuda, "ROCm": torch.hip}
        build = next((f"built for {name} {version}" for name, version in kinds.items() if version), "a CPU build")
        shown = f"{count} {gpus.vendor} GPU{'s' if count > 1 else ''}"
        yield Problem(
            f"torch {torch.version} of {python.path} is {build}, on a node with {shown}",
            f"{quote(python.path)} -c 'import torch; print(torch.__version__, torch.version.cuda, torch.version.hip)'",
            look=True, summary="torch cannot use the GPUs",
        )  # fmt: skip
