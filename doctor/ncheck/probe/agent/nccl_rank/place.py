"""The rank of this process, on its node and in all: from the parent, or from a launcher's variables."""

from ncheck.probe.agent.nccl_rank.messages import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Optional, Tuple

# Open MPI, PMIx, MPICH and Intel MPI, Slurm; torchrun and horovodrun last, whose names any job may carry.
RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "HOROVOD_RANK", "RANK")
LOCAL = (
    "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID", "HOROVOD_LOCAL_RANK",
    "LOCAL_RANK",
)  # fmt: skip
WORLD = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "HOROVOD_SIZE", "WORLD_SIZE")

SHOWN = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def placed(spec: "Mapping[str, Any]", environ: "Mapping[str, str]") -> "Tuple[int, int, int]":
    """Return (rank, rank on this node, ranks in all)."""
    rank = _number(spec.get("rank"), RANK, environ)
    local = _number(spec.get("local"), LOCAL, environ)
    world = _number(spec.get("world"), WORLD, environ)
    if rank is None:
        raise RankError("no rank: neither the parent nor a launcher's variable ({}) gives one".format(", ".join(RANK)))
    if local is None:
        raise RankError("no rank on this node: none of {} is set".format(", ".join(LOCAL)))
    if world is None or not 0 <= rank < world:
        raise RankError("rank {} of {}: the launcher started other ranks than requested".format(rank, world))
    return rank, local, world


def gpu_of(spec: "Mapping[str, Any]", local: int, environ: "Mapping[str, str]") -> int:
    """Return the index of this rank's GPU among those that the process is shown.

    A launcher that shows each rank one GPU of its own (srun --gpus-per-task=1) leaves it the index 0.
    """
    gpus = spec.get("gpus")
    shown = next((environ[name] for name in SHOWN if environ.get(name)), "")
    if spec.get("rank") is None and shown and "," not in shown:
        return 0
    if not gpus:
        return local
    if local >= len(gpus):
        raise RankError("rank {} of this node has no GPU: {} were found for it".format(local, len(gpus)))
    index: int = gpus[local]
    return index


def _number(given: "Optional[int]", names: "Iterable[str]", environ: "Mapping[str, str]") -> "Optional[int]":
    if given is not None:
        return given
    return next((int(environ[name]) for name in names if environ.get(name, "").isdigit()), None)
