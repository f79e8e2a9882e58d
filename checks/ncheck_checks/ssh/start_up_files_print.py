"""Start-up files print text in non-interactive logins

## What it finds
Nodes on which a login that runs a command returns more than the command's output: ~/.bashrc, ~/.cshrc or a file in
/etc/profile.d prints a banner, a module list or a warning. The evidence shows the first lines.

## Why it matters
scp, rsync, sftp and launchers parse that output as their own protocol: "Received message too long", or a daemon that
never reports back. ncheck itself ignores the extra text.

## What to type
`ssh NODE true` must print nothing. In the file that prints, test for a terminal first: `[ -t 1 ] && echo welcome`, or
end ~/.bashrc early in non-interactive logins: `case $- in *i*) ;; *) return ;; esac`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import by_ssh


@node_check("NC130", Severity.WARNING, LoginFacts, blocks_plan=True)
def start_up_files_print(node: NodeView) -> Iterator[Problem | Inconclusive]:
    facts = node[LoginFacts]
    if facts.noise:
        yield Problem(
            message="start-up files print text in non-interactive logins",
            fix=facts.login.fix or f"{by_ssh(quote(node.name), facts.login)} true",
            evidence=tuple(facts.noise.splitlines()),
            where=HERE,
            look=True,
            summary="start-up files print text",
        )
    elif not facts.login.reached:
        yield Inconclusive(f"not reached ({facts.login.cause.value})" if facts.login.cause else "not reached")
