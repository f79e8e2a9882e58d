"""What tests compile, kept from run to run and for all workers: the same sources and line are compiled once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

CACHE = Path(os.environ.get("NCHECK_CACHE") or Path(__file__).parents[1] / ".cache").resolve()
SOURCES = (Path(__file__).parent / "standins" / "nccl", Path(__file__).parent / "lab" / "standins")


def compiled(line: Sequence[str], after: Sequence[str] = ()) -> Path:
    """Return what a compiler makes by this line, "-o" and a file, and the words after it. Some include others."""
    texts = [path.read_bytes() for folder in SOURCES for path in sorted(folder.glob("*.[ch]"))]
    key = sha256(b"\0".join([*(word.encode() for word in (*line, *after)), *texts])).hexdigest()
    kept = CACHE / "compiled" / key
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        made = kept.with_name(f"{key}.{os.getpid()}")
        subprocess.run([*line, "-o", str(made), *after], check=True, capture_output=True, timeout=120)
        made.replace(kept)  # whoever looks sees a whole one or none
    return kept
