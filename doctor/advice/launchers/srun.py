"""srun's line: Slurm starts the ranks and passes the environment on; the listed names are taken for its node names."""

from __future__ import annotations

from doctor.advice.launch import Launch, Line, typed
from doctor.hostlist import fold


def srun_line(launch: Launch) -> Line:
    """Return the line. A value with a comma would end there in --export, so such a one is set in front of it."""
    per_node = launch.alike("srun", "--ntasks-per-node")
    plain = [f"{name}={value}" for name, value in launch.variables.items() if "," not in value]
    others = [f"{name}={value}" for name, value in launch.variables.items() if "," in value]
    words = [*(["env", *others] if others else []), "srun", "-N", str(len(launch.hosts))]
    words += ["-w", fold(launch.names)] if launch.several else []
    words += [f"--ntasks-per-node={per_node}"]
    gpus = {host.gpus for host in launch.hosts}
    words += [f"--gpus-per-node={gpus.pop()}"] if len(gpus) == 1 and 0 not in gpus else []
    words += [f"--export={','.join(['ALL', *plain])}", *launch.program_anywhere]
    return Line(typed(words), ("a program that uses MPI may need --mpi as well: srun --mpi=list shows what there is",))
