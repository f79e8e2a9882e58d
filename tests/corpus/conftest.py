"""The corpus is other people's captures: it is read where NCHECK_CORPUS names its folder, and not collected without."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("NCHECK_CORPUS") else ["test_corpus.py", "test_hangs.py"]
