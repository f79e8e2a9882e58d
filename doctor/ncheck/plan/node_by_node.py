"""Values that are each node's own: where they may stand, and what to type so that they stand there.

Never ~/.nccl.conf: in a home that the nodes share it would give all of them one value. What stands in the
environment outweighs the files, and so do the lines of a plan, which set each node's own themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck.facts.environment import EnvironmentFacts
from ncheck.hostlist import fold
from ncheck.model.plan import Setting
from ncheck.nccl.choice import placed_settings
from ncheck.parity import nodes_by_value

MACHINES_FILE = "/etc/nccl.conf"


OWN = "each node has its own"


OwnValues = Mapping[str, Mapping[str, Setting]]


def own_values(variable: str, values: Mapping[str, str], reason: str) -> dict[str, dict[str, Setting]]:
    """Return one variable's values as LaunchPlan.per_node holds them."""
    return {node: {variable: Setting(value, reason)} for node, value in values.items()}


def merged(*parts: OwnValues) -> dict[str, dict[str, Setting]]:
    """Return several variables' values together, by node."""
    nodes = dict.fromkeys(node for part in parts for node in part)
    return {node: {name: one for part in parts for name, one in part.get(node, {}).items()} for node in nodes}


def lines_to_type(
    variable: str, values: Mapping[str, str], environments: Mapping[str, EnvironmentFacts], release: tuple[int, ...]
) -> Iterator[str]:
    """Yield the line for each node, nodes of which it is the same together. NCCL's own variables only."""
    lines = {node: _line(variable, value, environments[node], release) for node, value in values.items()}
    for line, nodes in nodes_by_value(lines).items():
        yield f"{variable} on {fold(nodes)}: {line}"


def _line(variable: str, value: str, environment: EnvironmentFacts, release: tuple[int, ...]) -> str:
    """Return a line that makes /etc/nccl.conf set it; of two lines of one name NCCL takes the first."""
    _, place = placed_settings(environment, release).get(variable, ("", None))
    assignment = f"{variable}={value}"
    if place == MACHINES_FILE:
        return f"sudo sed -i {quote(f's|^{variable}=.*|{assignment}|')} {MACHINES_FILE}"
    line = f"echo {quote(assignment)} | sudo tee -a {MACHINES_FILE}"
    if place == "":
        return f"unset {variable}; {line}"
    return line if place is None else f"sed -i {quote(f'/^{variable}=/d')} {quote(place)}; {line}"
