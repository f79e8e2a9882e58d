"""ssh uses one connection for several nodes

## What it finds
Nodes for which the ssh configuration of this machine has the same ControlPath, with ControlMaster on or with a
connection open there: a path without %h, %n, %k or %C, such as ~/.ssh/cm.

## Why it matters
ssh takes an open connection at that path for the host that it is asked for, whichever machine is at its other end. All
logins after the first one end on the first node: mpirun starts all its daemons there, and this list of nodes seems to
be one machine.

## What to type
Put %C, which stands for host, port and user, into the path: `ControlPath ~/.ssh/cm-%C`. Then close the connection that
is open: `ssh -O exit NODE` before the change, or remove its socket.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Cluster, Problem, Severity, cluster_check, fold, nodes_by_value
from ncheck.facts.login import ONE_CONNECTION, LoginFacts

FILES = "~/.ssh/config /etc/ssh/ssh_config /etc/ssh/ssh_config.d/*"


@cluster_check("NC104", Severity.ERROR, LoginFacts, explains=ONE_CONNECTION, blames_node=False)
def control_path_shared(cluster: Cluster) -> Iterator[Problem]:
    logins = {node: facts.login for node, facts in cluster.facts(LoginFacts).items() if facts.login.shared_socket}
    paths = {node: (login.shared_socket, login.options) for node, login in logins.items()}
    for (path, options), nodes in nodes_by_value(paths).items():
        if len(nodes) > 1:
            given = dict(zip(options[::2], options[1::2], strict=False)).get("-F")
            where = quote(given) if given else FILES
            yield Problem(
                f"ControlPath {path} is the same for {fold(nodes)}: each ssh to them ends on the machine of the first",
                f"grep -inE '^[[:space:]]*(ControlPath|Include)' {where}",
                nodes=nodes, where=HERE, look=True, summary="one ControlPath for all nodes",
            )  # fmt: skip
