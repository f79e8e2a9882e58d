r"""Locked memory is limited on a node with InfiniBand or RoCE

## What it finds
Nodes with an Active HCA port where a login that runs one command, as launchers do, may not lock memory without limit.
Root outside a container is above the limit and is not named.

## Why it matters
The HCA works on memory that must not be moved, so NCCL and MPI lock it. With the usual 8 MiB they stop with
"ibv_reg_mr failed" or "ibv_create_qp failed", though all works in a shell whose limit was raised by hand.

## What to type
As root on the named nodes, then log in again:
`printf '* soft memlock unlimited\n* hard memlock unlimited\n' > /etc/security/limits.d/90-memlock.conf`.
In a container, start it with `docker run --ulimit memlock=-1`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.login import IdentityFacts

FIX = r"printf '* soft memlock unlimited\n* hard memlock unlimited\n' > /etc/security/limits.d/90-memlock.conf"


@node_check("NC602", Severity.ERROR, LimitsFacts, InfinibandFacts, also=(IdentityFacts, InterpreterFacts))
def memlock_limited(node: NodeView) -> Iterator[Problem | NotApplicable]:
    who, python, limit = node.maybe(IdentityFacts), node.maybe(InterpreterFacts), node[LimitsFacts].memlock
    contained = isinstance(python, InterpreterFacts) and python.container != ""
    if not any(port.state == "Active" for port in node[InfinibandFacts].ports):
        yield NotApplicable("no Active HCA port")
    elif limit is not None and (contained or not isinstance(who, IdentityFacts) or who.user_id != 0):
        fix = "docker run --ulimit memlock=-1" if contained else FIX
        yield Problem(f"locked memory is limited to {limit // 1024} KiB", fix)
