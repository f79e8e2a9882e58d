"""NCCL_SOCKET_IFNAME excludes interfaces, but not lo

## What it finds
Nodes on which NCCL_SOCKET_IFNAME, from the environment or a configuration file, lists interfaces to exclude, such as
`^docker0`, but not lo. Such a list replaces NCCL's default, which excludes docker, lo and virbr. The kernel lists lo
first, so NCCL picks 127.0.0.1. This check names the setting; nccl-would-pick-virtual reports the interface that NCCL
picks.

## Why it matters
Each rank then tells the others to connect to 127.0.0.1, which is themselves. The job hangs before its first step, and
only if it runs on more than one node.

## What to type
`export NCCL_SOCKET_IFNAME=^lo,docker`, or better `export NCCL_SOCKET_IFNAME='=eth0'`, which names the interface.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import Kind, NicFacts
from ncheck.nccl.choice import choices
from ncheck.nccl.settings import interface_setting, releases_of


@node_check(
    "NC323", Severity.WARNING, NicFacts, EnvironmentFacts, also=(LoadedNcclFacts,), mended_by="NCCL_SOCKET_IFNAME"
)
def ifname_lets_lo_in(node: NodeView) -> Iterator[Problem]:
    library = node.maybe(LoadedNcclFacts)
    found = choices(node[NicFacts], node[EnvironmentFacts], library)
    setting = interface_setting(node[EnvironmentFacts], releases_of(library)[-1])
    if setting and setting.negated and any(nic.kind is Kind.LOOPBACK for nic, _ in found[-1].used):
        avoided = ",".join(("lo", *setting.entries))
        fix = setting.set_to(f"^={avoided}" if setting.exact else f"^{avoided}")
        message = f"{setting.described} excludes {', '.join(setting.entries)}, but not lo"
        yield Problem(message, fix.line, look=fix.look)
