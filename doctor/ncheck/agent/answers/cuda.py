"""What a job uses of CUDA beside the driver: the toolkit that it would compile with, and cuDNN.

Files say both; only an nvcc that has none of them beside it is run.
"""

import json
import os
import re
import shutil

from ncheck.agent import loader
from ncheck.agent.answers.nccl_loaded import TORCH
from ncheck.agent.answers.nccl_places import layout
from ncheck.agent.commands import run
from ncheck.agent.elf import Library
from ncheck.agent.files import leaf, matching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Tuple

    from ncheck.agent.commands import Environment
    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Sources

CUDA = "/usr/local/cuda"
CUDNN = ("/usr/lib/*-linux-gnu", "/usr/lib64", CUDA + "*/lib64")
READS = (
    "CUDA_HOME, CUDA_PATH, nvcc on the PATH, {}: which is there; and in it {}".format(
        CUDA, "version.json, version.txt, include/cuda.h; where it has none of these, nvcc --version"
    ),
    "the names of libcudnn.so.* in LD_PRELOAD, LD_LIBRARY_PATH, the job's site-packages, the list of ldconfig -p, "
    + ", ".join(CUDNN),
    "the names of nvidia_cudnn_cu*.dist-info beside them, cudnn_version.h",
    "which libcudnn torch's libtorch_cuda.so asks for; it is not run",
)

# Besides torch; those for CPUs alone have other names, or open none. jax for GPUs comes with one of these.
_OTHERS = ("tensorflow", "jax-cuda", "paddlepaddle-gpu", "oneflow", "mxnet-cu", "cupy-cuda")


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"toolkit": {"path", "version"}|None, "cudnn": {"path", "version"}|None, "copies": [version]}.

    `copies` are those of cuDNN that are installed for all programs. A version is null where no file says it; "error" is
    there instead of it where that could not be found out.
    """
    job = sources.job
    folders = [*{os.path.dirname(path) for path in loader.cached("libcudnn.so.")}, *_matching(CUDNN)]
    copies = {_cudnn_version(path) or "" for folder in folders for path in matching(folder + "/libcudnn.so.*")}
    return {"toolkit": _toolkit(job.environment, timeout), "cudnn": _cudnn(job), "copies": sorted(copies - {""})}


def _toolkit(environment: "Environment", timeout: float) -> "Optional[Dict[str, object]]":
    """Return the toolkit that torch and setuptools compile with: the first of these places that has a compiler."""
    nvcc = shutil.which("nvcc", path=environment.get("PATH", os.defpath))
    on_path = os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else None
    for root in (environment.get("CUDA_HOME"), environment.get("CUDA_PATH"), on_path, CUDA):
        if root and os.path.exists(os.path.join(root, "bin", "nvcc")):
            real = os.path.realpath(root)
            version = _version_in(real)
            own = {"version": version} if version else _reported_by(real + "/bin/nvcc", environment, timeout)
            return dict(own, path=real)
    return None


def _version_in(root: str) -> "Optional[str]":
    try:
        version: "Optional[str]" = json.loads(_text(root + "/version.json"))["cuda"]["version"]
    except (ValueError, KeyError, TypeError):
        pass
    else:
        return version
    # CUDA Version 10.2.89
    release = re.match(r"CUDA Version (\d+\.\d+\.\d+)", _text(root + "/version.txt"))
    if release:
        return release.group(1)
    for header in _matching((root + "/include/cuda.h", root + "/targets/*/include/cuda.h")):
        # #define CUDA_VERSION 12040
        defined = re.search(r"(?m)^#define CUDA_VERSION (\d+)", _text(header))
        if defined:
            return "{}.{}".format(int(defined.group(1)) // 1000, int(defined.group(1)) % 1000 // 10)
    return None


def _reported_by(nvcc: str, environment: "Environment", timeout: float) -> "Dict[str, Optional[str]]":
    """Ask an nvcc that is a wrapper of the one in the toolkit."""
    reply = run([nvcc, "--version"], timeout / 2, environment)
    if reply["status"] != "ok":
        return {"error": "nvcc --version: {}".format(reply["reason"])}
    # Cuda compilation tools, release 12.4, V12.4.131
    release = re.search(r"release (\d+\.\d+),", reply["stdout"])
    return {"version": release.group(1) if release else None}


def _cudnn(job: "JobSetup") -> "Optional[Dict[str, Optional[str]]]":
    """Return the copy that the job's framework loads, {"error"}, or None where it has none that loads one by itself."""
    if not job.path:
        return None
    python = layout(job)
    if not python["prefix"]:
        return {"error": "{} did not report where its packages are".format(job.path)}
    wheels = [os.path.join(folder, "nvidia", "cudnn", "lib") for folder in python["path"]]
    path = None
    try:
        library, name = _asked_for_by_torch(python["torch"]) if python["torch"] else (None, None)
    except (OSError, ValueError) as error:
        return {"error": "torch's library: {}".format(error)}
    if name:
        path, _ = loader.resolve(job, library, name, wheels)
        if not path:
            return {"error": "torch needs {}, and the loader finds none".format(name)}
    elif any(package.startswith(_OTHERS) for package in (job.printed("ncheck:", 10.0) or {}).get("packages", ())):
        path = _opened_by_name(job, wheels)
    return {"path": os.path.realpath(path), "version": _cudnn_version(path)} if path else None


def _asked_for_by_torch(torch: str) -> "Tuple[Optional[Library], Optional[str]]":
    """Return torch's library and the name of the cuDNN that it asks for; (None, None) where it asks for none."""
    for path in matching(torch + "/lib/libtorch_*.so"):
        if os.path.basename(path) in TORCH:
            library = Library(path)
            for name in library.needed():
                if name.startswith("libcudnn.so"):
                    return library, name
    return None, None


def _opened_by_name(job: "JobSetup", wheels: "Iterable[str]") -> "Optional[str]":
    """Return the newest in the first place that has one."""
    for folders in (loader.library_path(job.environment), wheels):
        for folder in folders:
            for path in reversed(matching(folder + "/libcudnn.so.[0-9]*")):
                return path
    return max(loader.cached("libcudnn.so."), key=os.path.basename, default=None)


def _cudnn_version(path: str) -> "Optional[str]":
    """Return "9.1.0": by the file's name, for a wheel by that of its metadata, else by the header beside it."""
    path = os.path.realpath(path)
    # libcudnn.so.9.1.0
    named = re.search(r"\.so\.(\d+\.\d+\.\d+)$", path)
    folder = os.path.dirname(path)
    if not named:
        # nvidia_cudnn_cu12-9.1.0.70.dist-info
        wheels = matching(os.path.abspath(folder + "/../../..") + "/nvidia_cudnn_cu*-*.dist-info")
        named = re.search(r"-([\d.]+)\.dist-info$", wheels[0]) if len(wheels) == 1 else None
    if named:
        return named.group(1)
    # #define CUDNN_MAJOR 9
    header = _text(folder + "/../include/cudnn_version.h")
    numbers = dict(re.findall(r"(?m)^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) (\d+)", header))
    return "{MAJOR}.{MINOR}.{PATCHLEVEL}".format(**numbers) if len(numbers) > 2 else None


def _matching(patterns: "Iterable[str]") -> "List[str]":
    return [path for pattern in patterns for path in matching(pattern)]


def _text(path: str) -> str:
    text = leaf(os.path.realpath(path))
    return text if isinstance(text, str) else ""
