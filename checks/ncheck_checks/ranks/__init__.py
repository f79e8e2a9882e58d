"""The host itself: clock and limits."""

from __future__ import annotations
