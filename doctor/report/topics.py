"""Codes by the hundred, as the report and the list name them."""

from __future__ import annotations

_TOPICS = {
    "NC0": "What could not be examined",
    "NC1": "SSH and host list",
    "NC2": "Versions",
    "NC3": "Network",
    "NC4": "InfiniBand and RoCE",
    "NC5": "GPUs",
    "NC6": "Hosts",
    "NC7": "Measured",
}


def topic_of(code: str) -> str:
    """Return the heading that a code stands under; a plug-in's own prefix is its heading."""
    return _TOPICS.get(code[:3], f"Plug-in {code.rstrip('0123456789')}")
