"""Locked memory is limited on a node with InfiniBand or RoCE

## What it finds
Nodes with an Active HCA port where a non-interactive login, as launchers use it, has a limit on locked memory. Who has
the capability IPC_LOCK is exempt and is not reported: root on the machine itself, or a container with `--cap-add
IPC_LOCK`, but not root in a user namespace (rootless Docker, Podman).

## Why it matters
The HCA accesses memory that must stay in place, so NCCL and MPI lock it. With the usual limit of 8 MiB they stop with
"ibv_reg_mr failed" or "ibv_create_qp failed", although everything works in a shell with a raised limit.

## What to type
The line of the finding on the named nodes, then log in again: it edits the start-up file or the file of PAM that sets
the limit, where one was found, or else adds one in /etc/security/limits.d.
For a container, start it with `docker run --ulimit memlock=-1`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Fix, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.login import IdentityFacts
from ncheck.login_variables import limit_set_to, set_at


@node_check(
    "NC602", Severity.ERROR, LimitsFacts, InfinibandFacts, also=(HostSettingsFacts, IdentityFacts, InterpreterFacts)
)
def memlock_limited(node: NodeView) -> Iterator[Problem | NotApplicable]:
    python, limit = node.maybe(InterpreterFacts), node[LimitsFacts].memlock
    contained = isinstance(python, InterpreterFacts) and python.container != ""
    if not any(port.state == "Active" for port in node[InfinibandFacts].ports):
        yield NotApplicable("no Active HCA port")
    elif limit is not None and not _exempt(node, contained=contained):
        limits = node[LimitsFacts]
        fix = limit_set_to("unlimited", "memlock", limits, node.maybe(IdentityFacts))
        if contained and not limits.set_in.get("memlock"):
            fix = Fix("start the container again with --ulimit memlock=-1", do=True)
        evidence = set_at(limits.set_in.get("memlock", ()))
        yield Problem(f"locked memory is limited to {limit // 1024} KiB", fix.line, evidence, look=fix.look, do=fix.do)


def _exempt(node: NodeView, *, contained: bool) -> bool:
    """Tell whether the login may lock memory beyond its limit; root may, if its capabilities could not be read."""
    settings, identity = node.maybe(HostSettingsFacts), node.maybe(IdentityFacts)
    if isinstance(settings, HostSettingsFacts) and settings.locks_memory is not None:
        return settings.locks_memory
    return not contained and isinstance(identity, IdentityFacts) and identity.user_id == 0
