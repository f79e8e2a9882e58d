"""Which rank this process is, from the variables that its launcher set.

The innermost launcher counts: the table in ncheck.launchers has their depth. docs/integrations.md has the same table
for users; tests/ncheck/hook/environments has the variables of real jobs that it was made from.

Standard library only: this runs inside the job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

from ncheck.errors import NcheckError
from ncheck.hostlist import is_name, is_v6, split_list
from ncheck.launchers import BARE, RANK_VARIABLES, RankVariables
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable

LARGEST = 1 << 20  # ranks, nodes

_LAST_PORT = 65535


class LauncherVariablesError(NcheckError):
    """The launcher's variables are wrong, incomplete or contradict each other. The message names them."""


@dataclass(frozen=True)
class Rank:
    """The place of a process in its job. None, "" and () stand for what the launcher does not say."""

    rank: int  # 0 <= rank < size
    size: int
    local_rank: int | None = None
    local_size: int | None = None
    node: int | None = None  # index of this node in the job
    nodes: int | None = None
    node_name: str = ""  # the launcher's own name of this host
    hosts: tuple[str, ...] = ()  # of the whole job; which rank is where only `layout` says
    master: str = ""  # name or address where rank 0 is
    master_port: int | None = None
    launcher: str = ""  # "" is a single process that no launcher started
    job: str = ""  # the same on all ranks, and different in another job
    secret: bool = False  # nobody but the job's own processes can know `job`
    attempt: int = 0  # restarts, where that number is the same on all ranks
    named: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # field -> "RANK=3"
    layout: tuple[int, ...] = ()  # for each rank the index of its host in `hosts`, where the launcher says it
    addresses: tuple[str, ...] = ()  # of the host where rank 0 is, as the launcher itself uses them

    def host_of(self, rank: int) -> str:
        """Return the host on which that rank should be; "" if the variables do not say it."""
        return self.hosts[self.layout[rank]] if 0 <= rank < len(self.layout) else ""


class _Variables:
    """The environment of this process; remembers which variable a field came from."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.named: dict[str, str] = {}

    def text(self, name: str, key: str = "") -> str:
        """Return a variable's value, "" if it is not set; it is what `key` comes from."""
        value = self._environ.get(name, "").strip()
        if value and key:
            self.named[key] = self.shown(name)
        return value

    def number(self, name: str, key: str = "", least: int = 0, most: int = LARGEST) -> int | None:
        """Return a variable's number, None if it is not set. Raises LauncherVariablesError if it is none, or wrong."""
        text = self.text(name, key)
        if not text:
            return None
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()):
            raise LauncherVariablesError(f"{self.shown(name)} is not a whole number")
        number = int(text) if len(digits) <= len(str(1 << 64)) else most + 1
        if text[0] == "-" or number < least:
            raise LauncherVariablesError(f"{self.shown(name)} is too small: the minimum is {least}")
        if number > most:
            raise LauncherVariablesError(f"{self.shown(name)} is too large: the maximum is {most}")
        return number

    def shown(self, name: str) -> str:
        """Return "RANK=3"."""
        return f"{name}={printable(self._environ.get(name, ''), 60)}"

    def all_set(self, names: Sequence[str]) -> bool:
        return all(self.text(name) for name in names)


def _started(launcher: RankVariables, variables: _Variables) -> bool:
    """Return whether the environment is one of a process that this launcher started."""
    return variables.all_set((launcher.rank, launcher.size, *launcher.marks))


def _read(launcher: RankVariables, variables: _Variables) -> Rank:
    """Return the rank by this launcher's variables."""
    master = variables.text("MASTER_ADDR", "master")
    found = Rank(
        rank=variables.number(launcher.rank, "rank") or 0,  # both are set in what it started
        size=variables.number(launcher.size, "size", least=1) or 1,
        local_rank=variables.number(launcher.local_rank, "local_rank"),
        local_size=variables.number(launcher.local_size, "local_size", least=1),
        node=variables.number(launcher.node, "node"),
        nodes=variables.number(launcher.nodes, "nodes", least=1),
        node_name=variables.text(launcher.node_name, "node_name"),
        master=master,
        # Kubernetes sets MASTER_PORT=tcp://10.96.0.7:80 where a service is called "master".
        master_port=variables.number("MASTER_PORT", "master_port", least=1, most=_LAST_PORT) if master else None,
        launcher=launcher.name,
        job=" ".join(f"{name}={value}" for name in launcher.job if (value := variables.text(name)) not in _NO_ID),
        secret=bool(launcher.drawn and variables.text(launcher.drawn)),
        attempt=variables.number(launcher.attempt, "attempt") or 0,
        named=variables.named,
    )
    _refuse_outside(found)
    more = _MORE.get(launcher.name)
    return _on_one_node(more(found, variables) if more else found)


