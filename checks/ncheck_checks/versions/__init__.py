"""Versions and software: what must be the same on every node."""

from __future__ import annotations
