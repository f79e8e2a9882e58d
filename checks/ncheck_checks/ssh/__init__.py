"""The list of nodes, and the way into each of them."""

from __future__ import annotations
