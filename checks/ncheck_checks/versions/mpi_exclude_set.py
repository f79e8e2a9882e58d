"""Open MPI's settings exclude interfaces on some nodes only

## What it finds
Nodes where OMPI_MCA_btl_tcp_if_exclude or OMPI_MCA_oob_tcp_if_exclude is set, or the same parameter in
~/.openmpi/mca-params.conf or in Open MPI's own openmpi-mca-params.conf, while other nodes have no such list. Where
every node has one, the launch plan leaves its own option out.

## Why it matters
The launch plan names the network with btl_tcp_if_include and oob_tcp_if_include. Open MPI accepts only one of the two
lists, wherever they are set: "Two mutually-exclusive MCA variables were specified"; ranks then cannot reach each other,
and mpirun's daemons find no interface.

## What to type
Remove the line from the file that the finding names (`grep -n tcp_if_exclude
~/.bashrc ~/.openmpi/mca-params.conf`); or give every node the same list.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_settings import EXCLUDING, MpiSetting, MpiSettingsFacts, excluded_everywhere
from ncheck.login_variables import parameter_removed


@cluster_check("NC212", Severity.ERROR, MpiSettingsFacts, MpiFacts)
def mpi_exclude_set(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    mpi, settings = cluster.facts(MpiFacts), cluster.facts(MpiSettingsFacts)
    everywhere = excluded_everywhere(settings)
    for node, facts in settings.items():
        if mpi[node].implementation != "Open MPI":
            yield NotApplicable("only Open MPI has these settings", (node,))
            continue
        for name in EXCLUDING:
            if name in facts.settings and name not in everywhere:
                yield _problem(node, name, facts.settings[name])


def _problem(node: str, name: str, setting: MpiSetting) -> Problem:
    include = name.replace("exclude", "include")
    message = f"Open MPI accepts either {setting.described} or the launch plan's {include}, not both"
    fix = parameter_removed(setting)
    return Problem(message, fix.line, nodes=(node,), look=fix.look)
