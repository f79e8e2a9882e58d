"""Nothing reads a variable of gloo, PyTorch, Horovod or UCX that is set

## What it finds
Variables GLOO_*, TORCH_NCCL_*, HOROVOD_* and UCX_* of a login whose name has a slip: GLOO_SOCKET_IFNAMES,
UCX_NET_DEVICE. Of UCX that is a name which none of its releases has, with one letter more or less than one that they
have, another letter, or two in another order. Names that are like no other may belong to a program that uses these
libraries, and are not reported.

## Why it matters
The setting has no effect. Gloo, PyTorch and Horovod say nothing of a name that they do not know; UCX says it among the
lines of each rank.

## What to type
Give the variable its right name where it is set, as in `sed -i 's/^export UCX_NET_DEVICE=/export UCX_NET_DEVICES=/'
~/.bashrc`. `ucx_info -c -f` lists the names that this UCX reads, with their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.login_variables import removed, renamed
from ncheck.nccl.variables import OF_NCCL, not_read


@node_check("NC345", Severity.WARNING, EnvironmentFacts)
def library_variable_not_read(node: NodeView) -> Iterator[Problem]:
    environment = node[EnvironmentFacts]
    names = sorted(name for name in environment.variables if not name.startswith(OF_NCCL))
    for found in not_read(names, ""):
        places = environment.start_up.get(found.name, ())
        beside = not found.nearest or found.nearest in environment.variables
        fix = removed(places, found.name) if beside else renamed(places, found.name, found.nearest)
        message = f"{found.name} has no effect: {found.why}"
        yield Problem(message, fix.line, look=fix.look, summary=f"{found.name} has no effect")
