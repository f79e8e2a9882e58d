"""A changed host key is ignored

## What it finds
Nodes whose host key differs from the one in known_hosts, or is marked as revoked there, and which ssh connects to
nevertheless, because the ssh configuration has `StrictHostKeyChecking no`. The evidence names the file, the line and
both fingerprints.

## Why it matters
The login works, and so does mpirun from here. But the node was reinstalled, another machine has its address, or
somebody intercepts the connection. From hosts without that setting, ssh refuses to connect; and ssh itself gives up
password logins and agent forwarding to such a node.

## What to type
First compare: on the node's own console, not over ssh, `cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -` must print
the fingerprint that was presented. Only then remove the old key here: `ssh-keygen -R NODE` (or `'[NODE]:PORT'`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import SHOW_HOST_KEYS, WITHOUT_SSH, Cause, never_got_that_far


@node_check("NC137", Severity.WARNING, LoginFacts)
def host_key_change_ignored(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    login = node[LoginFacts].login
    if login.host_key_warning:
        message = "its host key is not the one in known_hosts, and StrictHostKeyChecking no ignores that"
        yield Problem(message, SHOW_HOST_KEYS, (login.host_key_warning,), look=True)
    elif doubt := never_got_that_far(login, Cause.HOST_KEY_CHANGED):
        yield doubt
    elif login.transport in WITHOUT_SSH:
        yield NotApplicable("no SSH is used")