_NO_ID = ("", "none")  # torchrun's where the user gave no --rdzv-id


def _refuse_outside(rank: Rank) -> None:
    for index, count in (("rank", "size"), ("local_rank", "local_size"), ("node", "nodes")):
        number, limit = getattr(rank, index), getattr(rank, count)
        if number is not None and limit is not None and number >= limit:
            raise LauncherVariablesError(f"{rank.named[index]} must be below {rank.named[count]}")
    if rank.local_size is not None and rank.local_size > rank.size:
        raise LauncherVariablesError(f"{rank.named['local_size']} is more than {rank.named['size']}")


def _on_one_node(rank: Rank) -> Rank:
    """Complete the place of a rank whose job has only one node."""
    if rank.local_size != rank.size and rank.nodes != 1:
        return rank
    hosts = rank.hosts or ((rank.node_name,) if rank.node_name else ())
    layout = (0,) * rank.size if len(hosts) == 1 else ()
    return replace(rank, node=0, nodes=1, local_size=rank.size, hosts=hosts, layout=layout)


def read_rank(environ: Mapping[str, str]) -> Rank:
    """Return the place of this process in its job.

    Raises LauncherVariablesError if the variables of its launcher are wrong, incomplete or contradict each other.
    """
    present = [launcher for launcher in RANK_VARIABLES if _started(launcher, _Variables(environ))]
    if not present:
        _Variables(environ).number("WORLD_SIZE", least=1)  # alone it is for ranks that this process will start
        return Rank(0, 1)
    inner, *outer = present
    rank = _read(inner, _Variables(environ))
    if inner is BARE and outer:
        around = _read(outer[0], _Variables(environ))
        if not _counts_within(rank, around):
            return _with_master_of_slurm(around, _Variables(environ))
    if inner.rank == "RANK":  # it has no id of its own or one that users choose, and knows no hosts
        rank = _with_outer(rank, outer, environ)
    return _with_master_of_slurm(rank, _Variables(environ))


def _counts_within(bare: Rank, around: Rank) -> bool:
    """Return whether bare RANK and WORLD_SIZE count inside of a launcher, and not its own.

    More ranks than the launcher started: a script that starts one process per GPU. Fewer: they are of the node, or left
    from another job. As many, but counted node by node where the launcher counts otherwise: legal too.
    """
    if bare.size != around.size or bare.rank == around.rank:
        return bare.size > around.size
    if around.local_size is not None and bare.rank % around.local_size == around.local_rank:
        return True
    one, other = bare.named["rank"], around.named["rank"]
    name = one.partition("=")[0]
    raise LauncherVariablesError(
        f"{one} contradicts {other} ({around.launcher}) in a job of {bare.size} ranks: unset {name} or make them equal"
    )


def _with_outer(rank: Rank, outer: Sequence[RankVariables], environ: Mapping[str, str]) -> Rank:
    """Add ids and hosts of the launchers that started the whole job, with one process per rank or per node.

    Others started only a part of it, for example one srun for each node; their ids differ between the ranks.
    """
    wholes = {rank.size} if rank.launcher == BARE.name else {rank.size, rank.nodes}
    for launcher in outer:
        around = _read(launcher, _Variables(environ))
        if around.size in wholes:
            added = {key: text for key, text in around.named.items() if key in ("hosts", "node_name")}
            rank = replace(
                rank,
                job=" ".join(filter(None, (rank.job, around.job))),
                secret=rank.secret or around.secret,
                hosts=rank.hosts or around.hosts,
                node_name=rank.node_name or around.node_name,
                named={**added, **rank.named},
            )
    return _on_one_node(rank)


def _with_master_of_slurm(rank: Rank, variables: _Variables) -> Rank:
    """Take rank 0 to be on the first node of the Slurm allocation, where the launcher does not say it."""
    if rank.master or rank.nodes == 1:
        return rank
    hosts = hosts_of_slurm(variables.text("SLURM_JOB_NODELIST"))
    if not hosts or variables.text("SLURM_DISTRIBUTION") == "arbitrary":
        return rank
    named = {**rank.named, "master": variables.shown("SLURM_JOB_NODELIST")}
    return replace(rank, master=hosts[0], named=named)


# torchrun


def _torch(rank: Rank, _: _Variables) -> Rank:
    """Drop the number of restarts in a job of several agents.

    Each agent counts its own: in a job of two that restarted because a rank of one died, one said 1 and the other 0
    (torch 2.13). All else is as it was before the restart.
    """
    return rank if rank.nodes == 1 else replace(rank, attempt=0)


# srun


