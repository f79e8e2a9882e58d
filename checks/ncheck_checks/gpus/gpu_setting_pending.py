"""A setting of a GPU changes at its next reset

## What it finds
GPUs whose ECC mode or MIG mode was changed, while the change takes effect only after the next reset of the GPU or
reboot of the node.

## Why it matters
Whoever reboots the node, or resets the GPU after an error, gets another GPU back: with MIG no rank sees a whole GPU,
without ECC a memory error is not noticed, with ECC some models have less memory. The node then differs from the others,
and nobody remembers a change.

## What to type
`nvidia-smi -q` on the named node shows the current and the pending mode. To let the change happen now, while nobody
uses the GPU: `sudo nvidia-smi --gpu-reset -i ADDRESS`. To take it back: `sudo nvidia-smi -i ADDRESS -e 1` or `-e 0`,
`-mig 1` or `-mig 0`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts, nothing_to_judge

_LOOK = "nvidia-smi --query-gpu=index,ecc.mode.current,ecc.mode.pending,mig.mode.current,mig.mode.pending --format=csv"


@node_check("NC545", Severity.WARNING, GpuHealthFacts)
def gpu_setting_pending(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    facts = node[GpuHealthFacts]
    for what, modes in (("ECC", _ecc), ("MIG", _mig)):
        for then in (1, 0):
            gpus = ", ".join(gpu.called for gpu in facts.gpus if modes(gpu) == (1 - then, then))
            if gpus:
                message = f"{what} will be {'on' if then else 'off'} after the next reset or reboot: {gpus}"
                yield Problem(message, _LOOK, look=True, summary=f"{what} of GPUs changes at the next reset")
    yield from nothing_to_judge(facts, "a mode that a reset changes", _modes, "ecc_mode", "mig")


def _ecc(gpu: GpuHealth) -> tuple[int | None, int | None]:
    return gpu.ecc_mode, gpu.ecc_pending


def _mig(gpu: GpuHealth) -> tuple[int | None, int | None]:
    return gpu.mig, gpu.mig_pending


def _modes(gpu: GpuHealth) -> object:
    return next((mode for mode in (gpu.ecc_pending, gpu.mig_pending) if mode is not None), None)
