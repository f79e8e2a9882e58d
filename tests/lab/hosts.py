"""The lab: a head host and N nodes, all of them namespaces, on a network of their own that nobody else sees."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from . import layers, namespaces
from .node import Node
from .wiring import ONE_NIC, Wiring, ip

NONE: Mapping[str, Path] = {}
SCRIPT = Path(__file__).with_name("head.sh")


class Lab:
    """A running lab, once it was started. `pid` is the head's init: whatever the lab ever started ends with it."""

    name = "head"
    pid: int

    def __init__(self, size: int, wiring: Wiring = ONE_NIC) -> None:
        self.wiring = wiring
        self.folder = Path(tempfile.mkdtemp(prefix="ncheck-lab-"))
        self.names = tuple(f"node{number:02}" for number in range(1, size + 1))
        argv = ["unshare", *namespaces.INIT, "--mount-proc", "bash", str(SCRIPT), str(self.folder), *self.names]
        self._init = namespaces.start(argv)
        self.addresses = {name: f"10.77.0.{number}" for number, name in enumerate(self.names, 1)}
        self.host_keys = {name: layers.new_key() for name in self.names}
        self.nodes: tuple[Node, ...] = ()

    def start(self) -> None:
        """Bring up the head, then all nodes at once."""
        namespaces.expect(self._init, "made")
        self.pid = namespaces.innermost(self._init.pid)
        self.wiring.head(self.pid)
        self._fill()
        self.nodes = tuple(
            Node(self.pid, name, self.addresses[name], self.folder, self.wiring.nics(number))
            for number, name in enumerate(self.names, 1)
        )
        self.boot(self.nodes)

    def _fill(self) -> None:
        layers.bare(self.inside / "bare")
        layers.common(self.inside / "common", {**self.addresses, "head": "10.77.0.254"}, self.host_keys)
        layers.software(self.inside / "common")
        layers.gpus(self.inside / "common", self.inside / "sys")
        namespaces.tell(self._init)
        namespaces.expect(self._init, "ready")
        for user in layers.USERS:
            layers.write(self.root / user.home.lstrip("/") / "nodes.txt", "", uid=user.uid)

    @property
    def root(self) -> Path:
        """The head's root folder as seen from here."""
        return Path("/proc", str(self.pid), "root")

    @property
    def inside(self) -> Path:
        """The lab's own file system: its layers and the nodes' folders."""
        return self.root / str(self.folder).lstrip("/")

    def boot(self, nodes: Iterable[Node], real: Mapping[str, Path] = NONE) -> None:
        """Start nodes, all at once. `real` maps their files to this machine's own, which stand there instead."""
        nodes = tuple(nodes)
        for node in nodes:
            node.prepare(self.host_keys[node.name])
            node.start(real)
        for node in nodes:
            node.await_made()
        ip(self.pid, "".join(self.wiring.links(node) for node in nodes))
        for node in nodes:
            if wanted := self.wiring.addresses(node):
                ip(node.pid, wanted)
        for node in nodes:
            node.go_on()

    def remake(self, *nodes: Node, real: Mapping[str, Path] = NONE) -> None:
        """Give back nodes as they were on the first day."""
        for node in nodes:
            node.end()
        ip(self.pid, "".join(self.wiring.unplug(node) for node in nodes))
        self.boot(nodes, real)

    def processes(self) -> dict[int, str]:
        """Map the head's processes, among them those of all nodes, to their command lines."""
        return namespaces.processes(self.root)

    def tree(self) -> dict[str, tuple[object, ...]]:
        """Describe what was ever written in the head's homes and /etc, but for what tests hand to ncheck."""
        found = layers.listing(self.inside / "head")
        return {
            path: what
            for path, what in found.items()
            if "work" not in Path(path).parts and "/recording" not in path and not path.endswith("nodes.txt")
        }

    def heal(self) -> None:
        """Remake the nodes that were touched since they were made."""
        self.remake(*(node for node in self.nodes if node.touched))

    def head(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command on the head as root."""
        return namespaces.run(namespaces.enter(self.pid, argv), check=check)

    @contextmanager
    def file_on_head(self, name: str, text: str | None = None, mode: int = 0o644) -> Iterator[None]:
        """Put a file on the head for a while; without a text, only keep what is there and put it back afterwards."""
        path = self.root / name
        before = path.read_bytes() if path.exists() else None
        if text is not None:
            layers.write(path, text, mode)
        try:
            yield
        finally:
            path.unlink(missing_ok=True) if before is None else path.write_bytes(before)

    def end(self) -> None:
        """End everything; nothing of the lab is left on the machine."""
        for node in self.nodes:
            node.end()
        namespaces.end(self._init)
        shutil.rmtree(self.folder)


@contextmanager
def lab(size: int = 4, wiring: Wiring = ONE_NIC) -> Iterator[Lab]:
    """Run a lab of so many nodes."""
    made = Lab(size, wiring)
    try:
        made.start()
        yield made
    finally:
        made.end()
