"""What the user expects of every node, by --expect or [expect] in ncheck.toml."""

from __future__ import annotations