def _srun(rank: Rank, variables: _Variables) -> Rank:
    """Add the hosts and the tasks on each. What does not fit this task's own place is not used."""
    hosts = hosts_of_slurm(variables.text("SLURM_STEP_NODELIST"))
    counts = counts_of_slurm(variables.text("SLURM_STEP_TASKS_PER_NODE"))
    distribution = variables.text("SLURM_DISTRIBUTION")
    fitting = len(hosts) == len(counts) == rank.nodes and sum(counts) == rank.size
    if rank.node is not None and fitting:
        variables.text("SLURM_STEP_TASKS_PER_NODE", "local_size")
        rank = replace(rank, local_size=counts[rank.node])
    if distribution == "arbitrary" or not hosts:
        return rank
    if not rank.master:
        variables.text("SLURM_STEP_NODELIST", "master")
        rank = replace(rank, master=hosts[0])
    layout = _layout(counts, _at_once(distribution, variables)) if fitting else ()
    if not layout or layout[rank.rank] != rank.node or variables.text("SLURM_HET_SIZE"):  # each component has its own
        return rank
    variables.text("SLURM_STEP_NODELIST", "hosts")
    return replace(rank, hosts=hosts, layout=layout)


def _at_once(distribution: str, variables: _Variables) -> int:
    """Return how many consecutive tasks a node gets before the next node's turn; 0 unknown."""
    kind = re.split("[:,]", distribution.lower(), maxsplit=1)[0]
    if kind == "plane":
        return variables.number("SLURM_DIST_PLANESIZE") or 0
    return {"": LARGEST, "block": LARGEST, "cyclic": 1}.get(kind, 0)


def _layout(counts: tuple[int, ...], at_once: int) -> tuple[int, ...]:
    """Return for each task the index of its node."""
    left, layout = list(counts), list[int]()
    while at_once and any(left):
        for node, count in enumerate(left):
            turn = min(count, at_once)
            layout += [node] * turn
            left[node] -= turn
    return tuple(layout)


# as in 4(x2),3
_COUNT = re.compile(r"(?P<count>\d{1,7})(?:\(x(?P<times>\d{1,7})\))?", re.ASCII)


def counts_of_slurm(text: str) -> tuple[int, ...]:
    """Return the tasks on each node: "4(x2),3" is (4, 4, 3). () if it is anything else."""
    counts: list[int] = []
    for part in text.split(","):
        found = _COUNT.fullmatch(part)
        times = int(found["times"] or 1) if found else 0
        if not found or len(counts) + times > LARGEST:
            return ()
        counts += [int(found["count"])] * times
    return tuple(counts) if sum(counts) <= LARGEST else ()


def hosts_of_slurm(text: str) -> tuple[str, ...]:
    """Return the names in a node list of Slurm, in its order: "node[01-03,07],login". () if it is anything else.

    (ncheck.hostlist sorts, and takes 20 ms for it.)
    """
    names: list[str] = []
    for part in split_list(text):
        names += _unfolded(part)
        if len(names) > LARGEST:
            return ()
    return tuple(names) if all(is_name(name) for name in names) else ()


# node[01-16,20]-ib
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")

# 01-16
_RANGE = re.compile(r"(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?", re.ASCII)
_MOST_BRACKETS = 4  # in one name


def _unfolded(part: str) -> list[str]:
    """Return the names of one part of a node list; what is no range makes a name that is none."""
    found = _BRACKETS.search(part)
    if not found:
        return [part]
    ranges = [_RANGE.fullmatch(text) for text in found[1].split(",")]
    spans = [(ends["first"], ends["last"] or ends["first"]) for ends in ranges if ends]
    lengths = [int(last) - int(first) + 1 for first, last in spans]
    rest = _unfolded(part[found.end() :]) if part.count("[") <= _MOST_BRACKETS else []
    if len(spans) < len(ranges) or min(lengths) < 1 or not 0 < sum(lengths) * len(rest) <= LARGEST:
        return ["?"]
    numbers = [str(n).zfill(len(first)) for first, last in spans for n in range(int(first), int(last) + 1)]
    return [part[: found.start()] + number + end for number in numbers for end in rest]


# Open MPI


# 843579392.2;tcp://10.20.0.2:33605 (4.1), prterun-node01-24282@0.2;tcp4://127.0.0.1:59233 (5.0): the third daemon
_DAEMON = re.compile(r"[^;]*\.(?P<index>\d{1,7});", re.ASCII)

# 843579392.0;tcp://10.20.0.1,172.17.0.1:46271;tcp6://[fd00::1]:33177
_ADDRESSES = re.compile(r";tcp://(?P<addresses>[0-9.,]+):\d+", re.ASCII)

# prterun-gpu-node01-24282@1
_NAMESPACE = re.compile(r"prte(?:run)?-(?P<host>[A-Za-z0-9_.-]+)-\d+@\d+", re.ASCII)


