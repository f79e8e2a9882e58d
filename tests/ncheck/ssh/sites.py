"""What the tests of logins share: names for their fixtures, and what a host key is called."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from ncheck.fleet.engine import Stream
from ncheck.model.evidence import Login
from ncheck.settings import Settings

Handler = Callable[[socket.socket], None]
Served = Callable[[Handler], AbstractContextManager[int]]
BANNER = b"SSH-2.0-OpenSSH_9.2p1\r\n"


class Keys(Protocol):
    def path(self, name: str) -> Path: ...
    def public(self, name: str) -> str: ...


class Sshd(Protocol):
    def __call__(self, *lines: str, authorized: tuple[str, ...] = ("user",)) -> int: ...


class Site(Protocol):
    kind: str
    folder: Path
    lines: dict[str, str]
    settings: Settings
    environ: dict[str, str]
    extra: tuple[str, ...]

    def with_lines(self, **lines: object) -> Site: ...
    def connect(self, timeout: float = 60.0) -> Stream: ...
    def failure(self, timeout: float = 60.0) -> Login: ...
    def says(self, script: str, timeout: float = 60.0) -> tuple[bytes, int | None]: ...


Known = Callable[[int], None]


def fingerprint(keys: Keys, name: str) -> str:
    told = subprocess.run(
        ["ssh-keygen", "-lf", str(keys.path(name)) + ".pub"], check=True, capture_output=True, text=True
    )
    return told.stdout.split()[1]


def where(port: int) -> str:
    import getpass

    return f"-p {port} {getpass.getuser()}@node07"
