"""The corpus is saved output of other people's machines: its tests run only if NCHECK_CORPUS names its folder."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("NCHECK_CORPUS") else [
    "test_corpus.py", "test_hangs.py", "test_mutations.py", "test_next_step.py", "test_topology_twice.py",
]  # fmt: skip