def _open_mpi(rank: Rank, variables: _Variables) -> Rank:
    """Add where rank 0 is: the daemon that is as many nodes before this one's as there are nodes with lower ranks.

    mpirun is daemon 0, on the host where it was typed, with or without ranks.
    """
    found = _DAEMON.match(variables.text("OMPI_MCA_orte_local_daemon_uri") or variables.text("PMIX_SERVER_URI2"))
    before = _nodes_before(rank, variables)
    if rank.master or not found or before is None or before > int(found["index"]):
        return rank
    first = int(found["index"]) - before
    master, source = _host_of_daemon(first, variables) if before else (rank.node_name, "PMIX_HOSTNAME")
    if master:
        variables.text(source, "master")
    addresses = _ADDRESSES.search(variables.text("OMPI_MCA_orte_hnp_uri")) if first == 0 else None
    unique = dict.fromkeys(addresses["addresses"].split(",")) if addresses else ()
    return replace(rank, master=master, addresses=tuple(unique))


def _nodes_before(rank: Rank, variables: _Variables) -> int | None:
    """Return how many nodes have only lower ranks or, by node, a lower first rank; None unknown."""
    if rank.local_rank is None or rank.local_size is None:
        return None
    if variables.text("OMPI_MCA_rmaps_base_mapping_policy").lower().startswith("node"):
        before = rank.rank - rank.local_rank * (rank.nodes or 0)
        return before if 0 <= before < (rank.nodes or 0) else None
    before, rest = divmod(rank.rank - rank.local_rank, rank.local_size)
    return before if rest == 0 else None


def _host_of_daemon(index: int, variables: _Variables) -> tuple[str, str]:
    """Return the host of Open MPI's daemon of this index and the variable that says it; "" unknown."""
    name = "OMPI_MCA_orte_node_regex"  # gpu[2:1-2,7],login@0(4): the hosts of all daemons, then their hardware
    if text := variables.text(name).partition("@")[0]:
        hosts = hosts_of_slurm(_WIDTH.sub(_with_zeros, text))
        return (hosts[index] if index < len(hosts) else ""), name
    found = _NAMESPACE.fullmatch(variables.text("PMIX_NAMESPACE")) if index == 0 else None
    return (found["host"] if found else ""), "PMIX_NAMESPACE"


# [2:1-2,7]
_WIDTH = re.compile(r"\[(?P<width>\d):(?P<ranges>[^\[\]]*)\]", re.ASCII)


def _with_zeros(found: re.Match[str]) -> str:
    """Return [2:1-2,7] as [01-02,07]."""
    width = int(found["width"])
    return "[" + re.sub(r"\d+", lambda number: number[0].zfill(width), found["ranges"]) + "]"


# horovodrun, paddle


def _horovod(rank: Rank, variables: _Variables) -> Rank:
    """Take rank 0 to be on the host where horovodrun was typed."""
    return rank if rank.master else replace(rank, master=variables.text("HOROVOD_GLOO_RENDEZVOUS_ADDR", "master"))


def _paddle(rank: Rank, variables: _Variables) -> Rank:
    """Add the hosts: each rank has one endpoint, such as 10.20.0.1:6070, and they are listed in the order of ranks."""
    names = [_host_and_port(endpoint) for endpoint in variables.text("PADDLE_TRAINER_ENDPOINTS").split(",")]
    if len(names) != rank.size or not all(is_name(host) or is_v6(host) for host, _ in names):
        return rank
    hosts = tuple(dict.fromkeys(host for host, _ in names))
    index = {host: number for number, host in enumerate(hosts)}
    layout = tuple(index[host] for host, _ in names)
    source = "PADDLE_MASTER" if variables.text("PADDLE_MASTER") else "PADDLE_TRAINER_ENDPOINTS"
    master, port = _host_and_port(variables.text(source).partition(",")[0])
    for key in ("hosts", "node", "node_name"):
        variables.text("PADDLE_TRAINER_ENDPOINTS", key)
    for key in ("master", "master_port"):
        variables.text(source, key)
    return replace(
        rank, node=layout[rank.rank], node_name=hosts[layout[rank.rank]], hosts=hosts, layout=layout,
        master=master, master_port=port,
    )  # fmt: skip


def _host_and_port(endpoint: str) -> tuple[str, int | None]:
    host, _, port = endpoint.rpartition(":")
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= len(str(_LAST_PORT)) else 0
    return host.strip("[]"), number if 1 <= number <= _LAST_PORT else None


_MORE: Mapping[str, Callable[[Rank, _Variables], Rank]] = {
    "torchrun": _torch, "accelerate": _torch, "srun": _srun, "Open MPI": _open_mpi, "horovodrun": _horovod,
    "paddle": _paddle,
}  # fmt: skip
