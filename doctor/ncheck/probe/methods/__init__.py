"""How the probe measures: one driver per method, and who starts the ranks."""

from __future__ import annotations
