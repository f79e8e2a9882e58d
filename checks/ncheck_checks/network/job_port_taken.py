"""The job's port is taken

## What it finds
A port that was given for the job (`--master-port`, `--need-port`, the launcher of `--for`) and that another program
uses on the first node, or on any node if the job needs it on each: `--need-port`, and those of OneFlow and TensorFlow.
ncheck opens the port as the job would. A closed connection in TIME_WAIT is no obstacle, because
launchers can open such a port. A port that this user may not open is reported too.

## Why it matters
The first rank stops with "Address already in use". If a rank of an earlier job is still listening, it is worse: the new
ranks join the old job and wait forever.

## What to type
`sudo ss -tnap 'sport = :29500'` on the node shows the program, and `ps -o user,lstart,args -p PID` when it was started.
Stop it if it is yours, or use another port: `ncheck plan nodes.txt --master-port 29501`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.links import ListenFacts
from ncheck.nccl.job_ports import taken


@node_check("NC316", Severity.ERROR, ListenFacts, next_step="fix-first")
def job_port_taken(node: NodeView) -> Iterator[Problem]:
    return taken(node, assumed=False)
