"""What every pasted capture may suffer from, undone: colours, line ends, quote and comment marks."""

from __future__ import annotations

import re

# \x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
# "# GPU0     X     NV4    NV4" as in a job's comments, "> GPU0     X" as in a mail
_QUOTED = re.compile(r"^[ \t]*[#>]+(?:[ \t]|$)")
_MOST = 0.8


def lines_of(text: str) -> list[str]:
    """Return the capture's lines without colours, line ends and, where nearly all lines bear one, the quote mark."""
    plain = _ANSI.sub("", text).replace("\ufeff", "").replace("\xa0", " ")
    lines = [line.rstrip("\r\n") for line in plain.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    full = [line for line in lines if line.strip()]
    if full and sum(bool(_QUOTED.match(line)) for line in full) >= _MOST * len(full):
        lines = [_QUOTED.sub(lambda mark: " " * len(mark[0]), line) for line in lines]
    return lines
