"""Reports that frameworks print about themselves: Horovod's build, torch's collect_env, sglang's and DeepSpeed's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import lines_of

Record = dict[str, object]

# Horovod v0.22.1:
_HOROVOD = expression(r"\bHorovod v(\S+?):?\s*$")

# Available Tensor Operations:
_HEADING = expression(r"\bAvailable (Frameworks|Controllers|Tensor Operations):")

#     [X] NCCL
_FEATURE = expression(r"\[([Xx ]?)\]\s+(\S+)")

# Checking whether extension tensorflow was built.
_PROBING = expression(r"Checking whether extension (\w+) was built")

# Traceback (most recent call last):
_CRASH = expression(r"Traceback \(most recent|Check failure stack trace|Segmentation fault|[A-Za-z.]Error: ")
_BLOCKS = {"Frameworks": "frameworks", "Controllers": "controllers", "Tensor Operations": "operations"}


@dataclass(frozen=True)
class HorovodBuild:
    """`horovodrun --check-build`: each block maps a name to whether it was built in.

    `error` is why the report is missing or incomplete, `probed` the extensions that `--verbose` prints.
    """

    version: str | None = None
    frameworks: Mapping[str, bool] = field(default_factory=dict)
    controllers: Mapping[str, bool] = field(default_factory=dict)
    operations: Mapping[str, bool] = field(default_factory=dict)
    error: str | None = None
    probed: tuple[str, ...] = ()


def parse_build(text: str) -> HorovodBuild:
    """Read the report; it is complete if it has the version and all three blocks."""
    lines = lines_of(text)
    blocks: dict[str, dict[str, bool]] = {name: {} for name in _BLOCKS.values()}
    version, block = None, None
    for line in lines:
        if found := _HOROVOD.search(line):
            version = found[1]
        elif found := _HEADING.search(line):
            block = _BLOCKS[found[1]]
        elif block and (found := _FEATURE.search(line)):
            blocks[block][found[2]] = found[1].strip() != ""
    complete = version is not None and all(blocks.values())
    probed = tuple(found[1] for line in lines if (found := _PROBING.search(line)))
    return HorovodBuild(version, **blocks, error=None if complete else _build_error(lines, probed), probed=probed)


def _build_error(lines: list[str], probed: tuple[str, ...]) -> str:
    if not any(_CRASH.search(line) for line in lines):
        return "the report of horovodrun --check-build is missing or incomplete"
    return f"crash while probing the {probed[-1]} extension" if probed else "crash before any extension was probed"


# "CUDA used to build PyTorch: 12.1", or in vLLM's form "CUDA used to build PyTorch   : 12.6"
_TORCH = {
    "pytorch": "PyTorch version",
    "cuda_build": "CUDA used to build PyTorch",
    "rocm_build": "ROCM used to build PyTorch",
    "cuda_runtime": "CUDA runtime version",
    "driver": "Nvidia driver version",
    "os": "OS",
    "python": "Python version",
    "is_cuda_available": "Is CUDA available",
}

# "NVCC: Cuda compilation tools, release 12.1, V12.1.105"
_SGLANG = {
    "pytorch": "PyTorch",
    "python": "Python",
    "cuda_available": "(?:CUDA|ROCM|ROCm) available",
    "driver": "(?:CUDA|ROCM|ROCm) Driver Version",
    "cuda_home": "(?:CUDA|ROCM|ROCm)_HOME",
    "nvcc": "NVCC",
}

# GPU 0,1,2,3: NVIDIA A100-SXM4-80GB
_GPUS = expression(r"^\s*(GPU \d[\d,]*): (.*\S)\s*$")

# torch cuda version ............... 12.8
_DEEPSPEED = {
    "torch": "torch version",
    "deepspeed": "deepspeed info",
    "torch_cuda": "torch cuda version",
    "nvcc": "nvcc version",
    "hip": "torch hip version",
    "wheel": r"deepspeed wheel compiled w\.",
    "npu": "torch_npu version",
    "cann": "ascend_cann version",
    "shm": r"shared memory \(/dev/shm\) size",
}

# sparse_attn ............ [NO] ....... [OKAY]
_OP = expression(r"(?:^|\s)(\w+)[ .]+\[(\w+)\] \.+ \[(\w+)\]")

# DeepSpeed C++/CUDA extension op report
_DEEPSPEED_HEADING = expression(r"DeepSpeed (?:C\+\+/CUDA extension op report|general environment info)")
_NONE = ("None", "", "N/A")


def parse_collect_env(text: str) -> Record | None:
    """Return the values of torch's collect_env as printed ("Could not collect", "N/A"); None for any other text."""
    plain = "\n".join(lines_of(text))
    if _TORCH["cuda_build"] not in plain:
        return None
    found: Record = {key: _entry(plain, label) for key, label in _TORCH.items()}
    return found if found["pytorch"] is not None and found["cuda_build"] is not None else None


