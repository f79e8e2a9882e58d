"""Which nodes are asked to test their GPUs, and why others are not."""

from __future__ import annotations

from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Answer
from ncheck.model.node import Node
from ncheck.model.phase import NotAsked
from ncheck.parse.nvidia_smi import Gpu
from ncheck.probe.gpu_test import gpu_questions
from ncheck.settings import Settings

IDLE = Gpu(0, "NVIDIA A100-SXM4-80GB", "GPU-0", "0000:0f:00.0", 80 << 30, 1 << 20)

AMD = Gpu(0, "AMD Instinct MI300X", "", "0000:15:00.0")


def gpus(*found: Gpu, vendor: str = "NVIDIA") -> Facts:
    return {GpuFacts: GpuFacts(found, "550.54", "12.4", "nvml", vendor=vendor)}


def asked(settings: Settings, **known: Facts) -> dict[str, object]:
    """Return the arguments and the time limit of each node's question, or the reason and whether it is unknown."""
    questions = gpu_questions(Cluster(tuple(map(Node, known)), known), known, settings, 8.0)
    found: dict[str, object] = {}
    for node, (one,) in questions.items():
        if isinstance(one, NotAsked):
            found[node] = (one.reason, one.failed)
        elif isinstance(one, Answer):
            found[node] = (one.arguments, one.timeout)
    return found


def test_idle_gpus_are_tested_and_every_other_node_has_its_reason() -> None:
    busy = Gpu(3, IDLE.name, "GPU-3", IDLE.pci, 80 << 30, 40 << 30)
    mig = {**gpus(IDLE), GpuHealthFacts: GpuHealthFacts((GpuHealth(0, mig=True),))}
    nodes = {"idle": gpus(IDLE), "busy": gpus(IDLE, busy), "mig": mig, "amd": gpus(AMD, vendor="AMD"),
             "parts": gpus(AMD, AMD, vendor="AMD"), "none": {}}  # fmt: skip
    quick = Settings(gpu_test="quick")
    idle = (
        {"gpus": [{"uuid": "GPU-0", "pci": "0000:0f:00.0"}], "vendor": "NVIDIA", "force": False, "seconds": 2.0},
        8.0,
    )
    of_amd = ({"gpus": [{"uuid": AMD.pci, "pci": AMD.pci}], "vendor": "AMD", "force": False, "seconds": 2.0}, 8.0)
    assert asked(quick, **nodes) == {
        "idle": idle, "busy": ("GPU 3 is in use", True), "mig": ("MIG is on", False),
        "amd": of_amd, "parts": ("the GPUs are partitioned, or their PCI addresses are not known", False),
        "none": ("no GPU of NVIDIA or AMD is known", False),
    }  # fmt: skip
    assert asked(Settings(gpu_test="quick", force=True), busy=nodes["busy"])["busy"] != ("GPU 3 is in use", True)
