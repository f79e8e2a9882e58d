"""The host key is unknown

## What it finds
Nodes whose SSH host key is not in your known_hosts files under the name and port that are used.

## Why it matters
Launchers run ssh without a terminal, so ssh cannot ask and stops with "Host key verification failed". ncheck does not
trust unknown keys either.

## What to type
Log in once by hand and compare the fingerprint: `ssh -o StrictHostKeyChecking=ask NODE`. For nodes that you have just
installed yourself, such as fresh containers, accept all at once: `ssh-keyscan -p PORT NODE ... >> ~/.ssh/known_hosts`,
or `ncheck --accept-new-host-keys nodes.txt`, which adds unknown keys to ~/.ssh/known_hosts, but never changed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import Cause, Login, by_ssh, login_results


@cluster_check("NC117", Severity.ERROR, LoginFacts, alone=True, blocks_plan=True, explains_unreached=True)
def host_key_unknown(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    logins = {node: facts.login for node, facts in cluster.facts(LoginFacts).items()}
    unknown = {node: login for node, login in logins.items() if login.cause is Cause.HOST_KEY_UNKNOWN}
    if len(unknown) > 1:
        yield _of_many(unknown)
    for node in cluster:
        if node.name not in unknown or len(unknown) == 1:
            yield from login_results(node, Cause.HOST_KEY_UNKNOWN, _of_one)


def _of_one(node: str, login: Login) -> Problem:
    fix = by_ssh(node, login, "-o", "StrictHostKeyChecking=ask")
    return Problem("its host key is not in known_hosts", fix, where=HERE)


def _of_many(unknown: dict[str, Login]) -> Problem:
    """Return one problem for all: nobody compares the fingerprints of sixty fresh containers by hand."""
    by_port: dict[int, list[str]] = {}
    for node, login in unknown.items():
        by_port.setdefault(login.port or 22, []).append(quote(node))
    scans = (
        " ".join(("ssh-keyscan", *(() if port == 22 else ("-p", str(port))), *nodes))  # noqa: PLR2004  ssh's own
        for port, nodes in by_port.items()
    )
    line = " >> ~/.ssh/known_hosts; ".join(scans) + " >> ~/.ssh/known_hosts"
    return Problem(
        f"the host keys of {len(unknown)} nodes are not in known_hosts; if these nodes are fresh, add them all, by "
        "this line or with --accept-new-host-keys; else log in to each and compare its fingerprint",
        line,
        tuple(f"{node}: {login.detail}" for node, login in unknown.items() if login.detail),
        tuple(unknown),
        where=HERE,
        summary="host keys are unknown",
    )
