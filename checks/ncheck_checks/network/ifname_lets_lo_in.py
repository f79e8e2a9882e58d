"""NCCL_SOCKET_IFNAME leaves interfaces out, and lets lo in

## What it finds
Nodes on which NCCL_SOCKET_IFNAME, from the environment or a configuration file, is a list of what to avoid, such as
`^docker0`, without lo. The list takes the place of NCCL's own, which avoids docker, lo and virbr, and lo comes first
in the kernel's order: NCCL picks 127.0.0.1. This names the setting; that NCCL picks lo, nccl-would-pick-virtual tells.

## Why it matters
Each rank then tells the others to call 127.0.0.1, which is themselves. The job hangs before its first step, and only
where it runs on more than one node.

## What to type
`export NCCL_SOCKET_IFNAME=^lo,docker`, or better `export NCCL_SOCKET_IFNAME='=eth0'`, which says what is meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.choice import choices
from ncheck.nccl.settings import interface_setting, releases_of
from ncheck.parse.interface_names import Kind


@node_check(
    "NC323", Severity.WARNING, NicFacts, EnvironmentFacts, also=(LoadedNcclFacts,), mended_by="NCCL_SOCKET_IFNAME"
)
def ifname_lets_lo_in(node: NodeView) -> Iterator[Problem]:
    library = node.maybe(LoadedNcclFacts)
    found = choices(node[NicFacts], node[EnvironmentFacts], library)
    setting = interface_setting(node[EnvironmentFacts], releases_of(library)[-1])
    if setting and setting.negated and any(nic.kind is Kind.LOOPBACK for nic in found[-1].used):
        avoided = ",".join(("lo", *setting.entries))
        fix = setting.command_to_set(f"^={avoided}" if setting.exact else f"^{avoided}")
        yield Problem(f"{setting.described} leaves out {', '.join(setting.entries)}, and lets lo in", fix)
