"""What every launch line is made of: the hosts and their ranks, the network, the variables, the way in, the program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from shlex import quote

from ncheck.facts.mpi import MpiFacts
from ncheck.hostlist import quoted
from ncheck.local_host import Head
from ncheck.model.plan import Setting
from ncheck.plan.networks import Network, reached, shared_by_all
from ncheck.plan.sight import Sight
from ncheck.text import printable, shell_word

PROGRAM = ("python", "train.py")


_SSH_PORT = 22


# python3.11
_INTERPRETER = re.compile(r"python[0-9.]*", re.ASCII)


# =eth0,eth1  ^lo,docker  =mlx5_0:1,mlx5_1:1  10.1.0.0/24
_PLAIN = re.compile(r"[\w.,:=^%@/+-]*", re.ASCII)


class NoLineError(Exception):
    """No line can be given for this launcher; the words say why."""


@dataclass(frozen=True)
class Host:
    """One node of the job: `name` is what a launcher connects to, `address` its own in the job's network, or "".

    `own` are the variables whose values are this node's alone, `host_name` is what it calls itself.
    """

    name: str
    slots: int
    gpus: int = 0
    address: str = ""
    own: Mapping[str, str] = field(default_factory=dict)
    host_name: str = ""


@dataclass(frozen=True)
class Way:
    """What ssh must be told beside its own configuration."""

    port: int | None = None
    user: str | None = None
    identity: str | None = None
    config: str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """Return ssh's options: ("-p 2222", "-l ada"). No "=" in them: Open MPI 5.0 cuts a value there.

        Nor quotation marks: every launcher parts them at blanks, and knows no quoting.
        """
        port = f"-p {self.port}" if self.port not in (None, _SSH_PORT) else ""
        given = (("-l", self.user), ("-i", self.identity), ("-F", self.config))
        return tuple(word for word in (port, *(f"{flag} {value}" for flag, value in given if value)) if word)


@dataclass(frozen=True)
class Launch:
    """One job over all listed nodes. `meeting_port` is where the ranks meet on the first one, 0 where they need none;
    `interfaces` are the names of all interfaces that there are, a set a node. `out_of_band` is where Open MPI's own
    daemons meet, and `libraries` tells whether LD_LIBRARY_PATH is set anywhere; `head` is where the line is typed.
    """

    hosts: tuple[Host, ...]
    network: Network | None
    variables: Mapping[str, str]
    way: Way
    program: tuple[str, ...] = PROGRAM
    meeting_port: int = 0
    mpi: MpiFacts | None = None
    as_root: bool = False
    profile: str = "slot"
    prefix: str | None = None
    interfaces: tuple[frozenset[str], ...] = ()
    out_of_band: OutOfBand | None = None
    libraries: bool = False
    head: Head | None = None

    @property
    def ranks(self) -> int:
        return sum(host.slots for host in self.hosts)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the hosts' names as lists of hosts take them. Raises NoLineError for IPv6 addresses."""
        if numbers := [host.name for host in self.hosts if ":" in host.name]:
            raise NoLineError(f"in {numbers[0]}:8 no launcher can tell address and slots apart: list host names")
        return tuple(host.name for host in self.hosts)

    @property
    def host_list(self) -> str:
        """Return the hosts with their slots: "node01:8,node02:8"."""
        return ",".join(f"{name}:{host.slots}" for name, host in zip(self.names, self.hosts, strict=True))

    @property
    def ssh_arguments(self) -> str:
        return " ".join(self.way.options)

    @property
    def several(self) -> bool:
        return len(self.hosts) > 1

    @property
    def environment(self) -> list[str]:
        """Return the words that set the variables in front of a program: no shell has to know how it exports them."""
        return _set(self.variables)

    def environment_of(self, host: Host) -> list[str]:
        """Return the words that set all variables of one node."""
        return _set({**self.variables, **host.own})

    @property
    def program_anywhere(self) -> tuple[str, ...]:
        """Return the program as one line starts it on all nodes: with each node's own values, where there are such."""
        return wrapped(by_own_name((host.host_name or host.name, host.own) for host in self.hosts), self.program)

    @property
    def meeting(self) -> str:
        """Return the first node's address in the job's network: its name may mean 127.0.1.1 to itself."""
        return _known(self.hosts[0])

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return every node's address in the job's network. Raises NoLineError where one is not known."""
        return tuple(_known(host) for host in self.hosts)

    def alike(self, launcher: str, option: str) -> int:
        """Return the one number of slots that all nodes have; some launchers take no other."""
        counts = {host.slots for host in self.hosts}
        if len(counts) != 1:
            raise NoLineError(f"{launcher}'s {option} is one number for all nodes, and their slots differ")
        return counts.pop()


def by_own_name(values: Iterable[tuple[str, Mapping[str, str]]]) -> dict[str, Mapping[str, str]]:
    """Map what nodes call themselves to their own values, where a node has some.

    Raises NoLineError where nodes of one name (localhost, say) would need several: a shell there could not tell.
    """
    found: dict[str, Mapping[str, str]] = {}
    for name, own in values:
        if found.setdefault(name, own) != own:
            raise NoLineError(
                f"several nodes call themselves {printable(name)}, and need values of their own: name them"
            )
    return {name: own for name, own in found.items() if own}


def _set(variables: Mapping[str, str]) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []


def _known(host: Host) -> str:
    if not host.address:
        raise NoLineError(f"no address is known at which {printable(host.name)} and the other nodes meet")
    return host.address


@dataclass(frozen=True)
class Line:
    """What to type, or several such lines, and why it says what it says; `starts` where that is no rank a slot."""

    text: str
    reasons: tuple[str, ...] = ()
    starts: str = ""


Maker = Callable[[Launch], Line]


EVERYWHERE = "to be typed on every node, each its own line"


def values_in(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return the values that are to be set. Raises NoLineError for one that has no business in a line."""
    found = {name: setting.value for name, setting in settings.items() if setting.value is not None}
    for name, value in found.items():
        if not _PLAIN.fullmatch(value):
            raise NoLineError(f"{quoted(value)}, for {name}, is nothing to put into one")
    return found


