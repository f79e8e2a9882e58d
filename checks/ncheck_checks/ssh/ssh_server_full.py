"""The SSH server drops new connections

## What it finds
Nodes whose SSH server accepted ncheck's connection and dropped it before its banner, again and again until the time
limit of a login. A server that has as many connections without a login as it accepts (MaxStartups) does so: idle
connections that never log in (a scanner, a load balancer, a stuck client) hold places until LoginGraceTime ends them.
Newer OpenSSH says so, or says that it refuses this client for a while (PerSourcePenalties). Where it says nothing, it
may also lack open files (a low `ulimit -n`), processes or memory to serve a connection, or an entry in /etc/hosts.deny
refuses this client; an older release says nothing of MaxStartups either. The node itself may be fine, so its checks are
unknown, not failed.

## Why it matters
mpirun opens many SSH connections at once. Where some of them are dropped, its daemons do not start, and the job fails
or waits.

## What to type
On the node, `sudo journalctl -u ssh -u sshd | grep -E 'MaxStartups|refused connect|penalty|Too many open files|fork'`
shows the reason, `grep -E 'open files|processes' /proc/$(pgrep -o sshd)/limits` the limits of the server, and
`sudo ss -tnp state established '( sport = :22 )'` who is connected. For MaxStartups raise the limit in
/etc/ssh/sshd_config, for example `MaxStartups 100:30:200`, or shorten `LoginGraceTime`; then
`sudo systemctl reload ssh`.
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
