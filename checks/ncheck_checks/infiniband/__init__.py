"""InfiniBand and RoCE: ports that are down, slow, missing or without a subnet manager."""

from __future__ import annotations
