"""The stack limit is unlimited, which makes the stacks of NCCL's threads small

## What it finds
Nodes where a non-interactive login has an unlimited stack (`ulimit -s`) and the job loads an NCCL before 2.28.

## Why it matters
With an unlimited stack, the GNU C library gives every thread only 2 MB instead of 8 MB. NCCL's search for rings and
trees may need more: the job dies with a segmentation fault while communicators are made, most often with many GPUs
connected by NVLink. NCCL 2.28 asks for enough by itself. The source is NCCL's guide, "Runtime and MPI issues".

## What to type
`ulimit -s 8192` before the job starts, on every node: in the job script, or the line of the finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.login_variables import limit_set_to, set_at
from ncheck.nccl.settings import release_of

ASKS_BY_ITSELF = (2, 28)


@node_check("NC616", Severity.WARNING, HostSettingsFacts, LoadedNcclFacts, LimitsFacts, also=(IdentityFacts,))
def stack_unlimited(node: NodeView) -> Iterator[Problem]:
    release = release_of(node[LoadedNcclFacts].version)
    if node[HostSettingsFacts].stack_unlimited and () < release < ASKS_BY_ITSELF:
        version = node[LoadedNcclFacts].version
        limits = node[LimitsFacts]
        fix = limit_set_to("8192", "stack", limits, node.maybe(IdentityFacts), hard=False)
        message = f"the stack is unlimited: threads of NCCL {version} get 2 MB and may crash"
        yield Problem(message, fix.line, set_at(limits.set_in.get("stack", ())), look=fix.look)
