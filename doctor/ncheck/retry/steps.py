"""How far a job came, from its log: the furthest epoch and step that it printed beside a loss or a speed."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST = 2000  # characters of a line
_SIGNS = ("loss", "accuracy", "/s", "elapsed", "throughput")

# Epoch: [0][ 20/625]   |   Epoch[0] Batch [20]   |   epoch 3 step 12   |   'epoch': 0.02
_EPOCH = re.compile(r"\bepoch\b(?:\(train\))?['\"]?\s{0,9}[:=#]?\s{0,9}\[?\s{0,9}(\d{1,9})\b(?!\.\d)", re.IGNORECASE)
_OF_EPOCH = re.compile(r"\bepoch\b[^\[]{0,20}\[\s{0,9}\d{1,9}\]\s{0,9}\[\s{0,9}(\d{1,12})/", re.IGNORECASE)
# step 512 loss 2.1   |   iteration      10/  500000 |   Batch [20]   |   global_step=9   |   Iter #1: 172.3 img/sec
_STEP = re.compile(
    r"(?:\b|_)(?:step|iter|iters|iteration|batch)\b['\"]?\s{0,9}[:=#]?\s{0,9}['\"\[#]?\s{0,9}(\d{1,12})\b(?!\.\d)",
    re.IGNORECASE,
)


def furthest(lines: Iterable[str]) -> tuple[int, int] | None:
    """Return the furthest epoch (0 where there is none) and step; None where no line shows a step."""
    found: tuple[int, int] | None = None
    for line in lines:
        text = line[:_LONGEST]
        if not any(sign in text.lower() for sign in _SIGNS):
            continue
        step = _OF_EPOCH.search(text) or _STEP.search(text)
        if step:
            epoch = _EPOCH.search(text)
            reached = (int(epoch[1]) if epoch else 0, int(step[1]))
            found = max(found, reached) if found else reached
    return found
