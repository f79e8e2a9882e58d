"""Real SSH servers on loopback, servers that misbehave on purpose, and a client of each kind for them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from ncheck.fleet.engine import NotConnectedError, Stream
from ncheck.fleet.engines import engines
from ncheck.model.evidence import Login
from ncheck.model.node import Node
from ncheck.settings import Settings

from tests.skips import cannot

NODE = Node("node07")
Handler = Callable[[socket.socket], None]


@dataclass
class Site:
    """One node's ssh configuration, as lines of `Host node07`, and an engine that reads it."""

    folder: Path
    kind: str = "paramiko"
    lines: dict[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]})
    extra: tuple[str, ...] = ()

    def with_lines(self, **lines: object) -> Site:
        return replace(self, lines={**self.lines, **{key: str(value) for key, value in lines.items()}})

    def connect(self, timeout: float = 60.0, node: Node = NODE) -> Stream:
        config = self.folder / f"config-{self.kind}"
        said = [*(f"  {key} {value}" for key, value in self.lines.items()), *(f"  {line}" for line in self.extra)]
        text = "Host *\n" + "\n".join(said) + "\n"
        if not config.exists() or config.read_text() != text:
            config.write_text(text)
        settings = replace(self.settings, transport=self.kind, ssh_config=str(config))
        return engines(settings, self.environ)(node).connect(node, timeout)

    def failure(self, timeout: float = 60.0) -> Login:
        """Return the login that failed; a stream instead is a failure of the test."""
        with pytest.raises(NotConnectedError) as raised:
            self.connect(timeout).close()
        return raised.value.login

    def says(self, script: str, timeout: float = 60.0) -> tuple[bytes, int | None]:
        """Run one line of shell; return its output and exit status."""
        stream = self.connect(timeout)
        try:
            stream.send(script.encode() + b"\n", timeout)
            output = bytearray()
            while data := stream.receive(timeout):
                output += data
            return bytes(output), stream.exit_status(timeout)
        finally:
            stream.close()


@dataclass(frozen=True)
class Keys:
    """A folder of keys made for this run: `user`, `other`, and host keys of two types."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def public(self, name: str) -> str:
        """Return "ssh-ed25519 AAAA..."."""
        return " ".join((self.folder / f"{name}.pub").read_text().split()[:2])


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    _need("ssh-keygen")
    folder = tmp_path_factory.mktemp("keys")
    for name, kind in (("user", "ed25519"), ("other", "ed25519"), ("third", "ed25519"), ("ecdsa", "ecdsa"),
                       ("host_ed25519", "ed25519"), ("host_ecdsa", "ecdsa"), ("ca", "ed25519")):  # fmt: skip
        make_key(folder / name, kind)
    make_key(folder / "rsa", "rsa", "-b", "2048")
    make_key(folder / "locked", "ed25519", passphrase="secret")  # noqa: S106  a key of this test's own
    return Keys(folder)


def make_key(path: Path, kind: str, *options: str, passphrase: str = "") -> None:
    quiet = ["ssh-keygen", "-q", "-C", "test", "-N", passphrase, "-f", str(path)]
    subprocess.run([*quiet, "-t", kind, *options], check=True)


def _need(program: str) -> str:
    """Return the program's path; skip without it."""
    found = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if found is None:
        cannot(f"{program} is not installed")
    return str(found)


