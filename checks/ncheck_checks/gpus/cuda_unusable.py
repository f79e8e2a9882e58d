"""CUDA does not start, or cannot use a GPU

## What it finds
Nodes where a process in the job's environment (LD_LIBRARY_PATH, LD_PRELOAD, CUDA_VISIBLE_DEVICES) cannot load
libcuda.so.1, where cuInit fails or hangs, where CUDA lists fewer GPUs than NVML does, or where a context or 4 KiB of
memory on one of the GPUs fails or hangs. It asks CUDA itself, without torch. So that no job is disturbed, no context is
opened on a GPU whose compute mode lets only one program in, nor on one whose memory is nearly full. GPUs that
CUDA_VISIBLE_DEVICES hides are not tried.

## Why it matters
`torch.cuda.is_available()` is False, although nvidia-smi lists all GPUs: the ranks of this node stop, or compute on the
CPU, and those of the other nodes wait for them. The usual causes, by CUDA's number:

- libcuda.so.1 is not found, or is too short: the container was started without NVIDIA's runtime or its `compute`
  capability (apptainer: `--nv`), or empty files are left in the image, which was built with that runtime as default.
- error 34: a stub is loaded, which is there for linking only: a folder `stubs` is in LD_LIBRARY_PATH.
- error 802, "system not yet initialized" (CUDA_ERROR_SYSTEM_NOT_READY): the fabric manager does not run, or a GPU for
  confidential computing is not set ready.
- error 803, "system has unsupported display driver / cuda driver combination" (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH):
  libcuda and the kernel module are of different versions.
- error 804: a forward compatibility package (cuda-compat) is loaded, and these GPUs do not support it: GeForce, for
  example.
- errors 805 to 810: MPS. Its daemon has ended and left CUDA_MPS_PIPE_DIRECTORY or /tmp/nvidia-mps behind, or it is
  full.
- error 999: often nvidia-uvm: it is not loaded, /dev/nvidia-uvm is missing in the container, or the machine was
  suspended.

## What to type
The line of the finding. On the node, `python3 -c 'import ctypes; print(ctypes.CDLL("libcuda.so.1").cuInit(0))'` prints
CUDA's number, and 0 where it starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from shlex import quote
from signal import Signals

from ncheck import Fix, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.expression import expression
from ncheck.facts.cuda_init import (
    DRIVER_MISMATCH,
    NO_LIBRARY,
    SYSTEM_NOT_READY,
    TRY,
    CudaDevice,
    CudaFailure,
    CudaInitFacts,
    CudaStop,
    cuda_error,
)
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.fabric_manager import FabricManagerFacts, starting
from ncheck.facts.gpu_health import GpuHealthFacts, NvidiaDriverFacts
from ncheck.facts.gpu_log import GPU_ERROR, GPU_UNUSABLE, KernelLogFacts, broken_gpus
from ncheck.facts.gpus import DRIVER_HANGS, GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.topology.gpus import VARIABLE, visible_gpus

# cuda.h, CUresult
_OUT_OF_MEMORY, _STUB, _UNAVAILABLE, _NO_DEVICE, _NO_COMPATIBILITY = 2, 34, 46, 100, 804
_OF_MPS = range(805, 811)
_OF_LIBRARY = (_STUB, DRIVER_MISMATCH, _NO_COMPATIBILITY)

_EMPTY = "file too short"  # the loader's words
_PATH, _PIPES = "LD_LIBRARY_PATH", "CUDA_MPS_PIPE_DIRECTORY"
_AGAIN = Fix("start the container again with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility", do=True)
_LIBRARIES = Fix("ldconfig -p | grep libcuda.so", look=True)
_LOG = "sudo journalctl -k -g NVRM"
_LIST = "nvidia-smi --query-gpu=index,pci.bus_id,name,compute_mode --format=csv"

# libcuda.so.550.54.15
_VERSION = expression(r"libcuda\.so\.(\d{3,4}(?:\.\d{1,4}){1,3})")


@node_check(
    "NC540", Severity.ERROR, CudaInitFacts, blocks_plan=True,
    also=(
        GpuFacts, GpuHealthFacts, NvidiaDriverFacts, EnvironmentFacts, InterpreterFacts, KernelLogFacts,
        FabricManagerFacts,
    ),
)  # fmt: skip
def cuda_unusable(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    cuda, gpus = node[CudaInitFacts], node.maybe(GpuFacts)
    if isinstance(gpus, GpuFacts) and _visible(node, gpus) == 0:
        yield NotApplicable(f"{VARIABLE} shows no GPU to the job")
    elif cuda.failed and not isinstance(gpus, GpuFacts) and not _is_clear(cuda.failed):
        yield Inconclusive(f"CUDA does not start ({_words(cuda.failed)}), and the GPUs could not be read")
    elif cuda.failed:
        yield _not_started(node, cuda, cuda.failed)
    else:
        yield from _of_devices(node, cuda)
        if cuda.stopped:
            yield _of_stop(node, cuda.stopped)
        elif isinstance(gpus, GpuFacts):
            yield from _fewer(node, cuda, gpus)


def _is_clear(failed: CudaFailure) -> bool:
    """Return whether the cause is clear although the driver could not list its GPUs."""
    return failed.code in (*_OF_LIBRARY, SYSTEM_NOT_READY, *_OF_MPS) or _EMPTY in failed.words


def _visible(node: NodeView, gpus: GpuFacts) -> int | None:
    """Return how many GPUs the job sees; None where that is not known, as with MIG."""
    environment = node.maybe(EnvironmentFacts)
    return visible_gpus(gpus, environment) if isinstance(environment, EnvironmentFacts) else None


def _words(failure: CudaFailure) -> str:
    if failure.code is None:
        return failure.words
    return f"{failure.function}: error {failure.code}" + (f", {failure.words}" if failure.words else "")


# Why CUDA does not start


def _not_started(node: NodeView, cuda: CudaInitFacts, failed: CudaFailure) -> Problem:
    cause, fix = _cause(node, cuda, failed)
    if failed.function == "dlopen":
        follows = NO_LIBRARY
    elif failed.code in (SYSTEM_NOT_READY, DRIVER_MISMATCH):
        follows = cuda_error(failed.code)
    else:
        follows = _worse(node)
    return Problem(
        f"CUDA does not start: {_words(failed)}{cause}", fix.line, _evidence(node, cuda), look=fix.look,
        do=fix.do, summary="CUDA does not start", follows=follows,
    )  # fmt: skip


def _cause(node: NodeView, cuda: CudaInitFacts, failed: CudaFailure) -> tuple[str, Fix]:
    """Return the cause, behind the error, and the remedy."""
    code, contained = failed.code, _container(node)
    if code is None:
        empty = "; the driver's library is empty" if _EMPTY in failed.words else ""
        return empty, _AGAIN if contained else _LIBRARIES
    if code in _OF_LIBRARY:
        return _of_library(node, cuda, code)
    if code == SYSTEM_NOT_READY:
        cause = "; the fabric manager has not set up the NVSwitches, or confidential computing is not set ready"
        if state := starting(node.maybe(GpuHealthFacts), node.maybe(FabricManagerFacts)):
            cause = f"; not ready yet: the fabric manager is {state} and sets the NVSwitches up"
        return cause, Fix("sudo systemctl status nvidia-fabricmanager", look=True)
    if code in _OF_MPS:
        folder = _variables(node).get(_PIPES, "")
        asked = f"{_PIPES}={quote(folder)} nvidia-cuda-mps-control" if folder else "nvidia-cuda-mps-control"
        cause = f"; it asks MPS, whose pipes are in {folder or '/tmp/nvidia-mps'}"  # noqa: S108  MPS's own
        return cause, Fix(f"echo get_server_list | {asked}", look=True)
    if cuda.uvm:
        fix = _AGAIN if contained else Fix("sudo nvidia-modprobe -u -c 0")
        return f"; /dev/nvidia-uvm does not open: {cuda.uvm}", fix
    return "", Fix("nvidia-smi -L" if code == _NO_DEVICE else _LOG, look=True)


def _of_library(node: NodeView, cuda: CudaInitFacts, code: int) -> tuple[str, Fix]:
    """Return the cause where another libcuda than that of the driver is loaded, and what to type."""
    found, driver = _VERSION.search(PurePosixPath(cuda.library).name), node.maybe(NvidiaDriverFacts)
    module = driver.module if isinstance(driver, NvidiaDriverFacts) else ""
    cause = f"; it loads {cuda.library}" if cuda.library else ""
    if code == DRIVER_MISMATCH and found and module and found[1] != module:
        cause += f", and the kernel module is {module}"
    if _PATH in _variables(node):
        return f"{cause}; {_PATH} may lead to it", Fix(f"env -u {_PATH} {TRY}", look=True)
    if code != DRIVER_MISMATCH:
        return cause, _LIBRARIES
    return cause, _AGAIN if _container(node) else Fix("sudo systemctl reboot")


def _container(node: NodeView) -> bool:
    python = node.maybe(InterpreterFacts)
    return isinstance(python, InterpreterFacts) and bool(python.container)


def _variables(node: NodeView) -> dict[str, str]:
    environment = node.maybe(EnvironmentFacts)
    return dict(environment.variables) if isinstance(environment, EnvironmentFacts) else {}


def _evidence(node: NodeView, cuda: CudaInitFacts) -> tuple[str, ...]:
    set_to = _variables(node)
    lines = [f"{name}={quote(set_to[name])}" for name in (_PATH, "LD_PRELOAD", VARIABLE) if name in set_to]
    known = f" (CUDA {cuda.version})" if cuda.version else ""
    return (f"libcuda: {cuda.library}{known}", *lines) if cuda.library else tuple(lines)


# The devices


def _of_devices(node: NodeView, cuda: CudaInitFacts) -> Iterator[Problem | Inconclusive | NotApplicable]:
    alike: dict[str, list[CudaDevice]] = {}
    for device in cuda.devices:
        if device.failed and device.failed.code == _OUT_OF_MEMORY:
            yield NotApplicable(f"the memory of {_called(device)} is full: a program uses CUDA on it")
        elif device.failed:
            alike.setdefault(_words(device.failed), []).append(device)
        elif device.untried == "full":
            yield NotApplicable(f"less than 1 GiB of {_called(device)} is free: a program uses CUDA on it")
        elif device.untried:
            yield NotApplicable(f"the compute mode of {_called(device)} lets one program in: no context was opened")
    for words, devices in alike.items():
        code = devices[0].failed.code if devices[0].failed else None
        shared = ", although its compute mode lets several programs in" if code == _UNAVAILABLE else ""
        message = f"CUDA cannot use {', '.join(map(_called, devices))}: {words}{shared}"
        follows = _worse(node, *(device.pci for device in devices))
        yield Problem(message, _LOG, look=True, summary="CUDA cannot use a GPU", follows=follows)


def _called(device: CudaDevice | CudaStop) -> str:
    return f"device {device.index} ({device.pci})" if device.pci else f"device {device.index}"


def _worse(node: NodeView, *places: str) -> str:
    """Return what may explain that CUDA fails on the GPUs at these addresses; on any without them."""
    gpus, log, health = node.maybe(GpuFacts), node.maybe(KernelLogFacts), node.maybe(GpuHealthFacts)
    if isinstance(gpus, (GpuFacts, Unread)) and gpus.hung:
        return DRIVER_HANGS
    known = health if isinstance(health, GpuHealthFacts) else None
    reported = broken_gpus(log, known) if isinstance(log, KernelLogFacts) else {}
    return GPU_ERROR if set(places or reported) & set(reported) else GPU_UNUSABLE


def _of_stop(node: NodeView, stopped: CudaStop) -> Problem | Inconclusive:
    """Say where CUDA hangs, or ends the process that asks it."""
    on = "" if stopped.index is None else f" on {_called(stopped)}"
    follows = _worse(node, *filter(None, (stopped.pci,)))
    if stopped.signal:
        name = next((one.name for one in Signals if one == stopped.signal), f"signal {stopped.signal}")
        message = f"CUDA ends the process that asks it: {name} in {stopped.function}{on}"
        return Problem(message, TRY, look=True, summary="CUDA crashes", follows=follows)
    health = node.maybe(GpuHealthFacts)
    asleep = isinstance(health, GpuHealthFacts) and any(gpu.persistence == 0 for gpu in health.gpus)
    if stopped.function == "cuInit" and asleep:
        return Inconclusive(
            f"cuInit did not return within {stopped.seconds:.0f} s: without persistence mode, it wakes each GPU first"
        )
    message = f"CUDA hangs: {stopped.function}{on} did not return within {stopped.seconds:.0f} s"
    return Problem(message, _LOG, look=True, summary="CUDA hangs", follows=follows)


def _fewer(node: NodeView, cuda: CudaInitFacts, gpus: GpuFacts) -> Iterator[Problem]:
    """Yield a problem where CUDA lists fewer GPUs than the job should see. Of MIG it shows one instance only."""
    health, wanted = node.maybe(GpuHealthFacts), _visible(node, gpus)
    divided = not isinstance(health, GpuHealthFacts) or any(gpu.mig for gpu in health.gpus)
    if wanted is None or divided or len(cuda.devices) >= wanted:
        return
    listed = {device.pci for device in cuda.devices}
    lost = [gpu.pci for gpu in gpus.gpus if gpu.pci not in listed] if wanted == len(gpus.gpus) else []
    lacking = f": not {', '.join(lost)}" if lost else ""
    message = f"CUDA lists {len(cuda.devices)} of {wanted} GPUs{lacking}"
    yield Problem(
        message, _LIST, _evidence(node, cuda), look=True, summary="CUDA lists too few GPUs",
        follows=_worse(node, *lost),
    )  # fmt: skip
