"""The port at which a launcher meets by default is taken

## What it finds
The default port of the frameworks that are installed, such as 29500 of torch, taken by another program on the first
node while nobody named a port for the job.

## Why it matters
A job that is started without a port of its own stops with "Address already in use". One that names another port, or
uses none, as mpirun does, is not concerned.

## What to type
`ncheck plan nodes.txt --master-port 29501` plans with another port; `sudo ss -tnap 'sport = :29500'` on the node shows
who has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.links import ListenFacts
from ncheck.facts.login import LoginFacts
from ncheck.network.job_ports import taken


@node_check("NC317", Severity.WARNING, ListenFacts, also=(LoginFacts,))
def default_port_taken(node: NodeView) -> Iterator[Problem]:
    return taken(node, assumed=True)
