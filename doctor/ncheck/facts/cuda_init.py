"""Whether CUDA starts in the job's environment: libcuda, cuInit, and a context on each GPU."""

from __future__ import annotations

from signal import SIGALRM, SIGKILL
from typing import Annotated, Literal

from ncheck.decode import OPTIONAL, Count, Null, OrEmpty, PathOrEmpty, Seconds, Shown
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import Fact
from ncheck.facts.gpu_health import gpu_address, unless_on_pci
from ncheck.facts.gpus import DEVICES, WAKING
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class CudaFailure:
    """A function that failed. `code`: CUDA's number (CUresult); None where it could not be called. "dlopen" is the
    loader, and `words` its own.
    """

    function: Shown
    code: int | None
    words: Shown


@dataclass(frozen=True)
class CudaDevice:
    """One device, numbered as CUDA does. `failed`: what failed on it. `untried`: why no context was opened on it, ""
    where one was: "exclusive" by its compute mode, "full" where less than 1 GiB of its memory is free.
    """

    index: Count
    pci: Annotated[str, gpu_address]
    failed: CudaFailure | None = None
    untried: Literal["", "exclusive", "full"] = ""


@dataclass(frozen=True)
class CudaStop:
    """Where the process that asked CUDA ended, or hung. `index` and `pci` of the device, None and "" before any.

    `signal`: the number of the signal that ended it, 0 where it hung. `seconds` that it hung until it was ended.
    """

    function: str
    index: int | None = None
    pci: str = ""
    signal: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class CudaInitFacts:
    """`library`: the libcuda that was loaded, "" for none. `version`: the newest CUDA that it knows, such as "12.4".

    `devices` are those that CUDA shows to the job. `failed`: what failed before any device was tried, and `uvm`: why
    /dev/nvidia-uvm does not open then. `stopped`: where it went no further; devices after that are not known.
    """

    library: str
    version: str = ""
    devices: tuple[CudaDevice, ...] = ()
    failed: CudaFailure | None = None
    uvm: str = ""
    stopped: CudaStop | None = None


@dataclass(frozen=True)
class CudaStep:
    """What the process did last. `after`: seconds since it was to be started."""

    function: Shown
    after: Seconds
    index: Annotated[int | None, OPTIONAL] = None
    pci: Annotated[str, OPTIONAL, Null(""), gpu_address] = ""


@dataclass(frozen=True)
class InitAnswer:
    """`at`: the last step that was begun; `late`: the process was ended at its time limit, `silent` seconds later."""

    library: PathOrEmpty
    version: Count | None
    failed: CudaFailure | None
    uvm: Shown
    devices: tuple[CudaDevice, ...]
    at: CudaStep | None
    done: bool
    late: bool
    silent: Seconds
    exit_status: int | None
    words: OrEmpty


# Healthy GPUs that are awake are tried in 2 to 4 s.
CUDA_INIT = Answer("cuda-init", timeout=WAKING, shape=InitAnswer, slow=True)
SYSTEM_NOT_READY, DRIVER_MISMATCH = 802, 803  # CUDA_ERROR_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
_PATIENCE = 8.0  # seconds without a step, after which it counts as hung
NO_LIBRARY = "no libcuda"  # what a check may explain: that the job finds no libcuda, or an empty one
TRY = "python3 -c 'import ctypes; print(ctypes.CDLL(\"libcuda.so.1\").cuInit(0))'"  # prints 0 where CUDA starts


def cuda_error(code: int) -> str:
    """Return what a check may explain: that CUDA does not start, with this error."""
    return f"CUDA error {code}"


def cuda_init(evidence: Evidence) -> Read[CudaInitFacts]:
    """Read it. What was slow, or ended for reasons of its own, is Unread."""
    if why := unless_on_pci(CUDA_INIT, "CUDA was not tried", evidence):
        return why
    answer: InitAnswer | Unread | Absent = answer_of(CUDA_INIT, evidence)
    if isinstance(answer, (Unread, Absent)):
        return answer
    stopped = None if answer.done or answer.failed else _stopped(answer)
    if isinstance(stopped, Unread):
        return stopped
    version = f"{answer.version // 1000}.{answer.version % 1000 // 10}" if answer.version else ""
    return CudaInitFacts(answer.library, version, answer.devices, answer.failed, answer.uvm, stopped)


def _stopped(answer: InitAnswer) -> CudaStop | Unread:
    at, status = answer.at, answer.exit_status
    late = answer.late or status == -SIGALRM
    if at is None or not (late or (status is not None and status < 0)) or status == -SIGKILL:
        why = answer.words or ("it was killed" if status == -SIGKILL else "it ended without an answer")
        return Unread(f"CUDA could not be tried by the job's python3: {why}", fix=TRY)
    if late and answer.silent < _PATIENCE:
        count = len(answer.devices)
        return Unread(f"CUDA is slow: only {count} GPU(s) could be tried in time, then {at.function}", fix=TRY)
    signal = 0 if late or status is None else -status
    return CudaStop(at.function, at.index, at.pci, signal, round(answer.silent, 1))


FACTS = (
    Fact(
        CudaInitFacts,
        (CUDA_INIT, DEVICES),
        cuda_init,
    ),
)
