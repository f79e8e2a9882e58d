"""The nodes of a run: from a host file in any usual format, -H, a Slurm allocation, or only this machine."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from ncheck.errors import InventoryError
from ncheck.files import reading
from ncheck.hostlist import MOST, fold, quoted, split_list, unfold
from ncheck.inventory.hostfile import ListedHosts, listed_host, listed_line
from ncheck.model.node import ListLine, Node
from ncheck.settings import Settings
from ncheck.text import printable

LARGEST = 16 * 2**20  # bytes of a host file: hundreds of thousands of lines
SLURM_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")


def read_inventory(settings: Settings, *, stdin: BinaryIO, environ: Mapping[str, str]) -> tuple[Node, ...]:
    """Return the nodes in the order of the list, each name once. Raises InventoryError with the place of the error."""
    if settings.local:
        nodes: tuple[Node, ...] = (_this_machine(),)
    elif settings.hosts is not None:
        nodes = _nodes(from_names(settings.hosts))
    elif settings.nodes_file is not None:
        nodes = _nodes(_from_file(settings.nodes_file, stdin, settings.run.sources.get("nodes_file")))
    elif not names_nobody(settings, environ):
        place = settings.named("slurm") if settings.slurm else settings.named("via", settings.via)
        nodes = _nodes(_from_slurm(environ, place, "--slurm" if settings.slurm else f"--via {settings.via}"))
    else:
        nodes = (_this_machine(),)
    if settings.run.earlier:
        nodes = settings.run.earlier.among(nodes)
    if settings.via == "srun":
        _require_allocated(nodes, environ, settings.named("via", "srun"))
    return nodes


def set_apart(
    nodes: tuple[Node, ...], spares: str, settings: Settings, environ: Mapping[str, str]
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Return the nodes of the job and its spares, which the list may name, too. Raises InventoryError."""
    if not spares:
        return nodes, ()
    own = {node.name: node for node in nodes}
    kept = tuple(own.get(node.name, node) for node in _nodes(from_names(spares, "--spare")))
    if settings.via == "srun":
        _require_allocated(kept, environ, settings.named("via", "srun"))
    left = tuple(node for node in nodes if node not in kept)
    if not left:
        raise InventoryError("--spare: every node of the list is a spare, and none is left for the job")
    return left, kept


