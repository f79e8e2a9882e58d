"""The SSH login is slow on some nodes

## What it finds
Nodes whose SSH server needs more than 5 s, and four times as long as the others, from the key exchange to the start of
the command: the keys are looked up, PAM runs its modules, and the session is opened. The time of the network, of the
key exchange and of the login shell is not part of it; a connection that lost packets is not judged. Where all nodes are
slow, none is named: this machine may be busy.

## Why it matters
Every launcher logs in: mpirun waits for the slowest node, and a launcher or a scheduler that gives up after some
seconds reports a node as dead that only is slow. A directory service that is late today may not answer tomorrow.

## What to type
`ssh -v NODE true` shows where it waits. On the node, `sudo journalctl -u ssh -u sshd -n 50 --no-pager` has the times.
The usual reasons: a directory (LDAP, sssd) or a PAM module that waits for a server, `UseDNS yes` with a name server
that does not answer, an AuthorizedKeysCommand, a home folder on a slow network file system.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import by_ssh, slower_than_others


@cluster_check("NC140", Severity.WARNING, LoginFacts)
def login_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    logins = cluster.facts(LoginFacts)
    for found in slower_than_others(logins, lambda facts: facts.login.authentication_seconds):
        if isinstance(found, Inconclusive | NotApplicable):
            yield found
        else:
            name, seconds, others = found
            yield Problem(
                "the SSH server is slow to let a login in (keys, PAM, directory service)",
                f"{by_ssh(quote(name), logins[name].login, '-v')} true",
                (f"{seconds:.1f} s from key exchange to command on {name}; median of the others {others:.1f} s",),
                (name,), where=HERE, look=True, summary="slow SSH login",
            )  # fmt: skip
