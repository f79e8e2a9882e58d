"""The SSH login is slow on some nodes

## What it finds
Nodes that need more than 5 s, and four times as long as the others, for one of two steps of a login:

- the SSH server, from the key exchange to the start of the command: it looks up keys, and runs PAM's modules;
- the login shell, from its start to the first command: its start-up files sleep, wait for a server, or load much
  (module systems, conda, a home folder on a slow file system).

A connection that lost packets is not judged. Where all nodes are slow, none is named: this machine may be busy.

## Why it matters
Every launcher logs in: mpirun waits for the slowest node, and a launcher or a scheduler that gives up after some
seconds reports a node as dead that only is slow. A directory service that is late today may not answer tomorrow.

## What to type
`ssh -v NODE true` shows where it waits. On the node, `sudo journalctl -u ssh -u sshd -n 50 --no-pager` has the times.
The usual reasons: a directory (LDAP, sssd) or a PAM module that waits for a server, `UseDNS yes` with a name server
that does not answer, an AuthorizedKeysCommand, a home folder on a slow network file system. For the shell,
`time bash -c '. ~/.bashrc'` shows how long it takes, and `bash -xc '. ~/.bashrc'` where; ~/.ssh/rc and /etc/ssh/sshrc
run before it. Put what only a person needs behind `[[ $- == *i* ]] || return`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import HERE, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import by_ssh

SLOW = 5.0  # seconds: a healthy node needs some tenths, a busy one a second or two
TIMES_SLOWER = 4.0


@cluster_check("NC140", Severity.WARNING, LoginFacts)
def login_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    logins = cluster.facts(LoginFacts)
    servers = _measured({node: facts.login.authentication_seconds for node, facts in logins.items()})
    shells = _measured({node: facts.shell_seconds for node, facts in logins.items()})
    for node, facts in logins.items():
        if not facts.login.reached:
            cause = facts.login.cause
            yield Inconclusive(f"not reached ({cause.value if cause else 'cause unknown'})", (node,))
        elif not any(node in step and len(step) > 1 for step in (servers, shells)):
            yield NotApplicable("how long it takes was not measured, or on no other node", (node,))
        if usual := _slower_than(servers, node):
            yield Problem(
                "the SSH server is slow to let a login in (keys, PAM, directory service)",
                f"{by_ssh(quote(node), facts.login, '-v')} true",
                (f"{servers[node]:.1f} s from key exchange to command on {node}; median of the others {usual:.1f} s",),
                (node,), where=HERE, look=True, summary="slow SSH login",
            )  # fmt: skip
        if usual := _slower_than(shells, node):
            yield Problem(
                "the login shell is slow to start: look at its start-up files",
                "time bash -c '. ~/.bashrc'",
                (f"it needed {shells[node]:.1f} s on {node}; median of the others {usual:.1f} s",),
                (node,), look=True, summary="slow login shell",
            )  # fmt: skip


def _measured(seconds: Mapping[str, float]) -> dict[str, float]:
    return {node: value for node, value in seconds.items() if value > 0}


def _slower_than(measured: Mapping[str, float], node: str) -> float:
    """Return the median of the other nodes if this one is much slower, else 0."""
    from statistics import median  # slow to import

    if measured.get(node, 0.0) <= SLOW:
        return 0.0
    others = [value for other, value in measured.items() if other != node]
    usual = median(others) if others else 0.0
    return usual if measured[node] > TIMES_SLOWER * usual else 0.0
