"""A cluster on loopback for the bench: one sshd, or a thousand cheap servers, under as many names as are wanted."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MOST = 1000
# curve25519 on both sides: Debian 12's default exchange costs ssh 80 ms, and would flatter us.
EXCHANGE = "curve25519-sha256,curve25519-sha256@libssh.org"
# No start-up files (HOME is an empty folder), and no limit on logins: it is the client that is measured.
SSHD = """\
Port {port}
ListenAddress 0.0.0.0
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
MaxStartups 1000
KexAlgorithms {exchange}
SetEnv HOME={folder}/home
PidFile none
LogLevel ERROR
"""


@dataclass(frozen=True)
class Cluster:
    """Names n0001 ..., all of them this machine; `config` is what ssh reads with -F."""

    config: Path
    names: tuple[str, ...]

    def first(self, count: int) -> tuple[str, ...]:
        return self.names[:count]

    def listing(self, count: int) -> Path:
        """Return a file of the first so many names, one a line."""
        path = self.config.parent / f"{self.config.name}-nodes-{count}"
        path.write_text("".join(f"{name}\n" for name in self.first(count)))
        return path


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder with the keys of this run."""
    with tempfile.TemporaryDirectory(prefix="ncheck-bench-") as made:
        path = Path(made)
        path.chmod(0o711)
        (path / "home").mkdir()
        for name in ("host_key", "user_key"):
            quiet = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(path / name)]
            subprocess.run(quiet, check=True)
        yield path


@contextmanager
def real(path: Path) -> Iterator[Cluster]:
    """Run one sshd under many names."""
    port = free_port()
    config = path / "sshd_config"
    config.write_text(SSHD.format(port=port, folder=path, exchange=EXCHANGE))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    sshd = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
    if sshd is None:
        sys.exit("bench: sshd is not installed: sudo apt-get install openssh-server")
    with _running([sshd, "-D", "-f", str(config)], port):
        yield _cluster(path, port, "real")


def why_not_cheap() -> str:
    """Say what the cheap servers need and this machine lacks; nothing where they can be compiled."""
    if not shutil.which("cc"):
        return "a C compiler: apt-get install gcc libc6-dev"
    argv = ["cc", "-xc", "-E", "-include", "libssh/server.h", os.devnull]
    tried = subprocess.run(argv, capture_output=True, check=False)
    return "libssh/server.h: apt-get install libssh-dev" if tried.returncode else ""


@contextmanager
def cheap(path: Path) -> Iterator[Cluster]:
    """Compile and run the server that costs next to nothing."""
    source = Path(__file__).with_name("cheap_server.c")
    program = path / "cheap_server"
    subprocess.run(["cc", "-O2", "-w", "-o", str(program), str(source), "-lssh"], check=True)
    port = free_port()
    with _running([str(program), str(port), str(path / "host_key")], port):
        yield _cluster(path, port, "cheap")


@contextmanager
def _running(argv: list[str], port: int) -> Iterator[None]:
    server = subprocess.Popen(argv, start_new_session=True)
    try:
        for _ in range(200):
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        else:
            sys.exit(f"bench: {argv[0]} does not listen on port {port}")
        yield
    finally:
        server.terminate()
        server.wait(10)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def _cluster(path: Path, port: int, name: str) -> Cluster:
    addresses = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(MOST)]
    names = tuple(f"n{number + 1:04d}" for number in range(MOST))
    key = " ".join((path / "host_key.pub").read_text().split()[:2])
    known = path / f"{name}_known_hosts"
    known.write_text("".join(f"[{address}]:{port} {key}\n" for address in addresses))
    config = path / f"{name}_ssh_config"
    hosts = [f"Host {node}\n  HostName {address}\n" for node, address in zip(names, addresses, strict=True)]
    config.write_text(
        "".join(hosts) + f"Host *\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {path}/user_key\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n"
        f"  StrictHostKeyChecking yes\n  KexAlgorithms {EXCHANGE}\n"
    )
    return Cluster(config, names)
