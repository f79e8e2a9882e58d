"""The launchers: how each is called and what it needs, and by which variables its ranks know their place.

To add one: a row here, and a function in ncheck.plan.launchers that makes its command line. What a name of a variable
cannot say about a rank is read by a function in ncheck.rank_variables. This is imported inside jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncheck.lazy_dataclass import dataclass


@dataclass(frozen=True)
class RankVariables:
    """Names of the variables that a launcher sets in each process that it starts; "" where it sets none.

    `depth`: where several launchers started a process, the one with the greatest depth started it last. `runs`: the
    packages that a job of this launcher certainly uses.
    """

    name: str
    depth: int
    rank: str
    size: str
    local_rank: str = ""
    local_size: str = ""
    node: str = ""
    nodes: str = ""
    node_name: str = ""
    job: tuple[str, ...] = ()
    drawn: str = ""  # one of `job` that the launcher draws at random, and that no command line shows
    attempt: str = ""
    marks: tuple[str, ...] = ()  # what else is set, so that no other launcher is taken for this one
    runs: tuple[str, ...] = ()


_TORCHRUN = RankVariables(
    "torchrun", 6, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
    job=("TORCHELASTIC_RUN_ID",), attempt="TORCHELASTIC_RESTART_COUNT", marks=("TORCHELASTIC_RUN_ID",),
    runs=("torch",),
)  # fmt: skip
_HYDRA = RankVariables(
    "MPICH", 2, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", node_name="PMI_HOSTNAME",
    job=("SLURM_JOB_ID",), marks=("MPI_LOCALNRANKS",),
)  # fmt: skip
# Bare variables, also those of oneflow, which sets nothing else; and other process managers, such as HPE's.
BARE = RankVariables("variables", 5, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", runs=("oneflow", "torch"))
_PMI = RankVariables("PMI", 0, "PMI_RANK", "PMI_SIZE", job=("PALS_APID",))


@dataclass(frozen=True)
class Launcher:
    """What ncheck knows about a launcher.

    `package` is the Python package that provides it. `port` is where the ranks meet on the job's first node: the
    launcher's default, or what its users usually write if it has no default; 0 if it needs none. `uses_ssh`: it logs
    in to the nodes over ssh. `one_command`: one command starts all ranks; otherwise every node has its own.
    `by_mpi`: it needs an MPI. `port_everywhere`: every node opens that port, not the first one alone.
    `own_address`: the variable with each node's own address, of a server that chooses one by itself otherwise.
    `programs` and `modules` are regular expressions of its programs and daemons, and of what it is called after
    `python -m`.
    """

    package: str = ""
    port: int = 0
    uses_ssh: bool = False
    one_command: bool = False
    by_mpi: bool = False
    port_everywhere: bool = False
    own_address: str = ""
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    variables: tuple[RankVariables, ...] = ()


LAUNCHER_TABLE: Mapping[str, Launcher] = {
    "mpirun": Launcher(
        uses_ssh=True, one_command=True, by_mpi=True,
        programs=("mpirun", r"mpiexec(?:\.\w+)?", "orterun", "prterun", "prte", "orted", "prted", "hydra_pmi_proxy",
                  "hydra_bstrap_proxy"),
        variables=(
            RankVariables(
                "Open MPI", 3, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", nodes="OMPI_MCA_orte_num_nodes",
                node_name="PMIX_HOSTNAME", job=("OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE"),
                drawn="OMPI_MCA_orte_precondition_transports",
            ),
            replace(
                _HYDRA, name="Intel MPI", depth=3, node="HYDRA_BSTRAP_NODE_ID", node_name="HYDRA_BSTRAP_LOCALHOST",
                job=("I_MPI_HYDRA_UUID",), marks=(*_HYDRA.marks, "I_MPI_HYDRA_UUID"),
            ),
            _HYDRA,
        ),
    ),
    "horovodrun": Launcher(
        "horovod", uses_ssh=True, one_command=True, by_mpi=True,
        programs=("horovodrun",), modules=(r"horovod\.runner\S*",),
        variables=(
            RankVariables(
                "horovodrun", 4, "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
                node_name="HOROVOD_HOSTNAME", job=("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"),
            ),
        ),
    ),
    "torchrun": Launcher(
        "torch", port=29400, programs=("torchrun",), modules=(r"torch\.distributed\.(?:run|launch)",),
        variables=(_TORCHRUN,),
    ),
    "srun": Launcher(
        one_command=True, programs=("srun",),
        variables=(
            RankVariables(
                "srun", 1, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", node="SLURM_NODEID",
                nodes="SLURM_STEP_NUM_NODES", node_name="SLURMD_NODENAME",
                job=("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"), attempt="SLURM_RESTART_COUNT",
                marks=("SLURM_STEP_ID",),  # a batch script has no step
            ),
        ),
    ),
    "deepspeed": Launcher(
        "deepspeed", port=29500, uses_ssh=True, one_command=True,
        programs=("deepspeed",), modules=(r"deepspeed\.launcher\.\w+",),
        variables=(
            RankVariables(
                "deepspeed", 6, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE",
                marks=("LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"), runs=("deepspeed", "torch"),
            ),
        ),
    ),
    "accelerate": Launcher(
        "accelerate", port=29500, programs=("accelerate",), modules=(r"accelerate\.commands\.launch",),
        variables=(
            replace(
                _TORCHRUN, name="accelerate", depth=7, marks=(*_TORCHRUN.marks, "ACCELERATE_MIXED_PRECISION"),
                runs=("accelerate", "torch"),
            ),
        ),
    ),
    "paddle": Launcher(
        "paddle", port=38714, modules=(r"paddle\.distributed\.launch",),
        variables=(
            RankVariables(
                "paddle", 6, "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_RANK_IN_NODE", "PADDLE_LOCAL_SIZE",
                nodes="PADDLE_NNODES", job=("PADDLE_TRAINER_ENDPOINTS",), marks=("PADDLE_TRAINER_ENDPOINTS",),
                runs=("paddle",),
            ),
        ),
    ),
    "oneflow": Launcher(
        "oneflow", port=9988, port_everywhere=True, modules=(r"oneflow\.distributed\.launch",),
    ),
    "tensorflow": Launcher("tensorflow", port=2222, port_everywhere=True),
    "vllm": Launcher("vllm", port=6379, own_address="VLLM_HOST_IP"),  # Ray's port
    "sglang": Launcher("sglang", port=20000, own_address="SGLANG_HOST_IP"),
    "ray": Launcher("ray", port=6379),
}  # fmt: skip

# What a plan can be printed for: a launcher, exports for a shell, or the lines of a configuration file.
LAUNCHERS = (*LAUNCHER_TABLE, "env", "nccl.conf")

MEETING_PORTS = {name: known.port for name, known in LAUNCHER_TABLE.items() if known.port}

# The innermost first.
RANK_VARIABLES: tuple[RankVariables, ...] = tuple(
    sorted(
        (BARE, _PMI, *(one for launcher in LAUNCHER_TABLE.values() for one in launcher.variables)),
        key=lambda one: -one.depth,
    )
)
