"""A launcher's default port is taken

## What it finds
Another program uses the default port of an installed framework, such as 29500 of torch, on the first node, and no port
was given for the job.

## Why it matters
A job that is started without its own port stops with "Address already in use". A job that uses another port, or none
(as with mpirun), is not affected.

## What to type
`ncheck plan nodes.txt --master-port 29501` plans with another port; `sudo ss -tnap 'sport = :29500'` on the node shows
the program that uses it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.links import ListenFacts
from ncheck.nccl.job_ports import taken


@node_check("NC317", Severity.WARNING, ListenFacts)
def default_port_taken(node: NodeView) -> Iterator[Problem]:
    return taken(node, assumed=True)
