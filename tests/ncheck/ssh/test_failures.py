"""OpenSSH's messages, as its versions print them, and the cause that each names."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.ssh.failures import cause_of, main_line, name_unknown
from ncheck.ssh.login import LoginCause
from ncheck.ssh.target import SshTarget

CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Host key for node02 has changed and you have requested strict checking.
Host key verification failed.
"""
SLURM = """Access denied by pam_slurm_adopt: you have no active jobs on this node
Connection closed by 10.0.0.2 port 22
"""

OPEN_KEY = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Permissions 0644 for '/root/.ssh/id_ed25519' are too open.
This private key will be ignored.
Load key "/root/.ssh/id_ed25519": bad permissions
root@node02: Permission denied (publickey).
"""

MESSAGES = {
    OPEN_KEY: LoginCause.TRANSPORT,
    "Bad owner or permissions on /root/.ssh/config": LoginCause.TRANSPORT,
    "/root/.ssh/config: line 1: Bad configuration option: prot": LoginCause.TRANSPORT,
    '/root/.ssh/config line 2: unsupported option "maybe".': LoginCause.TRANSPORT,
    "Cannot execute command-line and remote command.": LoginCause.TRANSPORT,
    "Unable to negotiate with ::1 port 22: no matching key exchange method found. Their offer: x": LoginCause.TRANSPORT,
    "ssh: Could not resolve hostname nosuch: Name or service not known": LoginCause.NAME_UNKNOWN,
    "ssh: Could not resolve hostname nosuch: Temporary failure in name resolution": LoginCause.NAME_UNKNOWN,
    "ssh: connect to host node02 port 22: Connection refused": LoginCause.REFUSED,
    "ssh: connect to host node02 port 22: Connection timed out": LoginCause.FILTERED,
    "ssh: connect to host node02 port 22: No route to host": LoginCause.UNROUTABLE,
    "ssh: connect to host node02 port 22: Network is unreachable": LoginCause.UNROUTABLE,
    "ssh: connect to host node02 port 22: Invalid argument": LoginCause.UNROUTABLE,
    "Connection timed out during banner exchange\nConnection to 10.0.0.2 port 22 timed out": LoginCause.SILENT,
    "Connection to 10.0.0.2 port 22 timed out": LoginCause.STALLED,
    "kex_exchange_identification: banner line contains invalid characters\nbanner exchange: Connection to 10.0.0.2 port"
    " 80: invalid format": LoginCause.NOT_SSH,
    "No ED25519 host key is known for node02 and you have requested strict checking.\nHost key verification failed.":
        LoginCause.HOST_KEY_UNKNOWN,
    "Host key verification failed.": LoginCause.HOST_KEY_UNKNOWN,
    CHANGED: LoginCause.HOST_KEY_CHANGED,
    "me@node02: Permission denied (publickey).": LoginCause.AUTH_REFUSED,
    "me@node02: Permission denied (publickey,gssapi-keyex,gssapi-with-mic,password).": LoginCause.AUTH_REFUSED,
    "me@node02: Permission denied (keyboard-interactive).": LoginCause.PERSON_WANTED,
    "Received disconnect from 10.0.0.2 port 22:2: Too many authentication failures\nDisconnected from 10.0.0.2 port 22":
        LoginCause.TOO_MANY_KEYS,
    "WARNING: Your password has expired.\nPassword change required but no TTY available.": LoginCause.PERSON_WANTED,
    SLURM: LoginCause.SLURM_JOB_WANTED,
    "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 10.0.0.2 port 22":
        LoginCause.OVERLOADED,
    "kex_exchange_identification: Connection closed by remote host": LoginCause.OVERLOADED,
    "Connection closed by 10.0.0.2 port 22": LoginCause.CLOSED,
    "This account is currently not available.": LoginCause.NO_SHELL,
}  # fmt: skip


@pytest.mark.parametrize(("message", "cause"), MESSAGES.items())
def test_each_message_names_its_cause(message: str, cause: LoginCause) -> None:
    assert cause_of(message) is cause


def test_an_unknown_message_names_no_cause() -> None:
    assert cause_of("bash: line 1: orted: command not found") is None
    assert cause_of("/root/.bashrc: line 3: module: command not found") is None
    assert cause_of("") is None


def test_the_line_that_is_shown_is_the_one_that_names_the_cause() -> None:
    assert main_line(CHANGED) == "Host key for node02 has changed and you have requested strict checking."
    assert main_line(SLURM) == "Access denied by pam_slurm_adopt: you have no active jobs on this node"
    assert main_line("one\ntwo\n\n") == "two"
    assert main_line("") == ""


def test_a_key_that_ssh_leaves_out_is_what_is_shown_and_not_the_refusal_that_follows() -> None:
    assert main_line(OPEN_KEY) == "Permissions 0644 for '/root/.ssh/id_ed25519' are too open."


@pytest.mark.parametrize(
    ("listed", "meant"),
    [
        ("nO", "; did you mean n0?"), ("gpuo1", "; did you mean gpu01?"), ("ndoe02", "; did you mean node02?"),
        ("nod02", "; did you mean node02?"), ("node99", ""), ("gpu09", ""), ("other", ""), ("hidden", ""),
    ],
)  # fmt: skip
def test_a_name_that_does_not_resolve_is_compared_with_those_that_are_known_here(
    tmp_path: Path, listed: str, meant: str
) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("n0,10.0.0.1 ssh-ed25519 AAAA\ngpu01 ssh-rsa AAAA\nnode02 ssh-rsa A\n|1|a=|b= ssh-rsa A\n\x00\n")
    target = SshTarget(listed, listed.lower(), known_hosts_files=(str(known),))
    detail = f"the name {listed} does not resolve on this machine: Name or service not known{meant}"
    assert name_unknown(target, "Name or service not known").detail == detail
