"""A setting of the GPUs differs between nodes

## What it finds
Nodes whose GPUs have another persistence mode, ECC mode or compute mode than those of most nodes with the same GPU
model, and nodes whose own GPUs differ. Where all are alike nothing is reported, whatever they have.

## Why it matters
Without persistence mode the driver lets go of an idle GPU: the first program waits seconds for it, which another rank
may take for a hang, and settings such as clocks are lost. Without ECC a memory error is not noticed, and results are
wrong. With an exclusive compute mode a second process on a GPU, such as an evaluation, ends with "CUDA-capable
device(s) is/are busy or unavailable".

## What to type
The line of the finding on the named nodes: `sudo nvidia-smi -pm 1` (better: `sudo systemctl enable --now
nvidia-persistenced`), `sudo nvidia-smi -e 1` and a reboot, `sudo nvidia-smi -c 0`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check, fold, split
from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts, unread_nodes

_ON_OFF = {0: "disabled", 1: "enabled"}
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}

# A setting, its value of one GPU, what to type where it deviates from the value that most have.
_SETTINGS: tuple[tuple[str, Callable[[GpuHealth], str | None], dict[str, str]], ...] = (
    ("persistence mode", lambda gpu: _ON_OFF.get(_number(gpu.persistence)), {
        "enabled": "sudo nvidia-smi -pm 1", "disabled": "sudo nvidia-smi -pm 0",
    }),
    ("ECC", lambda gpu: _ON_OFF.get(_number(gpu.ecc_mode)), {
        "enabled": "sudo nvidia-smi -e 1", "disabled": "sudo nvidia-smi -e 0",
    }),
    ("the compute mode", lambda gpu: _COMPUTE_MODES.get(_number(gpu.compute_mode)), {
        "default": "sudo nvidia-smi -c DEFAULT", "exclusive process": "sudo nvidia-smi -c EXCLUSIVE_PROCESS",
    }),
)  # fmt: skip
_LOOK = "nvidia-smi -q -d ECC,COMPUTE"


def _number(value: int | None) -> int:
    return -1 if value is None else value


@cluster_check("NC525", Severity.WARNING, GpuHealthFacts, by_kind=True, alone=True)
def gpu_setting_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    health = cluster.facts(GpuHealthFacts)
    yield from unread_nodes(health, "the settings", "persistence", "ecc_mode", "compute_mode")
    for setting, value_of, lines in _SETTINGS:
        values = {node: _values(facts, value_of) for node, facts in health.items()}
        known = {node: value for node, value in values.items() if value}
        parted = split(known)
        mixed = tuple(node for node, facts in health.items() if _mixed(facts, value_of))
        summary = f"{setting} of GPUs differs"
        if parted:
            fix = lines.get(parted.majority or "", _LOOK)
            yield Problem(
                f"{setting} differs: {parted.summary()}", fix, nodes=parted.odd, look=fix == _LOOK, summary=summary
            )
        elif mixed:
            message = f"{setting} differs between the GPUs of {fold(mixed)}: {known[mixed[0]]}"
            yield Problem(message, _LOOK, nodes=mixed, look=True, summary=summary)


def _values(facts: GpuHealthFacts, value_of: Callable[[GpuHealth], str | None]) -> str:
    """Return the values of a node's GPUs, such as "enabled" or "disabled and enabled"; "" if none has this."""
    return " and ".join(sorted({value for gpu in facts.gpus if (value := value_of(gpu))}))


def _mixed(facts: GpuHealthFacts, value_of: Callable[[GpuHealth], str | None]) -> bool:
    """Return whether two GPUs of one model have different values; a card for the display may have its own."""
    values = {(gpu.name, value) for gpu in facts.gpus if (value := value_of(gpu))}
    return len(values) > len({name for name, _ in values})
