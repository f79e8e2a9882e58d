r"""A line of nccl.conf sets nothing

## What it finds
Lines in /etc/nccl.conf, ~/.nccl.conf or the file of NCCL_CONF_FILE that name a variable of NCCL's and that NCCL passes
over: with blanks before the name or round the "=", with "export", or without "=".

## Why it matters
NCCL reads such a file letter by letter: `NCCL_SOCKET_IFNAME = eth0` sets a variable whose name ends in a blank, and
nobody asks for that one. The setting that everybody believes in is not there, and nothing is said.

## What to type
`sudo sed -i -E 's/^\s*(export\s+)?(NCCL_[A-Z0-9_]+)\s*=\s*/\2=/' /etc/nccl.conf`
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.nccl.setting_problems import command_to_repair, ignored_lines


@node_check("NC334", Severity.WARNING, EnvironmentFacts)
def nccl_conf_line_ignored(node: NodeView) -> Iterator[Problem]:
    for path, line, why in ignored_lines(node[EnvironmentFacts]):
        yield Problem(f"NCCL passes over {line!r} in {path}: {why}", command_to_repair(path))
