"""What NCCL does by its own rules, and what it said itself: which interface it picks. Pure, over facts alone."""

from __future__ import annotations
