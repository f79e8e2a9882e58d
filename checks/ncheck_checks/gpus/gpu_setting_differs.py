"""A setting or the firmware of the GPUs differs between nodes

## What it finds
Nodes whose GPUs have another persistence mode, ECC mode, compute mode, power limit, application clock or maximum clock
than those of most nodes with the same GPU model, and nodes whose own GPUs differ. Other versions of the firmware
(VBIOS, InfoROM) are for information only: a card that was replaced often has newer ones. Where all are alike nothing is
reported, whatever they have.

## Why it matters
Without persistence mode the driver lets go of an idle GPU: the first program waits seconds for it, which another rank
may take for a hang, and settings such as clocks are lost. Without ECC a memory error is not noticed, and results are
wrong. With an exclusive compute mode a second process on a GPU, such as an evaluation, ends with "CUDA-capable
device(s) is/are busy or unavailable". A GPU with a lower power limit or lower clocks is slow under load, and every
all-reduce waits for it. Firmware decides clocks, power and the handling of errors.

## What to type
The line of the finding on the named nodes: `sudo nvidia-smi -pm 1` (better: `sudo systemctl enable --now
nvidia-persistenced`), `sudo nvidia-smi -e 1` and a reboot, `sudo nvidia-smi -c 0`, `sudo nvidia-smi -pl WATTS`,
`sudo nvidia-smi -ac MEMORY,CORES`. `nvidia-smi -q -d POWER,CLOCK` shows what a GPU has, and what it has by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check, fold, split
from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts, unread_nodes
from ncheck.lazy_dataclass import dataclass

_ON_OFF = {0: "disabled", 1: "enabled"}
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
_COMPUTE_LINES = {0: "sudo nvidia-smi -c DEFAULT", 3: "sudo nvidia-smi -c EXCLUSIVE_PROCESS"}


@dataclass(frozen=True)
class _Setting:
    """`value`: of one GPU, None where it does not have it. `line`: what gives a GPU the value that this one has, "" if
    nobody should type that. `default`: what a GPU has where nobody changed it.
    """

    name: str
    value: Callable[[GpuHealth], str | None]
    line: Callable[[GpuHealth], str] = lambda _: ""
    default: Callable[[GpuHealth], str | None] = lambda _: None
    severity: Severity = Severity.WARNING


_SETTINGS = (
    _Setting(
        "persistence mode", lambda gpu: _ON_OFF.get(_number(gpu.persistence)),
        lambda gpu: f"sudo nvidia-smi -pm {gpu.persistence}",
    ),
    _Setting("ECC", lambda gpu: _ON_OFF.get(_number(gpu.ecc_mode)), lambda gpu: f"sudo nvidia-smi -e {gpu.ecc_mode}"),
    _Setting(
        "the compute mode", lambda gpu: _COMPUTE_MODES.get(_number(gpu.compute_mode)),
        lambda gpu: _COMPUTE_LINES.get(_number(gpu.compute_mode), ""),
    ),
    _Setting(
        "the power limit", lambda gpu: _watts(gpu.power_limit),
        lambda gpu: f"sudo nvidia-smi -pl {(gpu.power_limit or 0) // 1000}", lambda gpu: _watts(gpu.power_default),
    ),
    _Setting(
        "the application clock (cores/memory)", lambda gpu: _clocks(gpu.application_clocks),
        lambda gpu: "sudo nvidia-smi -ac {1},{0}".format(*gpu.application_clocks or (0, 0)),
    ),
    _Setting("the maximum clock (cores/memory)", lambda gpu: _clocks(gpu.max_clocks)),
    _Setting("the VBIOS", lambda gpu: gpu.vbios or None, severity=Severity.INFO),
    _Setting("the InfoROM", lambda gpu: gpu.inforom or None, severity=Severity.INFO),
)  # fmt: skip
_NAMES = (
    "persistence", "ecc_mode", "compute_mode", "power_limit", "application_clocks", "max_clocks", "vbios", "inforom",
)  # fmt: skip
_LOOK = "nvidia-smi -q"


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _watts(milliwatts: int | None) -> str | None:
    return f"{milliwatts // 1000} W" if milliwatts else None


def _clocks(both: tuple[int, int] | None) -> str | None:
    return f"{both[0]}/{both[1]} MHz" if both else None


@cluster_check("NC525", Severity.WARNING, GpuHealthFacts, by_kind=True, alone=True)
def gpu_setting_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    health = cluster.facts(GpuHealthFacts)
    yield from unread_nodes(health, "the settings", *_NAMES)
    for setting in _SETTINGS:
        own = {node: _values(facts, setting) for node, facts in health.items()}
        known = {node: " and ".join(sorted({value for _, value in pairs})) for node, pairs in own.items() if pairs}
        mixed = tuple(node for node, pairs in own.items() if _mixed(pairs))
        parted = split(known)
        if parted:
            nodes, message = parted.odd, f"{setting.name} differs: {parted.summary()}"
        elif mixed and (setting.severity is Severity.WARNING or len(health) == 1):
            nodes, message = mixed, f"{setting.name} differs between the GPUs of {fold(mixed)}: {known[mixed[0]]}"
        else:
            continue
        alike = [gpu for facts in health.values() for gpu in facts.gpus]
        wanted = next((gpu for gpu in alike if parted and setting.value(gpu) == parted.majority), None)
        line = setting.line(wanted) if wanted else ""
        defaults = {default for gpu in alike if (default := setting.default(gpu))}
        more = f"; the default is {defaults.pop()}" if len(defaults) == 1 else ""
        summary = f"{setting.name} of GPUs differs"
        yield Problem(
            message + more, line or _LOOK, nodes=nodes, look=not line, summary=summary, severity=setting.severity
        )


def _values(facts: GpuHealthFacts, setting: _Setting) -> set[tuple[str, str]]:
    """Return the model of each GPU with its value; none that does not have this."""
    return {(gpu.name, value) for gpu in facts.gpus if (value := setting.value(gpu))}


def _mixed(pairs: set[tuple[str, str]]) -> bool:
    """Return whether two GPUs of one model have different values; a card for the display may have its own."""
    return len(pairs) > 1 and len(pairs) > len({name for name, _ in pairs})
