"""A GPU is lost, hangs or needs a reset

## What it finds
GPUs that the driver lists and NVML cannot read (lost, reset required, no power), that stop answering while they are
read, that do not open, and those for which the driver asks for a recovery: a reset, a reboot or that their work ends
("GPU Recovery Action" of `nvidia-smi -q`, new drivers). GPUs that this user or container has no right to use
do not count.

## Why it matters
A rank that opens this GPU fails with "CUDA-capable device(s) is/are busy or unavailable", "GPU is lost" or an ECC
error, or hangs, and all other ranks wait for it.

## What to type
The line of the finding, while no job runs there: a reset (`sudo nvidia-smi --gpu-reset -i ADDRESS`) or a reboot
(`sudo systemctl reboot`). `sudo journalctl -k -g NVRM` shows why. If it returns, the card or its slot is defective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_health import GPU_LOST, GpuHealth, GpuHealthFacts
from ncheck.facts.gpu_log import GPU_ERROR, GPU_UNUSABLE, KernelLogFacts, broken_gpus
from ncheck.facts.gpus import DRIVER_FAILS

_RESET_REQUIRED = 16  # NVML's error
_REBOOT = "sudo systemctl reboot"
_LOOK = "sudo journalctl -k -g NVRM"

# NVML's numbers for what the driver asks for (NVIDIA GPU Memory Error Management, "recovery action flag").
_ASKED = {
    1: "a reset", 2: "a reboot of the node", 3: "an end of the work on all GPUs that reach it by P2P",
    4: "an end of its work, then a reset", 5: "a recovery of the IMEX domain", 6: "a reset of its bus",
    7: "a restart of the system",
}  # fmt: skip
_ASKED_REBOOT = (2, 7)
_ASKED_LOOK = {3: "nvidia-smi", 5: "sudo systemctl status nvidia-imex"}


@node_check(
    "NC520", Severity.ERROR, GpuHealthFacts, also=(KernelLogFacts,), blocks_plan=True,
    explains=(GPU_UNUSABLE, DRIVER_FAILS), hardware=True, resets_gpu=True,
)  # fmt: skip
def gpu_unusable(node: NodeView) -> Iterator[Problem]:
    facts, log = node[GpuHealthFacts], node.maybe(KernelLogFacts)
    reported = set(broken_gpus(log, facts)) if isinstance(log, KernelLogFacts) else set()
    nameless = bool(reported - {gpu.pci for gpu in facts.gpus})  # NVML may not say the address of a lost GPU
    closed = tuple(f"the GPU at {pci} does not open: {why}" for pci, why in facts.unlisted.items())
    for gpu in facts.gpus:
        follows = GPU_ERROR if gpu.pci in reported or (nameless and not gpu.pci) else ""
        yield from (replace(problem, follows=follows) for problem in _of_gpu(gpu, closed))
    if facts.hung is not None:
        message = f"GPU {facts.hung} stops answering: NVML hangs while it reads it"
        yield Problem(message, _LOOK, look=True, summary="a GPU hangs")
    if closed and not any("handle" in gpu.errors for gpu in facts.gpus):
        message = f"the driver has {len(closed)} GPU(s) that NVML does not list: {closed[0]}"
        yield Problem(message, _LOOK, closed, look=True, summary="a GPU does not open")


def _of_gpu(gpu: GpuHealth, closed: tuple[str, ...]) -> Iterator[Problem]:
    """Yield what is wrong with a GPU; `closed` are those that NVML cannot name by their address."""
    evidence = () if gpu.pci else closed
    failures = {failure.code: failure for failure in gpu.errors.values()}
    if GPU_LOST in failures:
        yield Problem(f"{gpu.called} is lost: {failures[GPU_LOST].words}", _REBOOT, evidence, summary="a GPU is lost")
    elif _RESET_REQUIRED in failures:
        message = f"{gpu.called} needs a reset: {failures[_RESET_REQUIRED].words}"
        yield Problem(message, _reset(gpu), summary="a GPU needs a reset")
    elif "handle" in gpu.errors:
        message = f"{gpu.called} cannot be opened: {gpu.errors['handle'].words}"
        yield Problem(message, _LOOK, evidence, look=True, summary="a GPU cannot be opened")
    elif gpu.action:
        asked = _ASKED.get(gpu.action, f"recovery action {gpu.action}")
        message = f"the driver asks for {asked}: {gpu.called}"
        if look := _ASKED_LOOK.get(gpu.action):
            yield Problem(message, look, look=True, summary=f"a GPU needs {asked}")
        else:
            fix = _REBOOT if gpu.action in _ASKED_REBOOT else _reset(gpu)
            yield Problem(message, fix, summary=f"a GPU needs {asked}")


def _reset(gpu: GpuHealth) -> str:
    return f"sudo nvidia-smi --gpu-reset -i {quote(gpu.pci or str(gpu.index))}"
