"""Lists of installed packages (dpkg, apt, rpm, dnf, pip, uv, conda): only what a job's software is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ncheck.expression import expression
from ncheck.parse.capture import lines_of

_JOB = expression(
    r"(?:python3-)?(?:torch(?:vision|audio)?|pytorch(?:-cuda|-lightning)?|tensorflow(?:[_-]\w+)?|jax(?:lib)?|jax-cuda\d+-\w+"
    r"|horovod|deepspeed|apex|mpi4py|mxnet(?:-\w+)?|paddlepaddle(?:-gpu)?|oneflow|flash[_-]attn|transformer[_-]engine"
    r"|nvidia-dali-\w+|accelerate|lightning|megatron[\w-]*|vllm|sglang|triton|ray|xformers|cudatoolkit|cuda-toolkit"
    r"|cuda-runtime|cuda-version|cudnn|nvidia-(?:cuda-runtime|cudnn|cublas)(?:-cu\d+)?|libcudnn\d+(?:-dev)?"
    r"|cuda-(?:toolkit|drivers|runtime|compat)-[\d-]+|cuda-drivers|nvidia-driver-\S+|openmpi(?:-bin|-devel)?"
    r"|libopenmpi(?:\d+|-dev)|mpich|libmpich\d+|mvapich2\S*|ucx|libucx0|rdma-core|libibverbs1?|mlnx-ofed\S*|ofed-scripts"
    r"|rccl|rocm-core|amdgpu-dkms|aws-ofi-nccl|nvidia-fabricmanager\S*|datacenter-gpu-manager)(?::\w+)?"
)

# torch                    2.4.0+cu121        torch==2.4.0+cu121        [pip3] torch==2.4.0
_PIP = expression(r"^\s*(?:\[\w+\]\s+)?([A-Za-z][\w.\-]*)(?:==|\s+)(\d[\w.+!\-]*)(?:\s|$)")

# pytorch                   2.4.0           py3.11_cuda12.1_cudnn9.1.0_0    pytorch
_CONDA = expression(r"^\s*(?:\[conda\]\s+)?([a-z_][\w.\-]*)\s+(\d[\w.+!\-]*)\s+(\w+_\w+|\w*\d)\s*(?:\s\S+)?\s*$")

# ii  openmpi-bin        4.1.2-2ubuntu1       amd64        high performance message passing library
_DPKG = expression(r"^\s*[ih]i\s+([a-z0-9][\w.+:\-]+)\s+(\d\S*)")

# openmpi-bin/jammy,now 4.1.2-2ubuntu1 amd64 [installed]
_APT = expression(r"^\s*([a-z0-9][\w.+\-]+)/\S+\s+(\d\S*)\s+(?:amd64|arm64|all|ppc64el)\b")

# openmpi-4.1.1-7.el9.x86_64
_RPM = expression(
    r"^\s*([A-Za-z][\w.+]*(?:-[A-Za-z][\w.+]*)*)-(\d[\w.+~^]*-\w[\w.+~^]*?)\.(?:x86_64|aarch64|noarch|ppc64le)\s*$"
)

# openmpi.x86_64                  1:4.1.1-7.el9                  @appstream
_DNF = expression(r"^\s*([A-Za-z][\w.+\-]*)\.(?:x86_64|aarch64|noarch|ppc64le)\s+(\d\S*)\s+@?\S+\s*$")

_HEADINGS = {
    "pip": expression(r"^\s*Package\s+Version\b"),
    "conda": expression(r"^# packages in environment at|^#?\s*Name\s+Version\s+Build\b"),
    "dpkg": expression(r"^Desired=Unknown/Install/Remove|^\|\|/ Name\s+Version|^Listing\.\.\."),
    "rpm": expression(r"^Installed Packages\s*$"),
}

_ROWS: Mapping[str, Sequence[re.Pattern[str]]] = {
    "dpkg": (_DPKG, _APT), "rpm": (_RPM, _DNF), "conda": (_CONDA, _PIP), "pip": (_PIP,),
}  # fmt: skip

_FROZEN = expression(r"^\s*(?:\[\w+\]\s+)?[A-Za-z][\w.\-]*(?:\[[\w,]+\])?==\d[\w.+!\-]*\s*$")
_ENOUGH = 3  # rows without a heading that make a list


def parse_software(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the package manager, and the packages that matter to a job with their versions; None for other text."""
    lines = lines_of(text)
    manager = next((name for name, heading in _HEADINGS.items() if any(heading.match(line) for line in lines)), None)
    manager = manager or _by_rows(lines)
    if manager is None:
        return None
    found: dict[str, str] = {}
    for line in lines:
        row = next((row for pattern in _ROWS[manager] if (row := pattern.match(line))), None)
        if row and _JOB.fullmatch(row[1].lower()):
            found.setdefault(row[1].partition(":")[0], row[2])
    return manager, found


def _by_rows(lines: Sequence[str]) -> str | None:
    """Return the manager of a list without its heading: rows that no other text has."""
    for manager, patterns in (("dpkg", (_DPKG, _APT)), ("rpm", (_RPM, _DNF)), ("pip", (_FROZEN,))):
        if sum(any(pattern.match(line) for pattern in patterns) for line in lines) >= _ENOUGH:
            return manager
    return None
