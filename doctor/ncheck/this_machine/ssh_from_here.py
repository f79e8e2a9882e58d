"""The launcher's ssh, tried from this machine: once for each ssh configuration that differs, not for each node.

ncheck logs in by paramiko where it can. The ssh program, which the launch line uses, refuses more: a private key that
others may read, a RemoteCommand beside a command, algorithms that the configuration leaves out.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

from ncheck.agent.answers.ssh_peers import Tries, tried
from ncheck.agent.commands import end_group
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.ssh_peers import FROM_HERE
from ncheck.model.evidence import Evidence, Note, Reply, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from subprocess import Popen

    from typing_extensions import Self

    from ncheck.fleet.engine import Engine
    from ncheck.model.cluster import Cluster
    from ncheck.model.node import Node
    from ncheck.settings import Settings
    from ncheck.ssh.config import SshConfig
    from ncheck.this_machine.local_host import LocalHost

MOST_CONFIGURATIONS = 16
NODES_EACH = 3  # a node that fails in its own way does not speak for the others: another one is tried
_ITSELF = Reply(Status.OK, value={"peers": {}})


class SshFromHere:
    """The ssh program of this machine, which tries to log in beside the first phase: to one node for each of the ssh
    configurations. What it tries ends with the run.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        settings: Settings,
        local_host: LocalHost | None,
        engine_for: Callable[[Node], Engine] | None = None,
    ) -> None:
        self.settings, self.local_host, self.engine_for = settings, local_host, engine_for
        self.processes: list[Popen[bytes]] = []
        ends = time.monotonic() + settings.deadline
        self.tries = Tries(settings.connect_timeout, ends, _current_folder(), self.processes.append)
        self.logins: dict[str, _TriedLogin] = {}
        self.configured: dict[str, Configured] = {}
        if local_host is None or not shutil.which("ssh"):
            return
        others = [node for node in nodes if _by_ssh(node, settings) and not _named_like(local_host, node.name)]
        for nodes_alike in list(self._alike(others).values())[:MOST_CONFIGURATIONS]:
            self._begin(nodes_alike[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.tries.ends = 0.0
        for process in self.processes:
            if process.returncode is None:
                end_group(process.pid)
        for login in self.logins.values():
            login.join()

    def evidence(self, cluster: Cluster, seconds: float) -> Iterator[Evidence]:
        """Yield evidence of each node that was reached: whether the ssh program of this machine can log in to it.

        Within `seconds` it tries other nodes where those that it tried first do not speak for all.
        """
        logins = {name: facts.login for name, facts in cluster.facts(LoginFacts).items() if facts.login.reached}
        self.tries.ends = time.monotonic() + min(seconds, 2 * self.settings.connect_timeout)
        replies = self._replies(cluster.only(logins.keys()))
        for node, login in logins.items():
            reply = replies[node]
            evidence = Evidence(node, login)
            if isinstance(reply, Note):
                yield replace(evidence, notes={FROM_HERE.key: reply})
            else:
                yield replace(evidence, replies={FROM_HERE.key: reply})

    def _replies(self, cluster: Cluster) -> dict[str, Reply | Note]:
        if self.local_host is None:
            return dict.fromkeys(cluster.names, Note("the launch line is typed on another machine than this"))
        machines = {name: identity.machine for name, identity in cluster.facts(IdentityFacts).items()}
        replies: dict[str, Reply | Note] = {}
        logins = cluster.facts(LoginFacts)
        others: list[Node] = []
        for node in cluster.nodes:
            if logins[node.name].login.transport not in ("paramiko", "openssh", "srun"):
                replies[node.name] = Note("no SSH is used")
            elif self.local_host.machine and machines.get(node.name) == self.local_host.machine:
                replies[node.name] = _ITSELF
            else:
                others.append(node)
        return replies | self._of_others(others)

    def _of_others(self, others: Sequence[Node]) -> dict[str, Reply | Note]:
        """Return the replies for nodes that are other machines, reached by SSH."""
        if not shutil.which("ssh"):
            return {node.name: Reply(Status.MISSING, "no ssh program on this machine") for node in others}
        replies: dict[str, Reply | Note] = {}
        too_many = Note(f"the nodes have more than {MOST_CONFIGURATIONS} ssh configurations here")
        for number, nodes in enumerate(self._alike(others).values()):
            if number < MOST_CONFIGURATIONS:
                replies |= self._of_nodes_alike(nodes)
            else:
                replies |= {node.name: too_many for node in nodes}
        return replies

    def _of_nodes_alike(self, nodes: Sequence[Node]) -> dict[str, Reply]:
        """Log in to nodes with one ssh configuration, until one login works or fails on this side; the last one stands
        for those that were not tried.
        """
        from ncheck.ssh.failures import cause_of
        from ncheck.ssh.login import LoginCause

        replies: dict[str, Reply] = {}
        for node in sorted(nodes, key=lambda node: node.name not in self.logins)[:NODES_EACH]:
            answer = self._begin(node).answer()
            replies[node.name] = Reply(Status.OK, value={"peers": {node.name: answer}})
            if answer["ran"] or cause_of(answer["stderr"]) is LoginCause.TRANSPORT:
                break
        last = replies[node.name]
        return {node.name: replies.get(node.name, last) for node in nodes}

    def _alike(self, nodes: Iterable[Node]) -> dict[Configured, list[Node]]:
        """Return the nodes by their ssh configuration."""
        alike: dict[Configured, list[Node]] = {}
        for node in nodes:
            if node.name not in self.configured:
                self.configured[node.name] = _configured(node, self._config(node))
            alike.setdefault(self.configured[node.name], []).append(node)
        return alike

    def _config(self, node: Node) -> SshConfig:
        """Return the ssh configuration: that of the node's engine, where it has read one."""
        from ncheck.fleet.engines.ssh import SshEngine

        engine = self.engine_for(node) if self.engine_for else None
        return engine.client.config if isinstance(engine, SshEngine) else self._own_config

    @cached_property
    def _own_config(self) -> SshConfig:
        return configuration(self.settings)

    def _begin(self, node: Node) -> _TriedLogin:
        """Begin to log in to a node, where that was not done before."""
        if node.name not in self.logins:
            self.logins[node.name] = _TriedLogin(node, words_for(node, self._config(node)), self.tries)
            self.logins[node.name].start()
        return self.logins[node.name]


class _TriedLogin(threading.Thread):
    """One login by the ssh program."""

    def __init__(self, node: Node, words: list[str], tries: Tries) -> None:
        super().__init__(daemon=True)
        self.peer, self.tries = {"host": node.name, "words": words}, tries
        self.result: dict[str, Any] = {}

    def run(self) -> None:
        self.result = tried(self.peer, self.tries)

    def answer(self) -> dict[str, Any]:
        """Wait for its end, and return the answer: PeerAnswer as JSON."""
        self.join()
        return self.result


def _current_folder() -> str:
    """Return where ssh runs, as relative paths in its configuration mean it; / where the folder was removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _by_ssh(node: Node, settings: Settings) -> bool:
    return not (node.local or settings.run.ranks or settings.environment_of(node.name).rsh)


def _named_like(local_host: LocalHost, name: str) -> bool:
    """Tell whether a node seems to be this machine: only its answers prove that."""
    own = {"localhost", gethostname(), *local_host.interfaces}
    return name in own or name.partition(".")[0] == gethostname().partition(".")[0]


def configuration(settings: Settings) -> SshConfig:
    """Read the ssh configuration of this run."""
    from ncheck.fleet.engines.ssh import options_of
    from ncheck.ssh.config import read_ssh_config

    return read_ssh_config(options_of(settings), os.environ)


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
