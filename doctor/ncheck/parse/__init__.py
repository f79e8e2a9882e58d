"""Parsers of the output of tools: pure functions from text to typed records, for live nodes and for `ncheck read`.

They accept text as people paste it: with prompts, quote marks, Windows line ends, or truncated.
"""

from __future__ import annotations