def names_nobody(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether neither the command line, a file nor Slurm names a node: then it is about this machine alone.

    Raises InventoryError for an option of SSH then.
    """
    named = settings.local or settings.hosts is not None or settings.nodes_file is not None or settings.slurm
    if named or settings.via == "srun" or _nodelist(environ):
        return False
    _refuse_login(settings)
    return True


def _refuse_login(settings: Settings) -> None:
    """Refuse an option of SSH where no nodes are named: who types one does not mean this machine alone."""
    for name in ("port", "user", "identity", "ssh_config"):
        if getattr(settings, name) is not None and name not in settings.run.sources:
            option = settings.named(name, shlex.quote(printable(str(getattr(settings, name)))))
            why = "no nodes are named, and this machine is checked without SSH"
            raise InventoryError(f"{option}: {why}; as in: ncheck nodes.txt {option}")


def _require_allocated(nodes: tuple[Node, ...], environ: Mapping[str, str], place: str) -> None:
    """Refuse nodes on which this job can start nothing."""
    allocated = {name for line in _from_slurm(environ, place, "--via srun") for name in line.names}
    for node in nodes:
        if node.name not in allocated:
            raise InventoryError(
                f"{node.places[0]}: {quoted(node.name)} is not in this Slurm allocation ({printable(fold(allocated))})"
            )


def _this_machine() -> Node:
    import socket

    return Node(socket.gethostname() or "localhost", places=("local",))


def _nodes(listed: Iterable[ListedHosts]) -> tuple[Node, ...]:
    """Make nodes from lines: a repeated name is one node with several places."""
    nodes: dict[str, Node] = {}
    for line in listed:
        for name in line.names:
            lines = (line.line,) if line.line else ()
            node = Node(name, line.user, line.port, line.slots, line.max_slots, (line.place,), lines)
            nodes[name] = _joined(nodes[name], node) if name in nodes else node
        if len(nodes) > MOST:
            raise InventoryError(f"{line.place}: more than {MOST} hosts")
    return tuple(nodes.values())


def _joined(earlier: Node, again: Node) -> Node:
    """Join two mentions of one name. Two ports or users would be two nodes, which need two names."""
    for word, one, other in (("port", earlier.port, again.port), ("user", earlier.user, again.user)):
        if one != other and one is not None and other is not None:
            raise InventoryError(
                f"{again.places[0]}: {quoted(again.name)} has {word} {other} here, but {word} {one} at"
                f" {earlier.places[0]}: one name is one node; name the second with Host and HostName in ~/.ssh/config"
            )
    return replace(
        earlier,
        user=earlier.user or again.user,
        port=earlier.port or again.port,
        slots=max(earlier.slots or 0, again.slots or 0) or None,
        max_slots=max(earlier.max_slots or 0, again.max_slots or 0) or None,
        places=earlier.places + again.places,
        lines=earlier.lines + again.lines,
    )


def from_names(hosts: str, place: str = "-H") -> tuple[ListedHosts, ...]:
    """Read a list of hosts as -H has it. Raises InventoryError, which names the place."""
    if not hosts.strip():
        raise InventoryError(f"{place}: no host given; write -H node01:8,node02:8")
    read = [(part, _at(listed_host, part, place)) for part in split_list(hosts)]
    return tuple(replace(listed, line=ListLine("hosts", place, part, listed.written)) for part, listed in read)


def _at(read: Callable[[str, str], ListedHosts], text: str, place: str) -> ListedHosts:
    """Read one host or line. Raises InventoryError with its place."""
    try:
        return read(text, place)
    except ValueError as error:
        raise InventoryError(f"{place}: {error}") from None


def _from_file(path: str, stdin: BinaryIO, source: str | None) -> Iterable[ListedHosts]:
    """Read a host file; `source` is the key of the settings file that names it."""
    name = "standard input" if path == "-" else printable(path)
    try:
        text = _text(name, path, stdin)
    except InventoryError as error:
        raise InventoryError(f"{source}: {error}" if source else str(error)) from None
    listed = list(_lines(name, text.replace("\r\n", "\n").replace("\r", "\n")))
    if not listed:
        raise InventoryError(f"{name}: contains no host; write one host per line, as in: node01 slots=8")
    return listed


def _lines(name: str, text: str) -> Iterable[ListedHosts]:
    """Read the lines with hosts; each keeps its text and the comments above it."""
    above: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if words := line.partition("#")[0].strip():
            place = f"{name}:{number}"
            listed = _at(listed_line, words, place)
            yield replace(listed, line=ListLine("file", place, line.rstrip(), listed.written, tuple(above)))
            above = []
        else:
            above.append(line.rstrip())


def _text(name: str, path: str, stdin: BinaryIO) -> str:
    """Read the whole file. Raises InventoryError with the reason if it is not a text file."""
    try:
        data = stdin.read(LARGEST + 1) if path == "-" else _read(path)
    except FileNotFoundError:
        raise InventoryError(f"{name}: no such file{instead_of_file(path)}") from None
    except IsADirectoryError:
        recorded = "; to judge a recording: ncheck replay DIR" if any(Path(path).glob("*.json")) else ""
        raise InventoryError(f"{name}: is a directory; expected a file with one host per line{recorded}") from None
    except PermissionError:
        raise InventoryError(f"{name}: permission denied; see: ls -l {name}") from None
    except (OSError, ValueError) as error:
        raise InventoryError(f"{name}: {printable(getattr(error, 'strerror', None) or str(error))}") from None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InventoryError(f"{name}: is UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE")
    if b"\0" in data:
        raise InventoryError(f"{name}: is a binary file; expected a file with one host per line")
    if len(data) > LARGEST:
        raise InventoryError(f"{name}: is larger than {LARGEST // 2**20} MiB, so not a host file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InventoryError(f"{name}:{line}: is not UTF-8; save the file as UTF-8") from None


def _read(path: str) -> bytes:
    with reading(path) as file:
        return file.read(LARGEST + 1)


def instead_of_file(path: str) -> str:
    """Return what helps where a file is not there: how a host is named, if this is not the name of a file."""
    if "/" in path:
        return ""
    if path.endswith((".txt", ".list", ".hosts", ".ini", ".yaml", ".yml", ".json")):
        return "; write one host per line into it"
    try:
        unfold(path)
    except ValueError:
        return ""
    return f"; to check a host by name: -H {path}"


def _nodelist(environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in SLURM_LISTS if environ.get(name)), "")


def _from_slurm(environ: Mapping[str, str], place: str, option: str) -> Iterable[ListedHosts]:
    """Read the current allocation; slots are the tasks per node of Slurm. `place` asked for it, as `option` would."""
    nodelist = _nodelist(environ)
    if not nodelist:
        raise InventoryError(
            f"{place}: not in an allocation (SLURM_JOB_NODELIST is not set); start one: salloc -N 2 ncheck {option}"
        )
    variable = next(name for name in SLURM_LISTS if environ.get(name))
    try:
        names = unfold(nodelist)
        slots = _tasks(environ, len(names))
    except ValueError as error:
        raise InventoryError(f"{variable}: {error}") from None
    for name, count in zip(names, slots, strict=True):
        yield ListedHosts((name,), variable, slots=count, line=ListLine("slurm", variable, name, name))


def nodes_of_job(job: str) -> str:
    """Return the node list of a job: "gpu[01-04]". Raises InventoryError where Slurm does not name one."""
    from ncheck.this_machine.process import run

    argv = ["squeue", "--noheader", "--states=RUNNING,SUSPENDED,COMPLETING", "--format=%N", f"--jobs={job}"]
    try:
        done = run(argv, _SQUEUE_PATIENCE)
    except FileNotFoundError:
        raise InventoryError(f"--slurm {job}: no squeue on this machine; name the nodes: ncheck triage NODES") from None
    if done.late:
        raise InventoryError(f"--slurm {job}: squeue did not answer within {_SQUEUE_PATIENCE:.0f} s")
    nodes = ",".join(done.stdout.split())
    if done.exit_status or not nodes:
        last = done.stderr.strip().splitlines()[-1:]
        why = printable(last[0], 200) if last else "no such job runs"
        raise InventoryError(f"--slurm {job}: {why}; to list yours: squeue --me")
    return nodes


_SQUEUE_PATIENCE = 10.0  # seconds


def _tasks(environ: Mapping[str, str], nodes: int) -> list[int | None]:
    """Return the tasks of each node: "8(x4),4" is four nodes with 8 and one with 4. Invalid values are not used."""
    tasks = environ.get("SLURM_NTASKS_PER_NODE") or environ.get("SLURM_TASKS_PER_NODE") or ""
    counts: list[int | None] = []
    for part in tasks.split(","):
        count, _, times = part.strip().partition("(x")
        repeated = times.rstrip(")") or "1"
        if not (count.isdecimal() and repeated.isdecimal()) or int(repeated) > nodes:
            return [None] * nodes
        counts += [int(count) or None] * int(repeated)
    if len(counts) == 1:
        return counts * nodes
    return counts if len(counts) == nodes else [None] * nodes
