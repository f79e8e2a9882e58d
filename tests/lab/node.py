"""One node of the lab: a host name, an address, a root folder, a process tree and an OpenSSH server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from . import layers, namespaces

SCRIPT = Path(__file__).with_name("node.sh")


class Node:
    """`pid` is the node's init as this machine's root namespace numbers it; `touched`: no longer as it was made;
    `nics`: what the interfaces that lead out of it are called.
    """

    pid: int
    touched: bool = False
    _init: subprocess.Popen[str]

    def __init__(self, head: int, name: str, address: str, folder: Path, nics: tuple[str, ...]) -> None:
        self.name = name
        self.address = address
        self.nics = nics
        self.number = int(name[-2:])
        self.mac = "02:00:00:00:00:" + name[-2:]
        self._head = head
        self._folder = folder

    @property
    def _inside(self) -> Path:
        """The node's own file system: upper, work, root, class."""
        return Path("/proc", str(self._head), "root") / str(self._folder / self.name).lstrip("/")

    @property
    def upper(self) -> Path:
        """What was ever written on this node: the overlay's upper folder."""
        return self._inside / "upper"

    @property
    def root(self) -> Path:
        """The node's root folder as seen from here."""
        return Path("/proc", str(self.pid), "root")

    def prepare(self, host_key: layers.Key) -> None:
        """Lay out the files of a new node."""
        for name in ("upper", "work", "root"):
            shutil.rmtree(self._inside / name, ignore_errors=True)
            (self._inside / name).mkdir()
        layers.write(self.upper / "etc/ssh/ssh_host_ed25519_key", host_key.private, 0o600)
        layers.write(self.upper / "etc/hostname", self.name + "\n")

    def start(self, real: Mapping[str, Path]) -> None:
        """Begin to start; await_made and go_on finish it. `real` maps files of the node to this machine's own."""
        self.touched = True  # until it is made
        self._real = bool(real)
        lower = f"{self._folder}/common:{self._folder}/bare:/"
        script = ["bash", str(SCRIPT), self.name, self.address, str(self._folder / self.name), lower]
        script += [f"{path}={name}" for name, path in real.items()]
        self._init = namespaces.start(namespaces.enter(self._head, ["unshare", *namespaces.INIT, *script]))

    def await_made(self) -> None:
        namespaces.expect(self._init, "made")
        self.pid = namespaces.innermost(self._init.pid)

    def go_on(self) -> None:
        namespaces.tell(self._init)
        namespaces.expect(self._init, "ready")
        self.touched = self._real

    def end(self) -> None:
        """Switch the node off. Its interfaces go first: the kernel ends a network in its own time, and the next
        interface of that hardware address or plugged into that port would have to wait for it.
        """
        if hasattr(self, "pid"):
            gone = "".join(f"link delete {nic}\n" for nic in self.nics)
            namespaces.run(
                ["nsenter", "-t", str(self.pid), "-n", "ip", "-force", "-batch", "-"], stdin=gone, check=False
            )
        namespaces.end(self._init)

    def sh(self, script: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a shell script on the node as root."""
        self.touched = True
        return namespaces.run(namespaces.enter(self.pid, ["bash", "-c", script], rooted=True), check=check)

    def path(self, name: str) -> Path:
        """Return a path of the node as seen from here."""
        return self.root / name.lstrip("/")

    def write(self, name: str, text: str | bytes, mode: int = 0o644, user: layers.User = layers.ROOT) -> None:
        """Write a file on the node."""
        self.touched = True
        layers.write(self.path(name), text, mode, user.uid)

    def processes(self) -> dict[int, str]:
        """Map the node's processes, numbered as the node does, to their command lines."""
        return namespaces.processes(self.root)

    def tree(self) -> dict[str, tuple[object, ...]]:
        """Describe all that was ever written on the node, but for what sshd writes itself."""
        return layers.listing(self.upper, but=("var/log/lastlog", "var/log/wtmp", "var/log/btmp"))
