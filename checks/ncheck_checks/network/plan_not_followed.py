"""With the plan's variables, NCCL picks an unplanned interface

## What it finds
Nodes on which the NCCL library that the job loads, asked with the variables of the launch plan, picks an address of
another interface, or none at all. Another setting overrides the plan, such as an NCCL_SOCKET_FAMILY in the environment
or in a configuration file, or ncheck's reasoning is wrong. In both cases the plan does not work.

## Why it matters
A job that is started with the plan's command would meet at another address, or hang.

## What to type
`ip -br address` on the named node; remove the named setting, and run `ncheck plan nodes.txt --for env` again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Fix, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.choice import located
from ncheck.nccl.settings import settings_that_steer_the_choice
from ncheck.plan.planned_pick import PlannedPickFacts


@node_check("NC324", Severity.ERROR, PlannedPickFacts, NicFacts, EnvironmentFacts)
def plan_not_followed(node: NodeView) -> Iterator[Problem | NotApplicable]:
    tried = node[PlannedPickFacts]
    pick, plan = tried.pick, " ".join(f"{name}={value}" for name, value in tried.variables.items())
    if pick.rendezvous and not pick.error:
        yield NotApplicable("NCCL_COMM_ID is set: NCCL uses that address and picks none")
        return
    owners = [nic.name for nic, _ in located(node[NicFacts], pick)] if pick.address else []
    if pick.scope or not set(owners) & set(tried.interfaces):
        others = settings_that_steer_the_choice(node[EnvironmentFacts], pick.version, tried.variables)
        where = (owners or [pick.address])[0] + (" at a link-local address" if pick.scope else "")
        result = f"picks {where}" if pick.address else f"stops: {pick.error}"
        planned = " or ".join(tried.interfaces) or "no interface"
        evidence = (
            f"asked NCCL {pick.version} itself",
            *(f"{setting.described} has an effect too" for setting in others),
        )
        fix = others[0].set_to("") if others else Fix("ip -br address", look=True)
        yield Problem(
            f"with the plan's {plan}, NCCL {result} (planned: {planned})",
            fix.line,
            evidence,
            look=fix.look,
            summary="NCCL does not follow the plan",
        )
