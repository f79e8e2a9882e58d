"""Frozen data that the whole house shares: no I/O, no judgement."""

from __future__ import annotations
