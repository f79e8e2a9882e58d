"""A bounded part of NCCL's log: the lines that show which network is used, its warnings, and the last lines."""

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Deque, List, Set

LONGEST_LINE, LONGEST_USED = 400, 2048  # characters; a line that names 32 adapters has 1200, NCCL's longest 2048
MOST_USED, MOST_WARNINGS, LAST = 16, 40, 30
# node01:4711:4712 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>
# node01:4711:4712 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>   |   ... NCCL INFO Using network IB
_USES = ("Bootstrap", "NET/", "Using network", "Assigned NET plugin")


class Log:
    """Takes the output of all ranks of a node, line by line; equal lines of several ranks are kept once."""

    def __init__(self) -> None:
        self.used: "List[str]" = []
        self.warnings: "List[str]" = []
        self.seen: "Set[str]" = set()
        self.last: "Deque[str]" = deque(maxlen=LAST)

    def take(self, line: str) -> None:
        line = line.rstrip()[:LONGEST_USED]
        if not line:
            return
        whole, line = line, line[:LONGEST_LINE]
        self.last.append(line)
        text = line.rpartition(" NCCL ")[2]
        if "NCCL WARN" in line or "NCCL DIAG" in line:  # from 2.31 on, if its diagnostics were requested
            self._keep(self.warnings, line, text, MOST_WARNINGS)
        elif "Using" in text and text[len("INFO ") :].startswith(_USES):
            self._keep(self.used, whole, whole.rpartition(" NCCL ")[2], MOST_USED)

    def _keep(self, kept: "List[str]", line: str, text: str, most: int) -> None:
        if text not in self.seen and len(kept) < most:
            self.seen.add(text)
            kept.append(line)

    def lines(self, failed: object) -> "List[str]":
        """Return the warnings, and after a failure the last lines, too, in their order."""
        return self.warnings + [line for line in self.last if failed and line not in self.warnings]
