"""Open MPI's settings choose an interface that leads to no other node

## What it finds
Nodes where OMPI_MCA_btl_tcp_if_include or OMPI_MCA_oob_tcp_if_include, or the same parameter in
~/.openmpi/mca-params.conf or in Open MPI's own openmpi-mca-params.conf, names an interface or a subnet that the node
does not have, or one that cannot carry a job's data: lo, docker0 or one that is down. So is a btl_tcp_if_exclude or
oob_tcp_if_exclude that every node has, if it leaves lo or docker0 in: it replaces Open MPI's own list.

## Why it matters
mpirun without the options of the launch plan follows these settings: it hangs at the first message over docker0, whose
address every node has, or stops with "At least one pair of MPI processes are unable to reach each other". The launch
plan's own options outweigh them.

## What to type
Remove the line from the file that the finding names (`grep -n tcp_if_include
~/.bashrc ~/.openmpi/mca-params.conf`). `ip -br address` shows the interfaces of the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network

from ncheck import Cluster, NodeView, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_settings import INCLUDING, MpiSetting, MpiSettingsFacts, excluded_everywhere
from ncheck.facts.nics import Interface, Kind, NicFacts
from ncheck.login_variables import parameter_removed


@cluster_check("NC213", Severity.ERROR, MpiSettingsFacts, NicFacts, MpiFacts, mended_by="btl_tcp_if_include")
def mpi_interface_wrong(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    everywhere = excluded_everywhere(cluster.facts(MpiSettingsFacts))
    for node in cluster:
        if node[MpiFacts].implementation == "Open MPI":
            yield from _problems(node, (*INCLUDING, *everywhere))
        else:
            yield NotApplicable("only Open MPI has these settings", (node.name,))


def _problems(node: NodeView, names: Iterable[str]) -> Iterator[Problem]:
    for name in names:
        setting = node[MpiSettingsFacts].settings.get(name)
        if setting and (defect := _defect(_chosen(setting, node[NicFacts]), node[NicFacts])):
            fix = parameter_removed(setting)
            yield Problem(f"{setting.described}: {defect}", fix.line, nodes=(node.name,), look=fix.look)


def _chosen(setting: MpiSetting, nics: NicFacts) -> list[Interface]:
    """Return the interfaces that a list includes, or that it does not exclude."""
    entries = [entry.strip() for entry in setting.value.split(",")]
    listed = [nic for nic in nics.interfaces if any(_matches(entry, nic) for entry in entries)]
    if setting.name in INCLUDING:
        return listed
    return [nic for nic in nics.interfaces if nic.up and nic.addresses and nic not in listed]


def _defect(chosen: list[Interface], nics: NicFacts) -> str:
    """Return what is wrong with these interfaces, "" if they lead to other nodes and nowhere else."""
    if not chosen:
        return "no interface of the node is chosen"
    if local := [nic.name for nic in chosen if nic.kind in (Kind.LOOPBACK, Kind.CONTAINER_BRIDGE)]:
        return f"Open MPI would use {', '.join(local)}, which leads to no other node"
    return "" if any(nic in nics.candidates for nic in chosen) else "it cannot carry data to other nodes"


def _matches(entry: str, nic: Interface) -> bool:
    """Tell whether Open MPI takes this interface for an entry: its name, or a subnet that holds its address."""
    if entry == nic.name:
        return True
    try:
        network = ip_network(entry, strict=False)
    except ValueError:
        return False
    return "/" in entry and any(ip_address(address.ip.partition("%")[0]) in network for address in nic.addresses)
