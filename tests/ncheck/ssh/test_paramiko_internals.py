"""What the overrides in paramiko_internals.py rely on, in the paramiko that is installed.

A new release of paramiko fails here first, and names what changed: read paramiko_internals.py, adapt it, and raise the
ceiling in pyproject.toml.
"""

from __future__ import annotations

import inspect
import logging
import socket
from collections.abc import Iterator

import paramiko
import pytest
from ncheck.ssh.algorithms import AS_DEFAULT
from ncheck.ssh.paramiko_internals import AgentKey, ConfiguredTransport, Wire
from paramiko.agent import AgentSSH
from paramiko.message import Message
from paramiko.packet import Packetizer

# Each overridden or called method, with the names of its parameters.
METHODS = {
    Packetizer: {
        "__init__": ("socket",),
        "close": (),
        "complete_handshake": (),
        "handshake_timed_out": (),
        "need_rekey": (),
        "read_all": ("n", "check_rekey"),
        "read_message": (),
        "readline": ("timeout",),
        "start_handshake": ("timeout",),
        "write_all": ("out",),
    },
    paramiko.Transport: {
        "_log": ("level", "msg", "args"),
        "auth_none": ("username",),
        "auth_publickey": ("username", "key", "event"),
        "close": (),
        "get_exception": (),
        "get_remote_server_key": (),
        "is_active": (),
        "is_authenticated": (),
        "open_session": ("window_size", "max_packet_size", "timeout"),
        "set_log_channel": ("name",),
        "start_client": ("event", "timeout"),
    },
    paramiko.Channel: {
        "exec_command": ("command",),
        "recv": ("nbytes",),
        "recv_ready": (),
        "recv_stderr": ("nbytes",),
        "recv_stderr_ready": (),
        "sendall": ("s",),
        "settimeout": ("timeout",),
    },
    AgentSSH: {"__init__": (), "_connect": ("conn",), "_send_message": ("msg",), "get_keys": ()},
    paramiko.AgentKey: {
        "__init__": ("agent", "blob", "comment"),
        "asbytes": (),
        "get_name": (),
        "sign_ssh_data": ("data", "algorithm"),
    },
}
# Attributes that an instance has once it is made.
ATTRIBUTES = {
    paramiko.Transport: (
        "active",
        "auth_timeout",
        "logger",
        "packetizer",
        "_cipher_info",
        "_kex_info",
        "_key_info",
        "_mac_info",
    ),
    paramiko.Channel: ("closed", "eof_received", "exit_status", "in_buffer", "in_stderr_buffer", "status_event"),
    paramiko.AgentKey: ("agent", "blob", "comment", "public_blob"),
    AgentSSH: ("_conn",),
}
LISTS = (
    "preferred_ciphers",
    "preferred_compression",
    "preferred_kex",
    "preferred_keys",
    "preferred_macs",
    "preferred_pubkeys",
)
ED25519 = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32)


def parameters(method: object) -> tuple[str, ...]:
    names = tuple(inspect.signature(method).parameters) if callable(method) else ("not a method",)
    return names[1:] if names[:1] == ("self",) else names


@pytest.fixture
def link() -> Iterator[ConfiguredTransport]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ConfiguredTransport(ours, AS_DEFAULT, ())


def test_paramiko_s_methods_have_the_parameters_that_the_overrides_rely_on() -> None:
    changed = {
        f"{kind.__name__}.{name}": parameters(getattr(kind, name, None))
        for kind, methods in METHODS.items()
        for name, wanted in methods.items()
        if parameters(getattr(kind, name, None)) != wanted
    }
    assert changed == {}


def test_paramiko_s_objects_have_the_attributes_that_the_overrides_rely_on(link: ConfiguredTransport) -> None:
    made = {
        paramiko.Transport: link,
        paramiko.Channel: paramiko.Channel(0),
        paramiko.AgentKey: paramiko.AgentKey(AgentSSH(), ED25519),
        AgentSSH: AgentSSH(),
    }
    wanted = [(kind, name) for kind, names in ATTRIBUTES.items() for name in names]
    missing = [f"{kind.__name__}.{name}" for kind, name in wanted if not hasattr(made[kind], name)]
    assert missing == []


def test_paramiko_s_lists_of_algorithms_are_properties_that_name_algorithms() -> None:
    assert [name for name in LISTS if not isinstance(getattr(paramiko.Transport, name), property)] == []


def test_the_wire_replaces_no_more_and_no_less_than_paramiko_s_own(link: ConfiguredTransport) -> None:
    assert isinstance(link.packetizer, Wire)
    ours = {name for name in vars(Wire) if not name.startswith("__") and hasattr(Packetizer, name)}
    assert ours == {
        "close", "closed", "complete_handshake", "handshake_timed_out", "read_all", "read_message", "readline",
        "start_handshake", "write_all",
    }  # fmt: skip


def test_known_types_of_host_keys_are_requested_first_and_nothing_is_left_out(link: ConfiguredTransport) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        known = ConfiguredTransport(ours, AS_DEFAULT, ("ecdsa-sha2-nistp256",))
        assert known.preferred_keys[0] == "ecdsa-sha2-nistp256"
        assert sorted(known.preferred_keys) == sorted(link.preferred_keys)


def test_paramiko_s_own_loggers_are_left_as_they_are(link: ConfiguredTransport) -> None:
    assert link.get_log_channel() == "ncheck.ssh.paramiko_internals"
    assert logging.getLogger("paramiko").level == logging.NOTSET
    assert logging.getLogger("paramiko").propagate
    assert logging.getLogger("paramiko").handlers == []


def test_an_agent_that_does_not_sign_leaves_a_signature_that_no_server_accepts() -> None:
    class Refusing(AgentSSH):
        def _send_message(self, _msg: object) -> tuple[int, Message]:
            return 5, Message()  # SSH_AGENT_FAILURE

    key = AgentKey(Refusing(), ED25519, "me@head")
    signature = key.sign_ssh_data(b"data", "ssh-ed25519")
    assert (signature.get_text(), signature.get_binary()) == ("ssh-ed25519", bytes(64))
    assert key.refusal == "the agent did not sign: key cannot be used for signing"
