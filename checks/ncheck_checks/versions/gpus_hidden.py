"""CUDA_VISIBLE_DEVICES hides GPUs of a node from the job

## What it finds
Nodes where CUDA_VISIBLE_DEVICES, in the environment that a job gets there, shows fewer GPUs than the node has: a line
left in a start-up file, a word that means no GPU and ends the list. Where the slots in the list say how many are
wanted, they are compared with it instead (`ncheck explain NC208`); where MIG parts are named, nothing is said.

## Why it matters
Programs see the rest only, numbered anew from 0. Launchers that start a rank for each GPU start fewer here than
elsewhere, or ask for one that is not shown ("invalid device ordinal").

## What to type
`unset CUDA_VISIBLE_DEVICES`, and look where it is set: `grep -n CUDA_VISIBLE_DEVICES ~/.bashrc ~/.profile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import ListingFacts
from ncheck.topology.gpus import VARIABLE, visible_gpus


@node_check("NC211", Severity.WARNING, GpuFacts, ListingFacts, EnvironmentFacts)
def gpus_hidden(node: NodeView) -> Iterator[Problem | NotApplicable]:
    there, seen = len(node[GpuFacts].gpus), visible_gpus(node[GpuFacts], node[EnvironmentFacts])
    if seen is None or node[ListingFacts].slots is not None:
        yield NotApplicable("parts of GPUs are named (MIG)" if seen is None else "the list says how many are wanted")
    elif seen < there:
        value = node[EnvironmentFacts].variables[VARIABLE]
        yield Problem(
            f"{VARIABLE} shows {seen} of its {there} GPUs", f"unset {VARIABLE}", (f"{VARIABLE}={quote(value)}",)
        )
