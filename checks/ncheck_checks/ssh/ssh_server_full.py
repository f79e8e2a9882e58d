"""The SSH server drops new connections

## What it finds
Nodes whose SSH server accepted ncheck's connection and dropped it before its banner, again and again until the time
limit of a login. The usual reason is MaxStartups: the server has as many connections without a login as it accepts.
Idle connections that never log in (a scanner, a load balancer, a stuck client) hold places until LoginGraceTime ends
them. Newer OpenSSH says so, or says that it refuses this client for a while (PerSourcePenalties). From older ones, an
entry in /etc/hosts.deny looks the same. The node itself may be fine, so its checks are unknown, not failed.

## Why it matters
mpirun opens many SSH connections at once. Where some of them are dropped, its daemons do not start, and the job fails
or waits.

## What to type
On the node, `sudo journalctl -u ssh -u sshd | grep -E 'MaxStartups|refused connect|penalty'` shows the reason, and
`sudo ss -tnp state established '( sport = :22 )'` shows who is connected. Raise the limit in /etc/ssh/sshd_config, for
example `MaxStartups 100:30:200`, or shorten `LoginGraceTime`; then `sudo systemctl reload ssh`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import WITHOUT_SSH, Cause, never_got_that_far


@node_check("NC136", Severity.WARNING, LoginFacts, blocks_plan=True, explains_unreached=True)
def ssh_server_full(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    login = node[LoginFacts].login
    if login.cause is Cause.OVERLOADED:
        fix = login.fix or "sudo journalctl -u ssh -u sshd -n 50 --no-pager"
        yield Problem("its SSH server drops new connections before the login", fix, (login.detail,), look=True)
    elif doubt := never_got_that_far(login, Cause.NOT_SSH):
        yield doubt
    elif login.transport in WITHOUT_SSH:
        yield NotApplicable("no SSH is used")
