"""The launcher's ssh, tried from this machine: once for each ssh configuration that differs, not for each node.

ncheck logs in by paramiko where it can. The ssh program, which the launch line uses, refuses more: a private key that
others may read, a RemoteCommand beside a command, algorithms that the configuration leaves out.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.ssh_peers import FROM_HERE
from ncheck.model.evidence import Evidence, Note, Reply, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ncheck.agent.answers.ssh_peers import Tries
    from ncheck.local_host import LocalHost
    from ncheck.model.cluster import Cluster
    from ncheck.model.node import Node
    from ncheck.settings import Settings
    from ncheck.ssh.config import SshConfig

MOST_CONFIGURATIONS = 16
NODES_EACH = 3  # a node that fails in its own way does not speak for the others: another one is tried
_ITSELF = Reply(Status.OK, value={"peers": {}})


def tried_from_here(
    cluster: Cluster, settings: Settings, local_host: LocalHost | None, seconds: float
) -> Iterator[Evidence]:
    """Yield evidence of each node that was reached: whether the ssh program of this machine can log in to it."""
    logins = {name: facts.login for name, facts in cluster.facts(LoginFacts).items() if facts.login.reached}
    replies = _replies(cluster.only(logins.keys()), settings, local_host, seconds)
    for node, login in logins.items():
        reply = replies[node]
        evidence = Evidence(node, login)
        if isinstance(reply, Note):
            yield replace(evidence, notes={FROM_HERE.key: reply})
        else:
            yield replace(evidence, replies={FROM_HERE.key: reply})


def _replies(
    cluster: Cluster, settings: Settings, local_host: LocalHost | None, seconds: float
) -> dict[str, Reply | Note]:
    if local_host is None:
        return dict.fromkeys(cluster.names, Note("the launch line is typed on another machine than this"))
    machines = {name: identity.machine for name, identity in cluster.facts(IdentityFacts).items()}
    replies: dict[str, Reply | Note] = {}
    logins = cluster.facts(LoginFacts)
    others: list[Node] = []
    for node in cluster.nodes:
        if logins[node.name].login.transport not in ("paramiko", "openssh", "srun"):
            replies[node.name] = Note("no SSH is used")
        elif local_host.machine and machines.get(node.name) == local_host.machine:
            replies[node.name] = _ITSELF
        else:
            others.append(node)
    return replies | _from_here(others, settings, seconds) if others else replies


def _from_here(others: Sequence[Node], settings: Settings, seconds: float) -> dict[str, Reply | Note]:
    """Return the replies for nodes that are other machines, reached by SSH."""
    from ncheck.agent.answers.ssh_peers import Tries

    config = configuration(settings)
    replies: dict[str, Reply | Note] = {}
    alike: dict[Configured, list[Node]] = {}
    for node in others:
        alike.setdefault(_configured(node, config), []).append(node)
    until = time.monotonic() + min(seconds, 2 * settings.connect_timeout)
    tries = Tries(settings.connect_timeout, until, str(Path.cwd()))
    for number, nodes in enumerate(alike.values()):
        too_many = Note(f"the nodes have more than {MOST_CONFIGURATIONS} ssh configurations here")
        if not shutil.which("ssh"):
            replies |= {node.name: Reply(Status.MISSING, "no ssh program on this machine") for node in nodes}
        elif number >= MOST_CONFIGURATIONS:
            replies |= {node.name: too_many for node in nodes}
        else:
            replies |= _tried(nodes, config, tries)
    return replies


def configuration(settings: Settings) -> SshConfig:
    """Read the ssh configuration of this run."""
    from ncheck.fleet.engines.ssh import options_of
    from ncheck.ssh.config import read_ssh_config

    options = options_of(settings)
    if options.config_file:
        options = replace(options, config_file=str(Path(options.config_file).expanduser()))
    return read_ssh_config(options, os.environ)


Configured = frozenset[tuple[str, tuple[str, ...]]]

_OF_ONE_HOST = frozenset({"hostname", "port", "hostkeyalias"})


def _configured(node: Node, config: SshConfig) -> Configured:
    """Return the node's ssh configuration on this machine, without what differs between nodes anyway."""
    from ncheck.fleet.engines.ssh import host_of

    written = config.written(host_of(node))
    return frozenset((keyword, values) for keyword, values in written.items() if keyword not in _OF_ONE_HOST)


def words_for(node: Node, config: SshConfig) -> list[str]:
    """Return the options of ssh for this node, as the launch line passes them: -F, -i, -l, -p."""
    from ncheck.fleet.engines.ssh import host_of

    return config.ssh_arguments(host_of(node))[:-2]


def _tried(nodes: Sequence[Node], config: SshConfig, tries: Tries) -> dict[str, Reply]:
    """Log in to nodes with one ssh configuration, until one login works or fails on this side; the last one stands
    for those that were not tried.
    """
    from ncheck.agent.answers.ssh_peers import tried
    from ncheck.ssh.failures import cause_of
    from ncheck.ssh.login import Cause

    replies: dict[str, Reply] = {}
    for node in nodes[:NODES_EACH]:
        answer = tried({"host": node.name, "words": words_for(node, config)}, tries)
        replies[node.name] = Reply(Status.OK, value={"peers": {node.name: answer}})
        if answer["ran"] or cause_of(answer["stderr"]) is Cause.TRANSPORT:
            break
    last = replies[node.name]
    return {node.name: replies.get(node.name, last) for node in nodes}
