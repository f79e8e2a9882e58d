"""The demo's cluster on disk and on loopback: its servers, and the files by which ssh would find them."""

from __future__ import annotations

import io
import logging
import re
import socket
import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED, OPEN_SUCCEEDED

from ncheck.agent.loop import serve
from ncheck.fleet.bootstrap import parse_script
from ncheck.fleet.engine import COMMAND_NAME, REMOTE_COMMAND
from ncheck.model.evidence import Greeting, Reply, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from ncheck.model.evidence import Evidence


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

    A node that was not reached in the recording gets a port that refuses connections: the one failure that loopback
    can show.
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


LOOPBACK = "127.0.0.1"
LOG = "ncheck.demo"  # the servers' log channel in paramiko: a client that leaves is no error here
STEP = ("round", "stage", "method", "group", "ranks", "sizes", "net")
_LONGEST_SCRIPT = 65536  # bytes
_PATIENCE = 120.0  # seconds that a client may be silent: longer than any run of a demo


def made_key() -> paramiko.PKey:
    """Make a key that lives as long as the demo."""
    return paramiko.ECDSAKey.generate()


def public_text(key: paramiko.PKey) -> str:
    """Return the key as known_hosts and authorized_keys write it."""
    return f"{key.get_name()} {key.get_base64()}"


def private_text(key: paramiko.PKey) -> str:
    """Return the private key as a file of ~/.ssh holds it."""
    text = io.StringIO()
    key.write_private_key(text)
    return text.getvalue()


def closed_port(stack: ExitStack) -> int:
    """Return a port that refuses connections until the stack ends: it is bound, and nothing listens."""
    bound = stack.enter_context(closing(socket.socket()))
    bound.bind((LOOPBACK, 0))
    return int(bound.getsockname()[1])


