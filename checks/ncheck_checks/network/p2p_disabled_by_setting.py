"""A setting disables direct GPU-to-GPU copies

## What it finds
NCCL_P2P_DISABLE=1, NCCL_P2P_LEVEL=LOC or NCCL_SHM_DISABLE=1, in the job's environment or in nccl.conf, on nodes with
more than one GPU.

## Why it matters
These settings help to find another fault, such as PCIe access control that breaks direct copies. Left behind, they
exclude NVLink from the job: data between GPUs of one node goes through main memory, or even through the network card.

## What to type
Remove the line that sets it; `unset` in a shell changes no login. Where it is set:
`grep -sn NCCL_ ~/.bashrc ~/.profile ~/.nccl.conf /etc/nccl.conf /etc/environment`.
If direct copies do hang here: `ncheck nodes.txt --ignore p2p-disabled-by-setting`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.setting_problems import peers_off
from ncheck.nccl.settings import settings_of


@node_check("NC332", Severity.WARNING, GpuFacts, EnvironmentFacts, also=(LoadedNcclFacts,))
def p2p_disabled_by_setting(node: NodeView) -> Iterator[Problem | NotApplicable]:
    if len(node[GpuFacts].gpus) < 2:  # noqa: PLR2004  it takes two
        yield NotApplicable("fewer than two GPUs")
        return
    for setting, why in peers_off(settings_of(node[EnvironmentFacts], node.maybe(LoadedNcclFacts))):
        fix = setting.set_to("")
        yield Problem(f"{setting.described}: {why}", fix.line, look=fix.look)