class Sshd:
    """Starts sshd in the foreground on free loopback ports; each is ended with the test."""

    def __init__(self, folder: Path, keys: Keys, stack: ExitStack) -> None:
        self.folder, self.keys, self.stack = folder, keys, stack
        self.program = _need("sshd")
        self.started = 0

    def __call__(self, *lines: str, authorized: tuple[str, ...] = ("user",)) -> int:
        """Return the port of a server with these lines in its configuration; the first of each keyword counts."""
        self.started += 1
        port = self.stack.enter_context(kept_port())
        config = self.folder / f"sshd-{self.started}"
        allowed = self.folder / f"authorized-{self.started}"
        allowed.write_text("".join(self.keys.public(name) + "\n" for name in authorized))
        config.write_text("\n".join([
            *lines, f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {self.keys.path('host_ed25519')}",
            f"HostKey {self.keys.path('host_ecdsa')}", f"AuthorizedKeysFile {allowed}", "StrictModes no", "UsePAM no",
            "PermitRootLogin yes", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PidFile none",
        ]) + "\n")  # fmt: skip
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        log = self.stack.enter_context((self.folder / f"log-{self.started}").open("wb"))
        server = subprocess.Popen([self.program, "-D", "-e", "-f", str(config)], stderr=log)
        self.stack.callback(_end, server)
        wait_for_port(port, server)
        return port


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.wait(60)


@contextmanager
def kept_port() -> Iterator[int]:
    """Hold a port that a server of ours may listen on, and that the kernel gives to nobody else meanwhile."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        yield int(sock.getsockname()[1])


def wait_for_port(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while server.poll() is None and time.monotonic() < end:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail(f"sshd does not listen on port {port}")


@pytest.fixture
def sshd(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    with ExitStack() as stack:
        yield Sshd(tmp_path, keys, stack)


@pytest.fixture
def empty_agent(tmp_path: Path) -> Iterator[Path]:
    """Return the socket of an agent that holds no key, once it answers: its socket is there a moment before."""
    path = tmp_path / "agent"
    process = subprocess.Popen([_need("ssh-agent"), "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    while not answers(path):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
    yield path
    _end(process)


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(str(path)) == 0


@pytest.fixture(params=["paramiko", "openssh"])
def site(request: pytest.FixtureRequest, tmp_path: Path, keys: Keys) -> Site:
    """Return a client of each kind; `Port` and the like are added by the test."""
    if request.param == "openssh":
        _need("ssh")
    lines = {
        "HostName": "127.0.0.1", "User": _user(), "IdentityFile": str(keys.path("user")), "IdentitiesOnly": "yes",
        "UserKnownHostsFile": str(tmp_path / "known_hosts"), "GlobalKnownHostsFile": "/dev/null",
        "IdentityAgent": "none",
        "StrictHostKeyChecking": "ask",
    }  # fmt: skip
    return Site(tmp_path, request.param, lines)


def _user() -> str:
    import getpass

    return getpass.getuser()


@pytest.fixture
def known(tmp_path: Path, keys: Keys) -> Callable[[int], None]:
    """Make the host key of a port known."""

    def add(port: int) -> None:
        with (tmp_path / "known_hosts").open("a") as file:
            file.write(f"[127.0.0.1]:{port} {keys.public('host_ed25519')}\n")

    return add


@contextmanager
def serving(handle: Handler) -> Iterator[int]:
    """Run a server of one's own on a loopback port; each connection is handled in a thread and then closed."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []
    open_ones: list[socket.socket] = []

    def handled(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            handle(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                open_ones.append(connection)
                threads.append(threading.Thread(target=handled, args=(connection,)))
                threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield listener.getsockname()[1]
    finally:
        for sock in (listener, *open_ones):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        acceptor.join()
        listener.close()
        for thread in threads:
            thread.join()


@pytest.fixture
def served() -> Callable[[Handler], object]:
    """Hand out what runs a server of the test's own."""
    return serving


def relay(connection: socket.socket, port: int, cut_after: int | None = None) -> None:
    """Pass bytes both ways between a connection and a port, and cut both after so many bytes from the server."""
    with socket.create_connection(("127.0.0.1", port)) as onward:
        upward = threading.Thread(target=_pump, args=(connection, onward, None))
        upward.start()
        _pump(onward, connection, cut_after)
        for sock in (connection, onward):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        upward.join()


def _pump(source: socket.socket, sink: socket.socket, limit: int | None) -> None:
    passed = 0
    with suppress(OSError):
        while (limit is None or passed < limit) and (data := source.recv(65536)):
            sink.sendall(data)
            passed += len(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def relayed() -> Callable[..., None]:
    return relay
