"""Settings of the job's variables, for all nodes or for each node, and the commands that write the latter to a file.

The file is never ~/.nccl.conf: a home directory that the nodes share would give all of them the same value. The
environment takes precedence over these files, and so do the plan's command lines, which set the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from ncheck.facts.environment import EnvironmentFacts
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.plan import Setting
from ncheck.nccl.settings import PLAIN, lasting
from ncheck.parity import nodes_by_value
from ncheck.plan.networks import Network
from ncheck.text import typable

# The end of the reason of a setting that has no single value.
PER_NODE = "set on each node separately"

PerNode = Mapping[str, Mapping[str, Setting]]


@dataclass(frozen=True)
class Advice:
    """Settings, notes on what could not be decided, and the job's network: None if none was or could be chosen.

    `per_node`: see LaunchPlan.
    """

    env: Mapping[str, Setting]
    notes: tuple[str, ...] = ()
    network: Network | None = None
    per_node: PerNode = field(default_factory=dict)


def per_node_values(variable: str, values: Mapping[str, str], reason: str) -> dict[str, dict[str, Setting]]:
    """Return one variable's values as LaunchPlan.per_node has them."""
    return {node: {variable: Setting(value, reason)} for node, value in values.items()}


def merged(*parts: PerNode) -> dict[str, dict[str, Setting]]:
    """Return the values of several variables together, by node."""
    nodes = dict.fromkeys(node for part in parts for node in part)
    return {node: {name: value for part in parts for name, value in part.get(node, {}).items()} for node in nodes}


def commands_to_set(
    variable: str, values: Mapping[str, str], environments: Mapping[str, EnvironmentFacts], release: tuple[int, ...]
) -> Iterator[str]:
    """Yield the command that sets one of NCCL's variables on each node; nodes with the same command together."""
    commands = {
        node: lasting(variable, value, environments[node], release, everywhere=False).line
        for node, value in values.items()
        if set(value) <= PLAIN  # sed reads a value as its own language
    }
    for command, nodes in nodes_by_value(commands).items():
        if typable(command):
            yield f"{variable} on {fold(nodes)}: {command}"
