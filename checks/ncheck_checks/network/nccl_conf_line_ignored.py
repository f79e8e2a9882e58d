r"""NCCL ignores a line of nccl.conf

## What it finds
Lines in /etc/nccl.conf, ~/.nccl.conf (RCCL: rccl.conf in both places) or the file of NCCL_CONF_FILE that name an NCCL
variable and that NCCL ignores: with spaces before the name or around the "=", with "export", or without "=".

## Why it matters
NCCL reads such a file literally: `NCCL_SOCKET_IFNAME = eth0` sets a variable whose name ends in a space, and nothing
reads that variable. The setting has no effect, and NCCL prints no warning.

## What to type
`sudo sed -i -E 's/^\s*(export\s+)?([NR]CCL_[A-Z0-9_]+)\s*=\s*/\2=/' /etc/nccl.conf`
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.nccl.setting_problems import command_to_repair, ignored_lines


@node_check("NC334", Severity.WARNING, EnvironmentFacts)
def nccl_conf_line_ignored(node: NodeView) -> Iterator[Problem]:
    for path, line, why in ignored_lines(node[EnvironmentFacts]):
        yield Problem(f"NCCL ignores {line!r} in {path}: {why}", command_to_repair(path))
