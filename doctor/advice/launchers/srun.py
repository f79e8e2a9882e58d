"""srun's line: Slurm starts the ranks and passes the environment on; the listed names are taken for its node names."""

from __future__ import annotations

import re

from doctor.advice.launch import Launch, Line, typed
from doctor.hostlist import fold

# n[1-2].example.org, which Slurm calls an invalid hostlist; r[1-2]n[1-4] it takes
_SUFFIX = re.compile(r"\][^][,]+(?:,|$)")


def srun_line(launch: Launch) -> Line:
    """Return the line. A value with a comma would end there in --export, so such a one is set in front of it."""
    per_node = launch.alike("srun", "--ntasks-per-node")
    plain = [f"{name}={value}" for name, value in launch.variables.items() if "," not in value]
    others = [f"{name}={value}" for name, value in launch.variables.items() if "," in value]
    words = [*(["env", *others] if others else []), "srun", "-N", str(len(launch.hosts))]
    words += ["-w", _listed(launch.names)] if launch.several else []
    words += [f"--ntasks-per-node={per_node}"]
    told = ["a program that uses MPI may need --mpi as well: srun --mpi=list shows what there is"]
    gpus = {host.gpus for host in launch.hosts}
    if len(gpus) == 1 and 0 not in gpus:
        words += [f"--gpus-per-node={gpus.pop()}"]
        told.append("where sinfo -o %G shows (null), Slurm does not count GPUs: leave out --gpus-per-node")
    words += [f"--export={','.join(['ALL', *plain])}", *launch.program_anywhere]
    return Line(typed(words), tuple(told))


def _listed(names: tuple[str, ...]) -> str:
    """Return the nodes as Slurm reads them: its lists have nothing behind their last bracket."""
    folded = fold(names)
    return ",".join(names) if _SUFFIX.search(folded) else folded
