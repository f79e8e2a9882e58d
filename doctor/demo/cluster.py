"""The demo's cluster on disk and on loopback: its servers, and the files by which ssh would find them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.demo.server import LOOPBACK, NodeServer, closed_port, made_key, private_text, public_text

if TYPE_CHECKING:
    from doctor.model.evidence import Evidence

_CONFIG = """\
Host *
  User demo
  IdentityFile "{folder}/id_ecdsa"
  IdentitiesOnly yes
  UserKnownHostsFile "{folder}/known_hosts"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
"""


def lay_out(nodes: tuple[Evidence, ...], folder: Path, stack: ExitStack) -> tuple[Path, Path]:
    """Start a server for each node that was reached, until the stack ends; return (nodes file, ssh_config).

    A node whose recording says that it was not reached gets a port that refuses, which is what can be shown truly
    on loopback.
    """
    key = made_key()
    hosts, known = [], []
    for node in nodes:
        host_key = made_key()
        server = stack.enter_context(NodeServer(node, host_key, key)) if node.login.reached else None
        port = server.port if server else closed_port(stack)
        hosts.append(f"Host {node.node}\n  HostName {LOOPBACK}\n  Port {port}\n")
        known.append(f"[{LOOPBACK}]:{port} {public_text(host_key)}\n")
    _write(folder / "id_ecdsa", private_text(key))
    _write(folder / "known_hosts", "".join(known))
    _write(folder / "config", "".join(hosts) + _CONFIG.format(folder=folder))
    _write(folder / "nodes.txt", "".join(f"{node.node} slots={node.slots or 1}\n" for node in nodes))
    return folder / "nodes.txt", folder / "config"


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
