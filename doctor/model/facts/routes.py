"""Whether this node's kernel knows a route to where other nodes' NCCL would wait: asked, and nothing was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RouteFacts:
    """The addresses that were asked about, each with why there is no route to it; "" where there is one."""

    routes: Mapping[str, str]