def typed(words: list[str]) -> str:
    """Return a line that a shell reads as these words."""
    return " ".join(map(shell_word, words))


def node_by_node(launch: Launch, words: Callable[[int, Host], list[str]]) -> Line:
    """Return the line of each node under a comment that names it; for one node the bare line."""
    if not launch.several:
        return Line(typed(words(0, launch.hosts[0])))
    own = (f"# on {printable(host.name)}:\n{typed(words(rank, host))}" for rank, host in enumerate(launch.hosts))
    return Line("\n".join(own), (EVERYWHERE,))


def endpoint(address: str, port: int) -> str:
    """Return "10.1.0.7:29500", or "[fd00::7]:29500"."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def script(program: tuple[str, ...], module: str, bare: str) -> list[str]:
    """Return the program as a launcher takes it that starts python itself: its script, or `module` and a module's name.

    What is no script of a python on PATH stands behind `bare`, word for word.
    """
    first, *rest = program
    if _INTERPRETER.fullmatch(first):
        rest = rest[1:] if rest[:1] == ["-u"] else rest  # they all start it so
        if rest[:1] == ["-m"] and len(rest) > 1 and module:
            return [module, *rest[1:]]
        if rest and not rest[0].startswith("-"):
            return rest
    return list(program) if first.endswith(".py") else [*([bare] if bare else []), *program]


def interpreter(program: tuple[str, ...]) -> str:
    """Return the program's own python, for a launcher that is a module."""
    return program[0] if _INTERPRETER.fullmatch(program[0].rpartition("/")[2]) else "python3"


@dataclass(frozen=True)
class OutOfBand:
    """`subnet` is "" where routers join the nodes. `names` lead there, one or more on every machine that takes part.

    Without either, nothing can be named; `why` says so, or why it is not the job's own network.
    """

    subnet: str = ""
    names: tuple[str, ...] = ()
    why: str = ""

    @property
    def where(self) -> str:
        """Return the subnet, which holds where names differ, else the names; Open MPI takes IPv4 subnets only."""
        return self.subnet if self.subnet and ":" not in self.subnet else ",".join(self.names)


def out_of_band(sight: Sight, network: Network, head: Head | None) -> OutOfBand:
    """Return where mpirun, typed on the head, and its daemons meet: in the job's network, or in the next that is whole.

    Where nothing is known of the head, it is taken to be like the nodes.
    """
    if head is None:
        return OutOfBand(network.subnet, _names(network))
    if held := _held(head, network):
        return OutOfBand(network.subnet, _names(network, held))
    here = f"this machine has no address in {network.told}"
    for other in _others(sight, network):
        if held := _held(head, other):
            why = f"{here}: mpirun and its daemons reach each other on {other.subnet}"
            return OutOfBand(other.subnet, _names(other, held), why)
    return OutOfBand(why=f"{here}: how mpirun and its daemons reach each other is left to them")


def _others(sight: Sight, network: Network) -> Iterator[Network]:
    found = [one for one in shared_by_all(sight) if one.subnet != network.subnet]
    yield from sorted(found, key=lambda one: reached(sight, one).whole is False)


def _held(head: Head, network: Network) -> tuple[str, ...]:
    """Return the head's interfaces there; where routers join the nodes, only a head that is one of them has any."""
    if not network.subnet:
        own = {seat.ip for held in network.members.values() for seat in held}
        return tuple(name for ip, name in head.interfaces.items() if ip in own)
    subnet = ip_network(network.subnet)
    return tuple(name for ip, name in head.interfaces.items() if ip_address(ip.partition("%")[0]) in subnet)


def _names(network: Network, held: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return one name that all have, else all names."""
    common = next((name for name in network.names if not held or name in held), None)
    return (common,) if common else tuple(sorted({*network.first_names, *held}))


Own = Mapping[str, Mapping[str, str]]  # variables by the name that a node calls itself by (uname -n)


_UNKNOWN = 'echo "ncheck: nothing is known to be right for $(uname -n)" >&2'


def exported(own: Own) -> str:
    """Return the statement that exports a node's own values in the shell that reads it, and fails on another node."""
    return _case(own, f"  *) {_UNKNOWN}; false ;;", "\n")


def wrapped(own: Own, program: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program behind a shell that exports the node's own values first; the program alone for none."""
    if not own:
        return program
    return ("sh", "-c", _case(own, f"*) {_UNKNOWN}; exit 1 ;;", " ") + '; exec "$@"', "sh", *program)


def _case(own: Own, otherwise: str, between: str) -> str:
    indent = "  " if between == "\n" else ""
    rows = (f"{indent}{'|'.join(names)}) export {values} ;;" for values, names in _alike(own))
    return between.join(['case "$(uname -n)" in', *rows, otherwise, "esac"])


def _alike(own: Own) -> Iterator[tuple[str, list[str]]]:
    """Yield the values as a shell takes them, with the nodes that have them."""
    nodes: dict[str, list[str]] = {}
    for name, values in own.items():
        said = " ".join(f"{variable}={shell_word(value)}" for variable, value in values.items())
        if said:
            nodes.setdefault(said, []).append(quote(name))
    yield from nodes.items()
