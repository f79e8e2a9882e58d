r"""Locked memory is limited on a node with InfiniBand or RoCE

## What it finds
Nodes with an Active HCA port where a non-interactive login, as launchers use it, has a limit on locked memory. Root
outside a container is exempt from the limit and is not reported.

## Why it matters
The HCA accesses memory that must stay in place, so NCCL and MPI lock it. With the usual limit of 8 MiB they stop with
"ibv_reg_mr failed" or "ibv_create_qp failed", although everything works in a shell with a raised limit.

## What to type
As root on the named nodes, then log in again:
`printf '* soft memlock unlimited\n* hard memlock unlimited\n' > /etc/security/limits.d/90-memlock.conf`.
For a container, start it with `docker run --ulimit memlock=-1`.
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
    identity, python, limit = node.maybe(IdentityFacts), node.maybe(InterpreterFacts), node[LimitsFacts].memlock
    contained = isinstance(python, InterpreterFacts) and python.container != ""
    if not any(port.state == "Active" for port in node[InfinibandFacts].ports):
        yield NotApplicable("no Active HCA port")
    elif limit is not None and (contained or not isinstance(identity, IdentityFacts) or identity.user_id != 0):
        fix = "docker run --ulimit memlock=-1" if contained else FIX
        yield Problem(f"locked memory is limited to {limit // 1024} KiB", fix)
