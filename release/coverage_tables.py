"""What interrupts jobs, by published tables, and when ncheck sees it: before the job, while it hangs, in its logs.

The figures are those of the papers; the judgement of what is seen is ours. A check or a cause of triage that is added
is added to the lines that it belongs to; a test proves that all that are named here exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(str, Enum):
    """When a cause is seen. A cause may be seen at several times."""

    BEFORE = "before"  # a check looks for it before the job starts
    LIVE = "live"  # triage of a job that hangs names it
    LOGS = "logs"  # triage of a job's logs names it
    EFFECT = "effect"  # only what follows from it is named: a node that is gone, a rank that is slow
    NOT_SEEN = "not_seen"


@dataclass(frozen=True)
class Cause:
    """One row of a table. `count`: how often it was the cause; None: no figure was found.

    `checks` are codes of checks, `live` and `logs` causes that triage names (see docs/causes.md); with `effect` these
    name only what follows from this cause. `missed` says what of it is not seen, or why nothing is.
    """

    name: str
    count: int | None = None
    checks: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    missed: str = ""
    effect: bool = False

    @property
    def levels(self) -> tuple[Level, ...]:
        """When it is seen, at least in part."""
        triage = (
            {Level.EFFECT: self.live + self.logs} if self.effect else {Level.LIVE: self.live, Level.LOGS: self.logs}
        )
        seen = {Level.BEFORE: self.checks, **triage}
        return tuple(level for level, by in seen.items() if by) or (Level.NOT_SEEN,)


@dataclass(frozen=True)
class Table:
    """A published table. `what` is counted; `source` says where the figures were found."""

    name: str
    title: str
    what: str
    source: str
    causes: tuple[Cause, ...]

    @property
    def total(self) -> int | None:
        """The sum of the rows; None for a table without figures."""
        counts = [cause.count for cause in self.causes if cause.count is not None]
        return sum(counts) if counts else None

    def count_of(self, level: Level) -> int:
        """Return how many cases have a cause that is seen at this time, at least in part."""
        return sum(cause.count or 0 for cause in self.causes if level in cause.levels)

    @property
    def named(self) -> int:
        """How many cases have a cause that is itself seen at some time, at least in part."""
        return sum(cause.count or 0 for cause in self.causes if {*cause.levels} - {Level.EFFECT, Level.NOT_SEEN})


# What looks at the same hardware is named once.
_GPU = (
    "NC501", "NC505", "NC506", "NC511", "NC520", "NC529", "NC530", "NC531", "NC534", "NC540", "NC548", "NC628",
)  # fmt: skip
_NVLINK = ("NC504", "NC529", "NC530", "NC548")
_GPU_MEMORY = ("NC506", "NC521", "NC522")
_GPU_HOT = ("NC523", "NC524", "NC710", "NC720")
_FABRIC = (
    "NC401", "NC402", "NC403", "NC404", "NC405", "NC412", "NC413", "NC414", "NC415", "NC421", "NC425", "NC426", "NC427",
    "NC428", "NC430", "NC311", "NC315", "NC365", "NC711", "NC736",
)  # fmt: skip
_NIC = ("NC326", "NC329", "NC401", "NC405", "NC409", "NC410", "NC411", "NC431", "NC550", "NC703", "NC704")
_FULL_DISK = ("NC606", "NC646")
_MOUNTS = ("NC613", "NC614", "NC640", "NC641", "NC642", "NC643", "NC649")
_DISK = ("NC609", "NC620", "NC647", "NC648", "NC658")
_MEMORY = ("NC655", "NC656", "NC661")
_PROCESSOR = ("NC656", "NC657")
_MEMORY_SHORT = ("NC617", "NC621")
_CPU_SHORT = ("NC618", "NC622", "NC624")
_VERSIONS = ("NC201", "NC203", "NC206", "NC216", "NC217", "NC222", "NC533", "NC535", "NC907")

_GONE = (("node_failed",), ("node_failed",))  # live, logs
_EFFECT = True

_LATER = "what breaks after the start leaves no trace before it"
_ECC = "memory errors show only after the first one"
_MACHINE_CHECKS = (
    "an error that stops the node is seen after its next start if the firmware kept it; until then it is gone"
)
_DISKS_HEALTH = "a disk's own report (SMART, wear) needs root and is not read"
_POWER = "no sensor or management controller (BMC) is read; the node is named once it is gone"

LLAMA3 = Table(
    "llama3",
    "Llama 3 405B, 16,384 GPUs, 54 days",
    "unexpected interruptions",
    'Table 5 of "The Llama 3 Herd of Models", arXiv 2407.21783',
    (
        Cause("Faulty GPU", 148, _GPU, ("gpu_fault", "gpu_idle"), ("gpu_fault",), _LATER),
        Cause("GPU HBM3 memory", 72, _GPU_MEMORY, ("gpu_fault",), ("gpu_fault",), _ECC),
        Cause(
            "Software bug", 54, (), ("deadlock", "collective_mismatch", "rank_crashed", "data_loader"),
            ("software_bug", "collective_mismatch", "rank_crashed"), "a program's own bugs show only when it runs",
        ),
        Cause(
            "Network switch or cable", 35, _FABRIC, ("network_stalled", "ib_fabric"), ("ib_fabric",),
            "switches are not asked; a link that fails later is named by its counters and logs",
        ),
        Cause(
            "Host maintenance", 32, ("NC659", "NC660"), ("node_failed",), ("node_failed", "job_ended"),
            "what is announced neither by systemd on the node nor by Slurm, such as by a cloud", effect=_EFFECT,
        ),
        Cause("GPU SRAM memory", 19, _GPU_MEMORY, ("gpu_fault",), ("gpu_fault",), _ECC),
        Cause("GPU system processor", 17, ("NC505", "NC506"), ("gpu_fault",), ("gpu_fault",), _LATER),
        Cause("NIC", 7, _NIC, ("network_stalled", "ib_fabric"), ("ib_fabric",), _LATER),
        Cause(
            "NCCL watchdog timeouts", 7, (), ("slow_rank_timeout", "rank_missing", "slow_rank"), ("slow_rank_timeout",),
            "a symptom: triage looks for the rank that the others wait for",
        ),
        Cause(
            "Silent data corruption", 6, ("NC702", "NC750"), (), (),
            "two kernels are compared to the bit (--gpu-test); an instruction that they do not use is not seen",
        ),
        Cause(
            "GPU thermal interface and sensor", 6, (*_GPU_HOT, "NC755"), ("slow_rank",), (),
            "a GPU that becomes hot only under load, unless --gpu-test is given", _EFFECT,
        ),
        Cause("SSD", 3, _DISK, ("storage_hang",), ("storage_hang",), _DISKS_HEALTH),
        Cause("Power supply", 3, (), *_GONE, _POWER, _EFFECT),
        Cause("Server chassis", 2, (), *_GONE, _POWER, _EFFECT),
        Cause(
            "IO expansion board", 2, ("NC326", "NC501", "NC550"), ("gpu_fault",), ("gpu_fault",),
            "it is named by the GPU or the NIC that it takes along, or by the PCIe errors of a bridge", _EFFECT,
        ),
        Cause("Dependency", 2, _VERSIONS, ("version_mismatch",), ("version_mismatch",), "which one, is not said"),
        Cause("CPU", 2, _PROCESSOR, *_GONE, _MACHINE_CHECKS, _EFFECT),
        Cause("System memory", 2, _MEMORY, *_GONE, _MACHINE_CHECKS, _EFFECT),
    ),
)  # fmt: skip

BYTEROBUST = Table(
    "byterobust",
    "ByteRobust, 778,135 jobs, three months",
    "incidents",
    'Table 1 of "Robust LLM Training Infrastructure at ByteDance", arXiv 2509.16293',
    (
        Cause(
            "CUDA error", 19968, (), ("gpu_fault", "gpu_oom"),
            ("gpu_fault", "gpu_oom", "driver_insufficient", "arch_unsupported", "rank_crashed"),
            "a symptom of faulty GPUs and of a program's own errors, which show only when it runs",
        ),
        Cause("Code/data adjustment", 9582, missed="no fault: people restart the job with other code or data"),
        Cause(
            "CPU overload", 6095, _CPU_SHORT, ("data_loader", "slow_rank"), (),
            "what the job's own processes need shows only when it runs",
        ),
        Cause("CPU OOM", 5567, _MEMORY_SHORT, ("host_memory",), ("rank_crashed",), "how much a job needs is not known"),
        Cause(
            "Job hang", 5506, (),
            ("deadlock", "rank_missing", "rank_stopped", "collective_mismatch", "data_loader", "network_stalled",
             "storage_hang", "gpu_fault"),
            ("slow_rank_timeout", "collective_mismatch", "wrong_nic"),
            "a symptom; checks of the network find what makes a job hang at its start",
        ),
        Cause(
            "Insufficient disk space", 2755, _FULL_DISK, ("disk_full",), ("disk_full",),
            "a disk that the job fills is seen when it is almost full",
        ),
        Cause(
            "InfiniBand error", 1599, _FABRIC, ("ib_fabric", "network_stalled"), ("ib_fabric", "roce_gid"),
            "a link that fails later is named by its counters and logs",
        ),
        Cause("File-system mount", 1176, _MOUNTS, ("storage_hang",), ("storage_hang",), "mounts that no node has"),
        Cause("HDFS error", 1104, missed="ncheck knows no HDFS"),
        Cause(
            "Container error", 781, ("NC126", "NC540", "NC602", "NC604", "NC610", "NC627", "NC628"), ("shm_too_small",),
            ("container_isolation", "shm_too_small"), "an image that cannot be pulled or started",
        ),
        Cause("MFU decline", 442, ("NC710", "NC711", "NC720", "NC624", "NC751", "NC752"), ("slow_rank", "gpu_idle"), (),
              "a job that becomes slow and goes on"),
        Cause("OS kernel panic", 203, (), *_GONE, "the node is named once it is gone", _EFFECT),
        Cause("GPU memory error", 188, _GPU_MEMORY, ("gpu_fault",), ("gpu_fault",), _ECC),
        Cause("NaN value", 148, ("NC702",), (), ("diverged",), "whether a GPU or the model is to blame", _EFFECT),
        Cause("External service error", 128, missed="no service outside the cluster is asked"),
        Cause("GPU unavailable", 76, _GPU, ("gpu_fault",), ("gpu_fault",), _LATER),
        Cause("Disk fault", 47, _DISK, ("storage_hang",), ("storage_hang",), _DISKS_HEALTH),
    ),
)  # fmt: skip

META_RSC = Table(
    "meta-rsc",
    "Meta's research clusters RSC-1 and RSC-2, 24,000 GPUs, eleven months",
    "failures",
    '"Revisiting Reliability in Large-Scale Machine Learning Research Clusters", arXiv 2410.21680: causes by '
    "a public summary of its text; no counts were found",
    (
        Cause("InfiniBand link", None, _FABRIC, ("ib_fabric", "network_stalled"), ("ib_fabric",), _LATER),
        Cause("File-system mount", None, _MOUNTS, ("storage_hang",), ("storage_hang",), "mounts that no node has"),
        Cause("GPU memory error", None, _GPU_MEMORY, ("gpu_fault",), ("gpu_fault",), _ECC),
        Cause(
            "PCIe error",
            None,
            ("NC501", "NC506", "NC531", "NC548", "NC550", "NC661"),
            ("gpu_fault",),
            ("gpu_fault",),
            "corrected errors, which healthy links have, too",
        ),
        Cause("GPU not accessible", None, _GPU, ("gpu_fault",), ("gpu_fault",), _LATER),
        Cause("NVLink error", None, _NVLINK, ("gpu_fault",), ("gpu_fault", "nvls_failure"), _LATER),
        Cause("GPU system processor (GSP) timeout", None, ("NC505", "NC506"), ("gpu_fault",), ("gpu_fault",), _LATER),
        Cause("NCCL timeout", None, (), ("slow_rank_timeout", "rank_missing"), ("slow_rank_timeout",), "a symptom"),
        Cause("Block device", None, _DISK, ("storage_hang",), ("storage_hang",), _DISKS_HEALTH),
        Cause("Node does not answer", None, (), *_GONE, "why the node is gone", _EFFECT),
        Cause("CPU memory", None, _MEMORY, *_GONE, _MACHINE_CHECKS, _EFFECT),
    ),
)

TABLES = (LLAMA3, BYTEROBUST, META_RSC)


# The document

_LEVELS = {
    Level.BEFORE: "checked before the job",
    Level.LIVE: "named by triage of a job that hangs",
    Level.LOGS: "named by triage of the logs",
    Level.EFFECT: "only its effect is named: a node that is gone, a rank that is slow",
    Level.NOT_SEEN: "not seen",
}

_INTRODUCTION = """# Coverage

