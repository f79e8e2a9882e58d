"""The launch plan: the environment and the lines for the job, each value with its reason. Fewer is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# What a line or a file can be made for.
LAUNCHERS = (
    "mpirun", "horovodrun", "torchrun", "srun", "deepspeed", "accelerate", "paddle", "oneflow", "tensorflow", "env",
    "nccl.conf",
)  # fmt: skip


# The port on the job's first node at which its ranks meet, where nobody names another: each launcher's own default,
# and for one that has none (OneFlow, TensorFlow, Paddle) what its users write. mpirun, horovodrun and srun need none.
MEETING_PORTS: Mapping[str, int] = {
    "torchrun": 29400, "deepspeed": 29500, "accelerate": 29500, "paddle": 38714, "oneflow": 9988, "tensorflow": 2222,
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One variable. `value` None means: leave it unset, and `reason` says why nothing need be set.

    `decided` False: what is right could not be told, and `reason` says why.
    """

    value: str | None
    reason: str
    evidence: tuple[str, ...] = ()
    decided: bool = True


@dataclass(frozen=True)
class LaunchPlan:
    """`env` maps a variable to its setting; `lines` maps a launcher to the line to type, and `reasons` to why it is so;
    `notes` say what could not be decided and why. `per_node` maps nodes to the variables whose value is each node's
    own: in `env` these have no value, and no one line can set them for all.
    """

    env: Mapping[str, Setting] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_node: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
