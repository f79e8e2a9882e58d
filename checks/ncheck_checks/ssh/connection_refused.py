"""No SSH server listens on the port

## What it finds
Nodes that are up and refuse the connection at once: no SSH server listens on that port, or a firewall rejects the
connection. Then ncheck also tries port 22 and the ports of the other nodes, and says which one answers.

## Why it matters
mpirun, Horovod and DeepSpeed start their processes over ssh; if one node refuses it, the whole launch fails.

## What to type
On the node's console: `sudo systemctl restart ssh` (the unit is called sshd on Red Hat and SUSE). If every node
refuses, ssh probably listens on another port, as in many containers: `ncheck -p 10001 nodes.txt`; `sudo ss -tlnp` on
the node shows the port. If another port answers, write it into the node list: `node07 port=22`.

Where the nodes are Docker containers with the network of their hosts, the other port is the host's own: do not start a
server on the container's port there, or the job would run on the host. `docker ps -a` on the host shows whether the
container runs, `docker logs NAME` why not, and `docker start NAME` starts it. A container without systemd starts its
server itself, inside it: `/usr/sbin/sshd -p 10001`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ncheck import HERE, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import RESTART_SSH, Cause, Login, login_results

SSH_PORT = 22


@cluster_check("NC111", Severity.ERROR, LoginFacts, alone=True, blocks_plan=True, explains_unreached=True)
def connection_refused(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    logins = {node: held.login for node, held in cluster.facts(LoginFacts).items()}
    if len(logins) > 1 and all(login.cause is Cause.REFUSED for login in logins.values()):
        yield _all_refuse(logins)
        return
    for node in cluster:
        own = _elsewhere(logins[node.name])
        for result in login_results(node, Cause.REFUSED, _refuses):
            # What the client proposes restarts a server of the host, which is not the one that does not run.
            yield (
                replace(own, nodes=result.nodes, evidence=result.evidence)
                if own and isinstance(result, Problem)
                else result
            )


def _refuses(_node: str, login: Login) -> Problem:
    message = f"nothing listens on port {login.port}: start ssh on the node's console"
    return Problem(message, RESTART_SSH, summary=f"SSH refused on port {login.port}")


def _elsewhere(login: Login) -> Problem | None:
    """Return the problem where another port answers, or the port is one that containers use; else None."""
    summary, also = f"SSH refused on port {login.port}", login.other_port
    start = "if the node is a container, start it again on its host with docker start NAME"
    if login.port not in (0, SSH_PORT):
        message = (
            f"nothing listens on port {login.port}, but an SSH server answers on port {also}: that is the host's own "
            f"if the node is a container; {start}. If it is none, list the node with port={also}"
            if also
            else f"nothing listens on port {login.port}: {start}; if not, start ssh on the node's console"
        )
        return Problem(message, "docker ps -a", look=True, summary=summary)
    message = (
        f"nothing listens on port {login.port}, but an SSH server answers on port {also}: "
        f"list the node with port={also}, or let the server listen on port {login.port} too"
    )
    return Problem(message, "sudo ss -tlnp", look=True, summary=summary) if also else None


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
