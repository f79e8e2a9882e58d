"""Start-up files print on standard output

## What it finds
Nodes on which a login that runs a command gets more than the command's output: ~/.bashrc, ~/.cshrc or a file in
/etc/profile.d prints a banner, a module list, a warning. The first lines are in the evidence.

## Why it matters
scp, rsync, sftp and launchers read that output as their own protocol: "Received message too long", a daemon that never
reports back. ncheck itself is not confused by it.

## What to type
`ssh NODE true` must print nothing. Put the command behind a test for a terminal, in the file that prints:
`[ -t 1 ] && echo welcome`, or end ~/.bashrc early for logins without one: `case $- in *i*) ;; *) return ;; esac`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import by_ssh


@node_check("NC130", Severity.WARNING, LoginFacts, blocks_plan=True)
def start_up_files_print(node: NodeView) -> Iterator[Problem | Inconclusive]:
    facts = node[LoginFacts]
    if facts.noise:
        yield Problem(
            message="start-up files print on standard output when no terminal is there",
            fix=facts.login.fix or f"{by_ssh(quote(node.name), facts.login)} true",
            evidence=tuple(facts.noise.splitlines()),
        )
    elif not facts.login.reached:
        yield Inconclusive(f"not reached ({facts.login.cause.value})" if facts.login.cause else "not reached")
