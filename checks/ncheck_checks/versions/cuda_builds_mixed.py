"""Packages of one interpreter were built for different CUDA releases

## What it finds
In the job's interpreter: the NCCL or cuDNN wheels of two CUDA releases (nvidia-nccl-cu12 beside nvidia-nccl-cu13); and
packages whose name or version says another major CUDA release, or another torch release, than the installed torch has:
nvidia-dali-cuda120, transformer-engine-cu12, flash-attn 2.5.8+cu122torch2.3, torchvision 0.18.0+cu118. A package that
does not say what it was built for is not judged, such as apex.

## Why it matters
Wheels of two CUDA releases write the same file, nvidia/nccl/lib/libnccl.so.2: the one that was installed last wins, and
`import torch` fails with "undefined symbol: ncclCommResume" or the like (pytorch issue 186591). torchvision refuses to
run ("PyTorch and torchvision were compiled with different CUDA major versions"); a package for another torch fails at
its import with "undefined symbol"; DALI for CUDA 12 and later loads the libraries of its own CUDA release, which a
node with torch's alone lacks.

## What to type
`python3 -m pip list | grep -i -E 'cu1|cuda|torch'` on the named nodes. Remove the package of the wrong release and
install the other one again: `python3 -m pip uninstall nvidia-nccl-cu12`, then `python3 -m pip install --force-reinstall
--no-deps nvidia-nccl-cu13==VERSION`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.expression import expression
from ncheck.facts.interpreter import InterpreterFacts, TorchBuild

# The wheels of all CUDA releases put their library at the same place.
_SAME_FILE = {"nvidia-nccl-cu": "libnccl.so.2", "nvidia-cudnn-cu": "libcudnn"}

# What a package was built for, these say in their names, and those in their versions.
_BY_NAME = ("nvidia-dali-cuda", "transformer-engine-cu")
_BY_VERSION = ("flash-attn", "torchvision", "torchaudio", "apex", "transformer-engine")

# nvidia-dali-cuda120    |    transformer-engine-cu12    |    2.5.8+cu122torch2.3cxx11abifalse    |    0.18.0+cu118
_CUDA = expression(r"(?:-cuda?|\+cu)(\d\d)")

# 2.5.8+cu122torch2.3cxx11abifalse
_TORCH = expression(r"\+.*torch(\d+\.\d+)")


@node_check("NC216", Severity.WARNING, InterpreterFacts)
def cuda_builds_mixed(node: NodeView) -> Iterator[Problem | NotApplicable]:
    python = node[InterpreterFacts]
    found = [*_same_file(python), *(_built_for_another(python, python.torch) if python.torch else ())]
    if found:
        look = f"{quote(python.path)} -m pip list | grep -i -E 'cu1|cuda|torch'"
        yield Problem("; ".join(found), look, look=True, summary="packages for different CUDA releases")
    elif not python.libraries:
        yield NotApplicable("no package that was built for a CUDA release")


def _same_file(python: InterpreterFacts) -> Iterator[str]:
    for prefix, file in _SAME_FILE.items():
        wheels = sorted(name for name in python.libraries if name.startswith(prefix))
        if len(wheels) > 1:
            named = " and ".join(f"{name} {python.libraries[name]}" for name in wheels)
            yield f"{named} overwrite each other's {file}"


def _built_for_another(python: InterpreterFacts, torch: TorchBuild) -> Iterator[str]:
    major = torch.cuda.partition(".")[0]
    for name, version in python.libraries.items():
        text = name if name.startswith(_BY_NAME) else version if name in _BY_VERSION else ""
        cuda, release = _CUDA.search(text), _TORCH.search(text)
        if cuda and major and cuda[1] != major:
            yield f"{name} {version} is for CUDA {cuda[1]}, and torch {torch.version} for CUDA {torch.cuda}"
        elif release and not torch.version.startswith(release[1] + "."):
            yield f"{name} {version} is for torch {release[1]}, and torch is {torch.version}"
