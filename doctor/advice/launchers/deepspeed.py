"""DeepSpeed's line: it starts every node itself by pdsh, from a file of hosts with slots.

Of its own environment it passes on what begins with NCCL, PYTHON, UCX, MV2 or MLFLOW, and the lines of .deepspeed_env
in the home or the current folder (DeepSpeed source, launcher/runner.py). Its options for ssh differ by version.
"""

from __future__ import annotations

import re

from doctor.advice.launch import Launch, Line, NoLineError, script, typed
from doctor.hostlist import quoted

PASSED_ON = ("NCCL", "PYTHON", "UCX", "MV2", "MLFLOW")
HOSTS = "deepspeed.hosts"

# --lr=0.1  a b  (pdsh puts a number in for %n; 0.9 leaves alone what begins with a dash, and quotes all else)
_ARRIVES = re.compile(r"[\w@+=:,./-]+|(?!-)[\w@+=:,./ -]+")


def deepspeed_line(launch: Launch) -> Line:
    """Return one line, to be typed on the first node; for several nodes it writes their file first.

    Raises NoLineError for values that are each node's own: its words reach the nodes' shells unquoted, so that none can
    be told there to choose; and for words of the program that would not arrive as they are.
    """
    if own := sorted({name for host in launch.hosts for name in host.own}):
        told = f"deepspeed sets the same values on all nodes, and {', '.join(own)} is each node's own"
        raise NoLineError(f"{told}; torchrun starts such a program, too: --for torchrun")
    program = script(launch.program, module="--module", bare="--no_python")
    if not launch.several:
        slots = str(launch.ranks)
        return Line(typed([*launch.environment, "deepspeed", "--num_gpus", slots, *program]))
    if lost := [word for word in program if not _ARRIVES.fullmatch(word)]:
        raise NoLineError(f"deepspeed gives {quoted(lost[0])} to the nodes' shells unquoted: put it into a script")
    written = typed(["printf", "%s slots=%s\\n", *_rows(launch)]) + f" > {HOSTS}"
    meeting = ["--master_addr", launch.meeting, "--master_port", str(launch.meeting_port)]
    started = typed([*launch.environment, "deepspeed", "--hostfile", HOSTS, *meeting, *program])
    return Line(f"{written} && {started}", tuple(_reasons(launch)))


def _rows(launch: Launch) -> list[str]:
    rows = zip(launch.names, launch.hosts, strict=True)
    return [word for name, host in rows for word in (name, str(host.slots))]


def _reasons(launch: Launch) -> list[str]:
    told = [f"it writes {HOSTS} here, in the form that deepspeed reads, and needs pdsh here"]
    kept = [name for name in launch.variables if not name.startswith(PASSED_ON)]
    if kept:
        rows = " ".join(typed([f"{name}={launch.variables[name]}"]) for name in kept)
        told.append(f"deepspeed passes {', '.join(kept)} to no other node: printf '%s\\n' {rows} >> ~/.deepspeed_env")
    if launch.ssh_arguments:
        told.append(f"its ssh must be told {launch.ssh_arguments} by ~/.ssh/config")
    return told