def parse_check_env(text: str) -> Record | None:
    """Return the values of sglang's check_env; `gpus` are pairs such as ["GPU 0,1", "NVIDIA A100-SXM4-80GB"]."""
    plain = "\n".join(lines_of(text))
    if _SGLANG["pytorch"] not in plain:
        return None
    found: Record = {key: _entry(plain, label) for key, label in _SGLANG.items()}
    if found["pytorch"] is None or found["cuda_available"] is None:
        return None
    gpus = (row for line in lines_of(text) if (row := _GPUS.match(line)))
    return {**found, "gpus": [[row[1], row[2]] for row in gpus]}


def _entry(text: str, label: str) -> str | None:
    """Return the value of a label, at the start of a line or after blanks, as two lines may have been joined."""
    found = re.search(rf"(?:^[ \t]*|\s\s|[#>] ){label}[ \t]*:[ \t]*(.*[^ \t\n]|)[ \t]*$", text, re.MULTILINE)
    return found[1] if found else None


def parse_ds_report(text: str) -> Record | None:
    """Return DeepSpeed's report: versions (None if it prints None), shm_gb, ops {name: [installed, compatible]}."""
    lines = lines_of(text)
    if not any("deepspeed" in line.lower() for line in lines):
        return None
    entries = {key: _dotted(lines, label) for key, label in _DEEPSPEED.items()}
    if (
        entries["deepspeed"] is None
        and entries["wheel"] is None
        and not any(_DEEPSPEED_HEADING.search(line) for line in lines)
    ):
        return None
    shm = entries.pop("shm")
    record: Record = {key: _version_or_none(value) for key, value in entries.items()}
    record["deepspeed"] = str(record["deepspeed"] or "").split(",")[0] or None
    ops = (row for line in lines if (row := _OP.search(line)))
    return {
        **record,
        "shm_gb": _gigabytes(shm),
        "ops": {row[1]: [row[2], row[3]] for row in ops},
        "mismatch": _mismatch(record["nvcc"], record["torch_cuda"]),
    }


def _version_or_none(value: str | None) -> str | None:
    return None if value in _NONE or (value or "").startswith("[FAIL]") else value


def _gigabytes(text: str | None) -> float | None:
    found = re.match(r"([\d.]+) ([MGT])B", text or "")  # "15.25 GB"
    return float(found[1]) * {"M": 1 / 1024, "G": 1, "T": 1024}[found[2]] if found else None


def _dotted(lines: list[str], label: str) -> str | None:
    pattern = re.compile(rf"(?:^|\s){label} \.+\s+(.*\S|)\s*$")
    return next((found[1] for line in lines if (found := pattern.search(line))), None)


def _mismatch(nvcc: object, torch_cuda: object) -> str | None:
    return f"nvcc {nvcc} vs torch cuda {torch_cuda}" if nvcc and torch_cuda and nvcc != torch_cuda else None