What interrupts jobs, as three papers counted it, and which of these causes ncheck sees. The numbers are theirs. Which
check or cause of triage sees what is our own judgement, not a measurement. A cause counts as seen if ncheck sees it at
least in part; the last column says what is missed. "Before the job" means that a check finds the fault if it is there
when the job starts, or starts again on the same nodes: most hardware breaks later, and no check sees it coming. Codes
are explained in [checks.md](checks.md), causes in [causes.md](causes.md).
"""


def as_markdown() -> str:
    """Return the document: docs/coverage.md."""
    return "\n".join([_INTRODUCTION, *map(_section, TABLES)])


def _section(table: Table) -> str:
    parts = [f"## {table.title}\n", f"Source: {table.source}.\n"]
    if table.total is not None:
        parts.append(f"{_headline(table)}\n\n| seen | {table.what} | share |\n|---|---:|---:|")
        parts += [
            f"| {words} | {table.count_of(level):,} | {_share(table.count_of(level), table.total)} |"
            for level, words in _LEVELS.items()
        ]
        parts.append("")
    parts.append(f"| cause | {table.what} | before the job | job hangs | logs | missed |\n|---|---:|---|---|---|---|")
    return "\n".join([*parts, *map(_row, table.causes), ""])


def _headline(table: Table) -> str:
    total, before = table.total or 0, table.count_of(Level.BEFORE)
    return (
        f"Of {total:,} {table.what}, {_share(before, total)} have a cause that ncheck looks for before the job,\n"
        f"and {_share(table.named, total)} one that it looks for or that triage names, each at least in part."
    )


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}"


def _row(cause: Cause) -> str:
    count = "" if cause.count is None else f"{cause.count:,}"
    checks, effect = " ".join(cause.checks), " (its effect)" if cause.effect else ""
    named = (f"{', '.join(names)}{effect}" if names else "no" for names in (cause.live, cause.logs))
    return f"| {cause.name} | {count} | {checks or 'no'} | {' | '.join(named)} | {cause.missed} |"
