"""A limit on all processes or open files is too low or nearly reached

## What it finds
Nodes whose control group allows fewer than 512 processes and threads per GPU (4096 for eight GPUs, 512 without one), or
where four fifths are in use of: the processes and threads of the control group, those of the whole node
(kernel.threads-max, kernel.pid_max), the open files of the whole node (fs.file-max). Podman's default of 2048 is enough
for four GPUs. The numbers per GPU are a rule of thumb: a rank with its data loaders has 50 to 500 threads.

## Why it matters
At the limit no thread or process starts, not even a shell: "Resource temporarily unavailable", "can't start new
thread", "fork: retry", and with files "Too many open files in system".

## What to type
For a container, `docker run --pids-limit=-1`. Otherwise `cat /proc/self/cgroup` names the group; that of a systemd
login has more with `sudo systemctl set-property user-UID.slice TasksMax=infinity`. For a whole node, `sudo sysctl -w
kernel.pid_max=4194304` or `sudo sysctl -w fs.file-max=2097152` (the value of NCCL's guide). `ps -eo nlwp,user,comm
--sort=-nlwp | head` shows what has the most threads.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_load import HostLoadFacts, Use
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.interpreter import InterpreterFacts

PER_GPU = 512  # processes and threads
NEARLY = 0.8  # of a limit
ENOUGH_FILES = 2097152  # the value of NCCL's guide
MOST_THREADS = "ps -eo nlwp,user,comm --sort=-nlwp | head"


@node_check("NC619", Severity.WARNING, HostSettingsFacts, HostLoadFacts, also=(GpuFacts, InterpreterFacts))
def node_limit_low(node: NodeView) -> Iterator[Problem]:
    group, load, gpus = node[HostSettingsFacts].threads, node[HostLoadFacts], node.maybe(GpuFacts)
    needed = PER_GPU * max(1, len(gpus.gpus) if isinstance(gpus, GpuFacts) else 0)
    if group is not None and group.limit < needed:
        message = f"a control group allows {group.limit} processes and threads; a job here needs {needed}"
        python = node.maybe(InterpreterFacts)
        contained = isinstance(python, InterpreterFacts) and python.container != ""
        fix = "start the container again with --pids-limit=-1" if contained else "cat /proc/self/cgroup"
        yield Problem(
            message, fix, (group.folder,), look=not contained, do=contained, summary="few processes are allowed"
        )
    elif group is not None and group.used is not None and group.used >= NEARLY * group.limit:
        message = f"{group.used} of the {group.limit} processes and threads of a control group are in use"
        yield Problem(message, MOST_THREADS, (group.folder,), look=True, summary="few processes can start")
    if _near(load.threads):
        yield Problem(_message("processes and threads", load.threads), MOST_THREADS, look=True)
    if _near(load.files):
        limit = max(ENOUGH_FILES, 2 * load.files.limit if load.files else 0)
        yield Problem(_message("open files", load.files), f"sudo sysctl -w fs.file-max={limit}")


def _near(use: Use | None) -> bool:
    """Tell whether a limit is nearly reached. More than it allows are in use only if it is that of a container."""
    return use is not None and NEARLY * use.limit <= use.used <= use.limit


def _message(what: str, use: Use | None) -> str:
    return f"{use.used} of the {use.limit} {what} of the node are in use" if use else ""
