"""NCCL's rules: which settings are in force, which interface and HCA ports it uses. Pure functions of facts."""

from __future__ import annotations
