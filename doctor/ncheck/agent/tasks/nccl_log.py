"""What NCCL's own log told, bounded: the lines that say which network is used, its warnings, and the last lines."""

from collections import deque

LONGEST_LINE = 400  # characters
MOST_USED, MOST_WARNINGS, LAST = 16, 40, 30
# node01:4711:4712 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>
# node01:4711:4712 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>   |   ... NCCL INFO Using network IB
_USES = ("Bootstrap", "NET/", "Using network", "Assigned NET plugin")


class Log:
    """Takes the output of all ranks of a node, line by line; equal lines of several ranks are kept once."""

    def __init__(self):
        self.used, self.warnings, self.seen = [], [], set()
        self.last = deque(maxlen=LAST)

    def take(self, line):
        line = line.rstrip()[:LONGEST_LINE]
        if not line:
            return
        self.last.append(line)
        told = line.rpartition(" NCCL ")[2]
        if "NCCL WARN" in line or "NCCL DIAG" in line:  # from 2.31 on, where its diagnostics were asked for
            self._keep(self.warnings, line, told, MOST_WARNINGS)
        elif "Using" in told and told[len("INFO ") :].startswith(_USES):
            self._keep(self.used, line, told, MOST_USED)

    def _keep(self, kept, line, told, most):
        if told not in self.seen and len(kept) < most:
            self.seen.add(told)
            kept.append(line)

    def told(self, failed):
        """Return the warnings, and where it failed the last lines, too, in their order."""
        return self.warnings + [line for line in self.last if failed and line not in self.warnings]
