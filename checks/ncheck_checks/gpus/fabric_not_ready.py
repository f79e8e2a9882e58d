"""The fabric manager has not set up the NVSwitches

## What it finds
Nodes whose GPUs say that their registration with the NVLink fabric has not begun or not ended (Hopper and newer), or
ended with an error; and nodes with NVSwitches whose GPUs cannot say it (A100 and older) and where
nvidia-fabricmanager.service does not run. The message names a fabric manager whose version is not the driver's: it
refuses to start. While it sets the switches up, after a start of the node, it says "yet". Where CUDA starts all the
same it is a warning: GPUs in a virtual machine with NVLink switched off may register for ever.

## Why it matters
CUDA fails at init with error 802, "system not yet initialized" (CUDA_ERROR_SYSTEM_NOT_READY); torch.cuda.is_available()
is False although nvidia-smi lists all GPUs.

## What to type
`sudo systemctl status nvidia-fabricmanager` on the named node. Install the fabric manager of exactly the driver's
version, then `sudo systemctl enable --now nvidia-fabricmanager`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.cuda_init import SYSTEM_NOT_READY, CudaInitFacts, cuda_error
from ncheck.facts.fabric_manager import NO_FABRIC, FabricManagerFacts, starting
from ncheck.facts.gpu_health import GpuHealthFacts, NvidiaDriverFacts
from ncheck.facts.pci import PciFacts

# NVML_GPU_FABRIC_STATE
_NONE, _COMPLETED = 0, 3
_WORDS = {1: "not started", 2: "in progress"}
_START = "sudo systemctl enable --now nvidia-fabricmanager"
_LOOK = "sudo systemctl status nvidia-fabricmanager"


@node_check(
    "NC536",
    Severity.ERROR,
    GpuHealthFacts,
    PciFacts,
    also=(FabricManagerFacts, NvidiaDriverFacts, CudaInitFacts),
    blocks_plan=True,
    explains=(cuda_error(SYSTEM_NOT_READY), NO_FABRIC),
)
def fabric_not_ready(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    facts, services, switches = node[GpuHealthFacts], node.maybe(FabricManagerFacts), node[PciFacts].nvswitches
    if len(facts.gpus) == 1 and not switches:
        yield NotApplicable("one GPU without an NVSwitch, as in a virtual machine")
        return
    states = [(gpu, gpu.fabric) for gpu in facts.gpus if gpu.fabric and gpu.fabric.state != _NONE]
    late = tuple(
        f"{gpu.called}: fabric {_WORDS.get(fabric.state, fabric.state)}, status {fabric.status}"
        for gpu, fabric in states
        if fabric.state != _COMPLETED or fabric.status != 0
    )
    failed = [gpu for gpu in facts.gpus if "fabric" in gpu.errors]
    if late:
        message = f"{len(late)} GPU(s) are not registered with the NVLink fabric"
        fix = _START if isinstance(services, FabricManagerFacts) and services.fabric_manager == "inactive" else _LOOK
        yield _problem(node, message, fix, "the NVLink fabric is not ready", late)
    elif failed:
        yield Inconclusive(
            f"the fabric state of {failed[0].called} could not be read: {failed[0].errors['fabric'].words}"
        )
    elif states:
        return
    elif not switches:
        yield NotApplicable("no NVSwitch, and no GPU with an NVLink fabric")
    elif isinstance(services, FabricManagerFacts):
        if services.fabric_manager != "active":
            fix = _START if services.fabric_manager == "inactive" else _LOOK
            yield _problem(node, "NVSwitches are not set up", fix, "the fabric manager does not run")
    elif isinstance(services, Absent):
        yield NotApplicable(f"{services.reason}: whether the fabric manager runs is seen on the host")
    elif isinstance(services, Unread):
        yield Inconclusive(services.reason)


def _problem(node: NodeView, message: str, fix: str, summary: str, evidence: tuple[str, ...] = ()) -> Problem:
    cuda = node.maybe(CudaInitFacts)
    starts = isinstance(cuda, CudaInitFacts) and bool(cuda.devices)
    yet = starting(node[GpuHealthFacts], node.maybe(FabricManagerFacts))
    if starts:
        follows = "CUDA starts, and NVLink through the NVSwitches may be missing"
    else:
        follows = f"{'until then ' if yet else ''}CUDA fails with error 802"
    return Problem(
        f"{message}{' yet' if yet else ''}{_service(node)}: {follows}", fix, evidence, look=fix == _LOOK,
        summary=summary, severity=Severity.WARNING if starts else None,
    )  # fmt: skip


def _service(node: NodeView) -> str:
    """Return what is known of the fabric manager, for the message."""
    services, driver = node.maybe(FabricManagerFacts), node.maybe(NvidiaDriverFacts)
    if not isinstance(services, FabricManagerFacts):
        return ""
    known = f"; the fabric manager is {services.fabric_manager}"
    module = driver.module if isinstance(driver, NvidiaDriverFacts) else ""
    if services.version and module and services.version != module:
        known += f", its version {services.version} is not the driver's ({module})"
    return known
