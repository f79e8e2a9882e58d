"""No SSH server listens on the port

## What it finds
Nodes that are up and refuse the connection at once: no SSH server listens on that port, or a firewall rejects the
connection. Then ncheck also tries port 22 and the ports of the other nodes, and says which one answers.

## Why it matters
mpirun, Horovod and DeepSpeed start their processes over ssh; if one node refuses it, the whole launch fails.

## What to type
On the node's console: `sudo systemctl restart ssh` (the unit is called sshd on Red Hat and SUSE). If every node
refuses, ssh probably listens on another port, as in many containers: `ncheck -p 10001 nodes.txt`; `sudo ss -tlnp` on
the node shows the port. A container without systemd starts its server itself: `/usr/sbin/sshd -p 10001`. If another
port answers, type that line on the node, or write the port that answers into the node list: `node07 port=22`. If the
node is a Docker container with the network of its host, the other port is the host's: `docker ps --all` on the host
shows whether the container runs, and `docker logs` why not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ncheck import HERE, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import RESTART_SSH, Cause, Login, login_said


@cluster_check("NC111", Severity.ERROR, LoginFacts, alone=True, blocks_plan=True, explains_unreached=True)
def connection_refused(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    logins = {node: held.login for node, held in cluster.facts(LoginFacts).items()}
    if len(logins) > 1 and all(login.cause is Cause.REFUSED for login in logins.values()):
        yield _all_refuse(logins)
        return
    for node in cluster:
        elsewhere = logins[node.name].other_port  # what the client proposes is about a server that does not run
        yield from (
            replace(said, fix=_refuses(node.name, logins[node.name]).fix)
            if isinstance(said, Problem) and elsewhere
            else said
            for said in login_said(node, Cause.REFUSED, _refuses)
        )


def _refuses(_node: str, login: Login) -> Problem:
    summary = f"SSH refused on port {login.port}"
    if login.other_port:
        message = (
            f"nothing listens on port {login.port}, but an SSH server answers on port {login.other_port}: "
            f"list the node with port={login.other_port}, "
            f"or start the server, or its container, on port {login.port}"
        )
        return Problem(message, f"sudo /usr/sbin/sshd -p {login.port}", summary=summary)
    message = f"nothing listens on port {login.port}: start ssh on the node's console"
    return Problem(message, RESTART_SSH, summary=summary)


def _all_refuse(logins: Mapping[str, Login]) -> Problem:
    """Return one problem for all: that ssh listens on another port is likelier than that it is off everywhere."""
    ports = ", ".join(sorted({str(login.port) for login in logins.values()}))
    others = {login.other_port for login in logins.values()}
    answers = others.pop() if len(others) == 1 else 0
    hint = f": an SSH server answers on port {answers}" if answers else ""
    return Problem(
        f"every node refuses port {ports}{hint}",
        f"ncheck -p {answers} nodes.txt" if answers else "name the port of ssh with -p, or start ssh on the nodes",
        tuple(f"{node}: {login.detail}" for node, login in logins.items() if login.detail),
        tuple(logins),
        where=HERE,
        do=not answers,
        summary=f"SSH refused on port {ports}",
    )
