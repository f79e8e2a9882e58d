"""What a node answers about its software: interpreter, NCCL, environment, limits, Open MPI, Horovod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doctor.model.evidence import Answer, JsonValue, Reply, Status

if TYPE_CHECKING:
    from .host import Host

VENV = "/opt/train"
NCCL_WHEEL = VENV + "/lib/python3.10/site-packages/nvidia/nccl/lib/libnccl.so.2"


def software_replies(host: Host) -> dict[str, Reply]:
    """Return the agent's answers about software."""
    return {
        Answer("interpreter").key: Reply(Status.OK, value=_interpreter(host), seconds=0.09),
        Answer("nccl").key: Reply(Status.OK, value=_nccl(host), seconds=0.4),
        Answer("environment").key: Reply(Status.OK, value=_environment(), seconds=0.001),
        Answer("limits").key: Reply(Status.OK, value=_limits(host), seconds=0.001),
    }


def _interpreter(host: Host) -> JsonValue:
    packages: JsonValue = {"horovod": host.horovod, "nvidia-nccl-cu12": host.nccl, "torch": host.torch}
    return {
        "path": VENV + "/bin/python3",
        "real_path": "/usr/bin/python3.10",
        "version": host.python,
        "prefix": VENV,
        "how": "active venv",
        "packages": packages,
        "container": "",
        "host_name": host.name,
    }


def _nccl(host: Host) -> JsonValue:
    copy: JsonValue = {
        "path": NCCL_WHEEL,
        "origin": "wheel",
        "seen_as": [NCCL_WHEEL],
        "version": host.nccl,
        "cuda": host.cuda,
    }
    loaded: JsonValue = {"version": host.nccl, "path": NCCL_WHEEL, "static": False, "how": "import torch, then ask"}
    return {"copies": [copy], "loaded": loaded}


def _environment() -> JsonValue:
    return {"variables": {}, "job_variables": {}, "secret": [], "files": {"/etc/nccl.conf": None, "~/.nccl.conf": None}}


def _limits(host: Host) -> JsonValue:
    return {
        "memlock": host.memlock,
        "open_files": 1048576,
        "stack": 8388608,
        "processes": 4126000,
        "shm": {"total": 1081101176832, "free": 1081100128256},
    }


def check_build(host: Host) -> str:
    """Return what `horovodrun --check-build` prints."""
    return f"""\
Horovod v{host.horovod}:

Available Frameworks:
    [ ] TensorFlow
    [X] PyTorch
    [ ] MXNet

Available Controllers:
    [X] MPI
    [X] Gloo

Available Tensor Operations:
    [X] NCCL
    [ ] DDL
    [ ] CCL
    [X] MPI
    [X] Gloo
"""
