"""NICs, and which of them a job should use."""

from __future__ import annotations
