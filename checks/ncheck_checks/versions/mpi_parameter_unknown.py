"""Open MPI has no parameter of a name that is set

## What it finds
Variables OMPI_MCA_* of a login that set a parameter which `ompi_info` of the job's Open MPI does not list, and whose
name is written like one that it lists: OMPI_MCA_btl_tcp_if_inculde. Other names are not reported: they may belong to a
part that this node does not load, or to PRRTE.

## Why it matters
Open MPI ignores a parameter that it does not know, and says nothing: the setting has no effect.

## What to type
Give the variable its right name where it is set. `ompi_info --param btl tcp --level 9` lists the parameters of a part.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.login_variables import removed, renamed


@node_check("NC239", Severity.WARNING, MpiDaemonFacts, EnvironmentFacts)
def mpi_parameter_unknown(node: NodeView) -> Iterator[Problem]:
    environment = node[EnvironmentFacts]
    for found in node[MpiDaemonFacts].parameters:
        wanted, places = f"OMPI_MCA_{found.near}", environment.start_up.get(found.variable, ())
        beside = wanted in environment.variables
        fix = removed(places, found.variable) if beside else renamed(places, found.variable, wanted)
        message = f"{found.variable} has no effect: this Open MPI has no such parameter, but {found.near}"
        yield Problem(message, fix.line, look=fix.look, summary=f"{found.variable} has no effect")
