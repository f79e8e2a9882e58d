"""Under the plan's own variables NCCL picks another interface than the plan means

## What it finds
Nodes on which the NCCL that the job loads, asked under the variables that the plan proposes, picks an address of
another interface, or none at all. Something weighs more than the plan there, such as an NCCL_SOCKET_FAMILY in the
environment or in a configuration file, or ncheck has reasoned wrongly: either way the plan does not hold.

## Why it matters
A job that is started by the plan's line would meet somewhere else than planned, or hang.

## What to type
`ip -br address` on the named node; take the named setting away, and run `ncheck plan nodes.txt --for env` again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.planned_pick import PlannedPickFacts
from ncheck.nccl.choice import located
from ncheck.nccl.settings import settings_that_steer_the_choice


@node_check("NC324", Severity.ERROR, PlannedPickFacts, NicFacts, EnvironmentFacts)
def plan_not_followed(node: NodeView) -> Iterator[Problem | NotApplicable]:
    tried = node[PlannedPickFacts]
    pick, plan = tried.pick, " ".join(f"{name}={value}" for name, value in tried.variables.items())
    if pick.rendezvous and not pick.error:
        yield NotApplicable("NCCL_COMM_ID is set: NCCL takes that address as it is, and picks none")
        return
    owners = [nic.name for nic, _ in located(node[NicFacts], pick)] if pick.address else []
    if pick.scope or not set(owners) & set(tried.interfaces):
        others = settings_that_steer_the_choice(node[EnvironmentFacts], pick.version, tried.variables)
        where = (owners or [pick.address])[0] + (" at a link-local address" if pick.scope else "")
        found = f"picks {where}" if pick.address else f"stops: {pick.error}"
        meant = f"under the plan's {plan}, which means {' or '.join(tried.interfaces) or 'no interface'}"
        evidence = (f"asked NCCL {pick.version} itself", *(f"{setting.described} counts, too" for setting in others))
        yield Problem(f"{meant}, NCCL {found}", others[0].command_to_set("") if others else "ip -br address", evidence)
