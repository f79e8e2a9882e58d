"""GPUs, their driver and their topology."""

from __future__ import annotations
