"""The probe: real all-reduces under the plan, what they should have given, and which node is slow."""

from __future__ import annotations