class NodeServer:
    """Serves one recorded node on a loopback port, from `with` to its end."""

    def __init__(self, evidence: Evidence, host_key: paramiko.PKey, accepted: paramiko.PKey) -> None:
        self._evidence, self._host_key, self._accepted = evidence, host_key, accepted
        self._listener = socket.create_server((LOOPBACK, 0), backlog=16)
        self._open: list[paramiko.Transport] = []
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> NodeServer:  # noqa: PYI034  Self is newer than Python 3.10
        log = logging.getLogger(LOG)
        log.propagate = False
        log.addHandler(logging.NullHandler())
        threading.Thread(target=self._accept, name=f"demo {self._evidence.node}", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._listener.close()
        for transport in self._open:
            transport.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the demo has ended
            with suppress(paramiko.SSHException, OSError, EOFError):
                transport = paramiko.Transport(client)
                self._open.append(transport)
                transport.set_log_channel(LOG)
                transport.add_server_key(self._host_key)
                transport.start_server(threading.Event(), _Login(self._accepted, self._shell))

    def _shell(self, channel: paramiko.Channel) -> None:
        """Be the node's shell on one channel, until the head goes."""
        with (
            suppress(OSError, EOFError, ValueError),
            closing(channel),
        ):  # EOFError: paramiko's word for a head that went
            channel.settimeout(_PATIENCE)
            answer(self._evidence, _reader(channel), _writer(channel))
            channel.send_exit_status(0)


def answer(evidence: Evidence, read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    """Greet as this node did, receive the agent without running it, and answer from the recording."""
    marker, size = parse_script(_line(read).decode("utf-8", "replace"))
    greeting = evidence.greeting or Greeting()
    write((greeting.noise + f"\n{marker} hello\n").encode("utf-8", "surrogateescape"))
    lines = (
        f"command {COMMAND_NAME}",
        f"host {greeting.host_name}",
        f"boot {greeting.boot_id}",
        f"net {greeting.network_namespace}",
        f"uid {'' if greeting.user_id is None else greeting.user_id}",
        "end",
    )
    write("".join(f"{marker} {line}\n" for line in lines).encode())
    if size is None:
        return
    path, _, version = greeting.python.partition(" (")  # /usr/bin/python3 (3.10.12)
    if not version:  # there is none, or one that does not run
        write(f"{marker} none {path}\n".encode())
        return
    write(f"{marker} go {version.rstrip(')')} {path}\n".encode())
    if len(read(size)) == size:
        serve(read, write, responder(evidence))


def responder(evidence: Evidence) -> Callable[[Mapping[str, object], object], dict[str, object]]:
    """Return the function that gives the agent's loop its replies: the recorded ones."""

    def respond(source: Mapping[str, object], _fetch: object) -> dict[str, object]:
        missing = Reply(Status.FAILED, reason="the recording has no answer to this")
        recorded = evidence.replies.get(str(source.get("key")), missing)
        if source.get("name") == "step" and not _same_step(recorded.asked, source.get("arguments")):
            recorded = missing
        reply = asdict(recorded)
        del reply["asked"]  # only the head adds it; no node sends it
        if source.get("name") == "ssh-peers":
            reply["value"] = _only_asked(reply["value"], source.get("arguments"))
        if source.get("name") == "connect":
            reply["value"] = _only_connected(reply["value"], source.get("arguments"))
        return reply

    return respond


def _same_step(recorded: object, arguments: object) -> bool:
    """Tell whether this is the step that was recorded under that number: another one was never measured."""
    if not isinstance(recorded, dict) or not isinstance(arguments, dict):
        return False
    return all(recorded.get(word) == arguments.get(word) for word in STEP)


def _only_asked(value: object, arguments: object) -> object:
    """Keep the peers that are asked about: a recording may hold more."""
    if not isinstance(value, dict) or not isinstance(arguments, dict):
        return value
    asked = {peer["target"] for peer in arguments.get("peers", ())}
    return {**value, "peers": {target: answer for target, answer in value.get("peers", {}).items() if target in asked}}


def _only_connected(value: object, arguments: object) -> object:
    """Keep the nodes that this one is asked to connect to."""
    if not isinstance(value, dict) or not isinstance(arguments, dict):
        return value
    targets = {row[0] for row in arguments.get("targets", ())}
    broken = [link for link in value.get("broken", ()) if link["target"] in targets]
    return {**value, "broken": broken, "tried": [name for name in value.get("tried", ()) if name in targets]}


class _Login(paramiko.ServerInterface):
    """Accepts the demo's key, and runs one command."""

    def __init__(self, accepted: paramiko.PKey, shell: Callable[[paramiko.Channel], None]) -> None:
        self._accepted, self._shell = accepted, shell

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002  the key decides, not the name
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:  # noqa: ARG002
        return AUTH_SUCCESSFUL if key == self._accepted else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        return OPEN_SUCCEEDED if kind == "session" else OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        text = command.decode("utf-8", "replace")
        if text == REMOTE_COMMAND:
            threading.Thread(target=self._shell, args=(channel,), daemon=True).start()
        elif nonce := _NONCE.fullmatch(text):
            threading.Thread(target=_print, args=(channel, nonce[1] + nonce[2]), daemon=True).start()
        else:
            return False
        return True


# echo 0f3a99bc120f3a99''bc120f3a99bc1200
_NONCE = re.compile(r"echo ([0-9a-f]+)''([0-9a-f]+)")


def _print(channel: paramiko.Channel, text: str) -> None:
    """Be a shell that runs echo."""
    with suppress(OSError, EOFError), closing(channel):
        channel.sendall(f"{text}\n".encode())
        channel.send_exit_status(0)


def _reader(channel: paramiko.Channel) -> Callable[[int], bytes]:
    """Return read(n): exactly n bytes of the channel, fewer at its end."""

    def read(wanted: int) -> bytes:
        parts = []
        while wanted and (data := channel.recv(wanted)):
            parts.append(data)
            wanted -= len(data)
        return b"".join(parts)

    return read


def _writer(channel: paramiko.Channel) -> Callable[[bytes], None]:
    """Return write(data), which raises OSError when the client is gone, as the agent's loop expects."""

    def write(data: bytes) -> None:
        try:
            channel.sendall(data)
        except EOFError as error:
            raise ConnectionError("the client is gone") from error

    return write


def _line(read: Callable[[int], bytes]) -> bytes:
    line = b""
    while len(line) < _LONGEST_SCRIPT and (byte := read(1)) not in (b"", b"\n"):
        line += byte
    return line
