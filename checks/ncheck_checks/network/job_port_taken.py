"""The port that the job was told to meet at is taken

## What it finds
A port that was named for the job (`--master-port`, `--need-port`, the launcher of `--for`) and that another program has
on the first node, found by opening it as the job would. A connection that waits for its last packets takes nothing:
that is how launchers open theirs. A port that this user may not open at all is named too.

## Why it matters
The first rank stops with "Address already in use". Worse is a rank of an earlier job that still listens: the new ranks
join the old job and wait for ever.

## What to type
`sudo ss -tnap 'sport = :29500'` on the node shows the program, `ps -o user,lstart,args -p PID` since when it runs. End
it if it is yours, or take another port: `ncheck plan nodes.txt --master-port 29501`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.links import ListenFacts
from ncheck.facts.login import LoginFacts
from ncheck.network.job_ports import taken


@node_check("NC316", Severity.ERROR, ListenFacts, also=(LoginFacts,))
def job_port_taken(node: NodeView) -> Iterator[Problem]:
    return taken(node, assumed=False)
