"""Texts that tools print, to typed records: pure functions, used for live nodes and for `ncheck read` alike.

Each of them reads a capture as people paste it: with a prompt, a quote mark, Windows line ends, a cut-off end.
"""

from __future__ import annotations
