"""The ssh agent, asked over its socket: one connection a request, so that many logins may share it."""

from __future__ import annotations

import socket
import struct

import paramiko
from paramiko.message import Message
from paramiko.pkey import PublicBlob

AGENT_PATIENCE = 10.0  # seconds: an agent may ask its owner for each signature


AGENT_LIST, AGENT_LISTED, AGENT_SIGN, AGENT_SIGNED = 11, 12, 13, 14  # draft-miller-ssh-agent, 3


RSA_FLAGS = {"rsa-sha2-256": 2, "rsa-sha2-512": 4}


CERTIFICATE = "-cert-v01@openssh.com"


class AgentSilentError(Exception):
    """The agent does not answer, or not as an agent."""


class AgentKey(paramiko.PKey):
    """A key that an agent holds. Each signature goes over a connection of its own, so that many logins may share it."""

    def __init__(self, path: str, blob: bytes, comment: str) -> None:
        super().__init__()
        self.path, self.blob, self.comment = path, blob, comment
        self.refusal = ""
        self.public_blob = PublicBlob(type_of(blob), blob)

    def get_name(self) -> str:
        return type_of(self.blob)

    def asbytes(self) -> bytes:
        return self.blob

    def certified(self, certificate: bytes) -> AgentKey:
        """Return the same key, offered under a certificate for it."""
        key = AgentKey(self.path, self.blob, self.comment)
        key.public_blob = PublicBlob(type_of(certificate), certificate)
        return key

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> Message:
        flags = RSA_FLAGS.get((algorithm or "").removesuffix(CERTIFICATE), 0)
        request = _string(self.blob) + _string(data) + struct.pack(">I", flags)
        try:
            kind, answer = _ask_agent(self.path, AGENT_SIGN, request)
        except (OSError, AgentSilentError, struct.error) as error:
            return self._unsigned(f"the agent did not sign: {error}")
        if kind != AGENT_SIGNED:
            return self._unsigned("the agent refused to sign")
        return Message(split_strings(answer, 1)[0])

    def _unsigned(self, why: str) -> Message:
        """Answer with a signature that no server takes, so that the next key has its turn, as with ssh; an exception
        would end the connection.
        """
        self.refusal = why
        return Message(_string(self.get_name().encode()) + _string(bytes(64)))


def agent_keys(path: str) -> tuple[list[AgentKey], str]:
    """Return the keys that the agent at this socket holds, and why it could not be asked."""
    if not path:
        return [], ""
    try:
        kind, answer = _ask_agent(path, AGENT_LIST, b"")
        if kind != AGENT_LISTED:
            return [], f"the agent at {path} does not list its keys"
        count = int.from_bytes(answer[:4], "big")
        parts = split_strings(answer[4:], 2 * count)
    except (OSError, AgentSilentError, struct.error, ValueError) as error:
        return [], f"the agent at {path} does not answer: {error}"
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [AgentKey(path, blob, comment.decode("utf-8", "replace")) for blob, comment in pairs], ""


def _ask_agent(path: str, kind: int, body: bytes) -> tuple[int, bytes]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        agent.settimeout(AGENT_PATIENCE)
        agent.connect(path)
        agent.sendall(struct.pack(">IB", len(body) + 1, kind) + body)
        length = struct.unpack(">I", _read(agent, 4))[0]
        if not 0 < length <= 1 << 20:
            raise AgentSilentError("its answer is no agent's")
        answer = _read(agent, length)
    return answer[0], answer[1:]


def _read(agent: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = agent.recv(count - len(data))
        if not part:
            raise AgentSilentError("it hung up")
        data += part
    return bytes(data)


def type_of(blob: bytes) -> str:
    return blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode("ascii", "replace")


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def split_strings(data: bytes, count: int) -> list[bytes]:
    """Take `count` length-prefixed strings off the front. Raises ValueError when they are not whole."""
    found, at = [], 0
    for _ in range(count):
        (length,) = struct.unpack_from(">I", data, at)
        if at + 4 + length > len(data):
            raise ValueError("cut short")
        found.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return found
