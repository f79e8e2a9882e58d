"""A container was started without the GPUs of its machine

## What it finds
Containers in which the PCI bus shows GPUs with NVIDIA's driver, and /dev has none of them (/dev/nvidia0, ...).

## Why it matters
The job finds no GPU ("no CUDA-capable device is detected"), or trains on the CPU without a word. The machine is well;
the container was started without `--gpus`, or on Kubernetes without a request for nvidia.com/gpu.

## What to type
`docker run --gpus all`; with the runtime of NVIDIA's toolkit also NVIDIA_VISIBLE_DEVICES=all.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.cuda_init import NO_LIBRARY
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.pci import NVIDIA, PciFacts


@node_check("NC628", Severity.WARNING, PciFacts, HostSettingsFacts, also=(InterpreterFacts,), explains=NO_LIBRARY)
def gpu_device_missing(node: NodeView) -> Iterator[Problem | NotApplicable]:
    gpus = [gpu for gpu in node[PciFacts].gpus(NVIDIA) if gpu.driver == "nvidia"]
    python = node.maybe(InterpreterFacts)
    if not gpus or not isinstance(python, InterpreterFacts) or not python.container:
        yield NotApplicable("no container on a machine with NVIDIA GPUs")
    elif not node[HostSettingsFacts].gpu_devices:
        message = f"this container has none of the {len(gpus)} GPUs of its machine: no /dev/nvidia0"
        yield Problem(message, "start the container again with --gpus all", do=True, summary="a container has no GPU")
