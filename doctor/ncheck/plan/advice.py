"""What a part of the plan's makers has to say: settings, values of each node's own, and notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ncheck.model.plan import Setting
from ncheck.plan.networks import Network
from ncheck.plan.node_by_node import OwnValues


@dataclass(frozen=True)
class Advice:
    """The settings, what could not be decided, and the network that was chosen: None where there is none to choose.

    `per_node`: see LaunchPlan.
    """

    env: Mapping[str, Setting]
    notes: tuple[str, ...] = ()
    network: Network | None = None
    per_node: OwnValues = field(default_factory=dict)
