"""What every launcher's command line is made of: hosts and their ranks, network, variables, ssh options, program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from ipaddress import ip_address, ip_network
from shlex import quote

from ncheck.expression import expression
from ncheck.facts.mpi import MpiFacts
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.plan import Setting
from ncheck.plan.networks import Network, connectivity, shared_by_all
from ncheck.text import printable, shell_word
from ncheck.this_machine.local_host import LocalHost

PROGRAM = ("python", "train.py")

SSH_PORT = 22

# python3.11
_INTERPRETER = expression(r"python[0-9.]*", re.ASCII)

# =eth0,eth1  ^lo,docker  =mlx5_0:1,mlx5_1:1  10.1.0.0/24
_SAFE = expression(r"[\w.,:=^%@/+-]*", re.ASCII)


class NoLineError(Exception):
    """There is no line for this launcher; the message says why."""


@dataclass(frozen=True)
class LaunchHost:
    """One node of the job: `name` is what a launcher connects to, `address` its own in the job's network, or "".

    `own` are the variables whose values differ between nodes, `host_name` is the node's own name (uname -n).
    """

    name: str
    slots: int
    gpus: int = 0
    address: str = ""
    own: Mapping[str, str] = field(default_factory=dict)
    host_name: str = ""


@dataclass(frozen=True)
class SshOptions:
    """What the launcher's ssh needs besides its own configuration."""

    port: int | None = None
    user: str | None = None
    identity: str | None = None
    config: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Return ssh's options: ("-p 2222", "-l ada").

        They contain no "=", where Open MPI 5.0 cuts a value, and no quotes: every launcher splits them at blanks.
        """
        port = f"-p {self.port}" if self.port not in (None, SSH_PORT) else ""
        given = (("-l", self.user), ("-i", self.identity), ("-F", self.config))
        return tuple(word for word in (port, *(f"{flag} {value}" for flag, value in given if value)) if word)


@dataclass(frozen=True)
class Launch:
    """One job over all listed nodes.

    `meeting_port` is where the ranks meet on the first node, 0 if they need none. `interfaces` are the names of all
    interfaces of each node. `out_of_band` is the network of Open MPI's own daemons, `pass_library_path` whether
    LD_LIBRARY_PATH is set anywhere, and `local_host` the machine on which the line is typed. `excluding` are Open MPI's
    lists of interfaces to leave out that every node has (btl_tcp_if_exclude). `slurm_left_over`: where the line is
    typed, Slurm's variables are set, and the nodes are not taken from them. `releases` of the launcher's own package
    are those of all nodes, () where it is unknown. `here`: no node was
    named, and the job runs on this machine.
    """

    hosts: tuple[LaunchHost, ...]
    network: Network | None
    variables: Mapping[str, str]
    ssh: SshOptions
    program: tuple[str, ...] = PROGRAM
    meeting_port: int = 0
    mpi: MpiFacts | None = None
    as_root: bool = False
    profile: str = "slot"
    prefix: str | None = None
    interfaces: tuple[frozenset[str], ...] = ()
    out_of_band: OutOfBand | None = None
    pass_library_path: bool = False
    local_host: LocalHost | None = None
    excluding: frozenset[str] = frozenset()
    slurm_left_over: bool = False
    releases: frozenset[tuple[int, ...]] = frozenset()
    here: bool = False

    @property
    def ranks(self) -> int:
        return sum(host.slots for host in self.hosts)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the hosts' names for a list of hosts. Raises NoLineError for IPv6 addresses."""
        if addresses := [host.name for host in self.hosts if ":" in host.name]:
            raise NoLineError(
                f"launchers cannot separate address and slots in {addresses[0]}:8: list host names instead"
            )
        return tuple(host.name for host in self.hosts)

    @property
    def host_list(self) -> str:
        """Return the hosts with their slots: "node01:8,node02:8"."""
        return ",".join(f"{name}:{host.slots}" for name, host in zip(self.names, self.hosts, strict=True))

    @property
    def ssh_arguments(self) -> str:
        return " ".join(self.ssh.words)

    @property
    def several(self) -> bool:
        return len(self.hosts) > 1

    @property
    def environment(self) -> list[str]:
        """Return `env NAME=VALUE ...` for the front of a command; it works in every shell."""
        return env_words(self.variables)

    def environment_of(self, host: LaunchHost) -> list[str]:
        """Return the same with the values of one node."""
        return env_words({**self.variables, **host.own})

    @property
    def program_anywhere(self) -> tuple[str, ...]:
        """Return the program as one command starts it on all nodes: each node's own values are set there, if any."""
        return wrapped(by_host_name((host.host_name or host.name, host.own) for host in self.hosts), self.program)

    @property
    def meeting(self) -> str:
        """Return the first node's address in the job's network; its name may resolve to 127.0.1.1 there."""
        return _address_of(self.hosts[0])

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return every node's address in the job's network. Raises NoLineError if one is unknown."""
        return tuple(_address_of(host) for host in self.hosts)

    def equal_slots(self, launcher: str, option: str) -> int:
        """Return the number of slots that all nodes have. Raises NoLineError if they differ."""
        counts = {host.slots for host in self.hosts}
        if len(counts) != 1:
            raise NoLineError(f"{launcher} takes one {option} for all nodes, but their slots differ")
        return counts.pop()


def by_host_name(values: Iterable[tuple[str, Mapping[str, str]]]) -> dict[str, Mapping[str, str]]:
    """Map hostnames to the nodes' own values, if they have any.

    Raises NoLineError if nodes with the same hostname (localhost, say) need different values: a shell there could not
    choose.
    """
    own_values: dict[str, Mapping[str, str]] = {}
    for name, own in values:
        if own_values.setdefault(name, own) != own:
            raise NoLineError(
                f"several nodes have the hostname {printable(name)} but need different values: "
                "give each node its own hostname"
            )
    return {name: own for name, own in own_values.items() if own}


def env_words(variables: Mapping[str, str]) -> list[str]:
    """Return the words that set variables in front of a program; none for no variables."""
    return ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []


def _address_of(host: LaunchHost) -> str:
    if not host.address:
        raise NoLineError(f"the address of {printable(host.name)} in a network of all nodes is unknown")
    return host.address


@dataclass(frozen=True)
class LaunchLine:
    """What to type (one line, or one for each node), with reasons.

    `argv` is the same as one command, in which `program` is the launcher's executable; () if each node has a line of
    its own. `processes` says what it starts if that is not one rank per slot.
    """

    text: str
    reasons: tuple[str, ...] = ()
    processes: str = ""
    argv: tuple[str, ...] = ()
    program: str = ""


LineMaker = Callable[[Launch], LaunchLine]


def values_in(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return the values that are to be set. Raises NoLineError for a value that is not safe in a line."""
    values = {name: setting.value for name, setting in settings.items() if setting.value is not None}
    for name, value in values.items():
        if not _SAFE.fullmatch(value):
            raise NoLineError(f"{quoted(value)} is not a safe value for {name}")
    return values


def typed(words: Iterable[str]) -> str:
    """Return a line that a shell reads as these words."""
    return " ".join(map(shell_word, words))


def one_command(program: str, words: Iterable[str], reasons: Iterable[str] = ()) -> LaunchLine:
    """Return the line of one command that starts all ranks."""
    argv = tuple(words)
    return LaunchLine(typed(argv), tuple(reasons), argv=argv, program=program)


def line_per_node(launch: Launch, words: Callable[[int, LaunchHost], list[str]]) -> LaunchLine:
    """Return the line of each node under a comment with its name; for one node the bare line."""
    if not launch.several:
        return LaunchLine(typed(words(0, launch.hosts[0])))
    lines = (f"# on {printable(host.name)}:\n{typed(words(rank, host))}" for rank, host in enumerate(launch.hosts))
    return LaunchLine("\n".join(lines), ("type each line on its own node",))


def endpoint(address: str, port: int) -> str:
    """Return "10.1.0.7:29500", or "[fd00::7]:29500"."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def script(program: tuple[str, ...], module: str, bare: str) -> list[str]:
    """Return the program for a launcher that starts python itself: a script, or `module` and a module's name.

    Anything but a script of a python on PATH follows the option `bare`, word for word.
    """
    first, *rest = program
    if is_interpreter(first):
        rest = rest[1:] if rest[:1] == ["-u"] else rest  # these launchers all add it
        if rest[:1] == ["-m"] and len(rest) > 1 and module:
            return [module, *rest[1:]]
        if rest and not rest[0].startswith("-"):
            return rest
    return list(program) if first.endswith(".py") else [*([bare] if bare else []), *program]


def is_interpreter(word: str) -> bool:
    """Tell whether a command without its folder is a python: python3.11."""
    return _INTERPRETER.fullmatch(word) is not None


def interpreter(program: tuple[str, ...]) -> str:
    """Return the program's own python, for a launcher that is a module."""
    return program[0] if is_interpreter(program[0].rpartition("/")[2]) else "python3"


@dataclass(frozen=True)
class OutOfBand:
    """The network of mpirun and its daemons. `subnet` is "" if routers connect the nodes.

    `names` are its interfaces: each machine that takes part has at least one of them. Without either, mpirun chooses;
    `why` says why, or why it is not the job's network.
    """

    subnet: str = ""
    names: tuple[str, ...] = ()
    why: str = ""

    @property
    def where(self) -> str:
        """Return the subnet, which is right even if names differ, else the names. Open MPI takes IPv4 subnets only."""
        return self.subnet if self.subnet and ":" not in self.subnet else ",".join(self.names)


def out_of_band(cluster: Cluster, network: Network, local_host: LocalHost | None) -> OutOfBand:
    """Return the network of mpirun, typed on this machine, and its daemons: the job's, or another one that works.

    If it gets a network that this machine is not in, Open MPI 4.1 (observed with 4.1.4) warns of an invalid value and
    uses any; 5.0 stops with "No network interfaces were found for out-of-band communications" if it has none of the
    names. If nothing is known about this machine, it is assumed to match the nodes.
    """
    if local_host is None:
        return OutOfBand(network.subnet, _interface_names(network))
    if own := _local_interfaces(local_host, network):
        return OutOfBand(network.subnet, _interface_names(network, own))
    here = f"this machine has no address in {network.label}"
    others = [other for other in shared_by_all(cluster) if other.subnet != network.subnet]
    for other in sorted(others, key=lambda other: connectivity(cluster, other).whole is False):
        if own := _local_interfaces(local_host, other):
            why = f"{here}: mpirun and its daemons connect over {other.subnet}"
            return OutOfBand(other.subnet, _interface_names(other, own), why)
    return OutOfBand(why=f"{here}: mpirun and its daemons choose a network themselves")


def _local_interfaces(local_host: LocalHost, network: Network) -> tuple[str, ...]:
    """Return this machine's interfaces in a network; behind routers only one that is a node itself has any."""
    if not network.subnet:
        own = {address.ip for addresses in network.members.values() for address in addresses}
        return tuple(name for ip, name in local_host.interfaces.items() if ip in own)
    subnet = ip_network(network.subnet)
    return tuple(name for ip, name in local_host.interfaces.items() if ip_address(ip.partition("%")[0]) in subnet)


def _interface_names(network: Network, local: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a name that all machines have, else all names."""
    common = next((name for name in network.names if not local or name in local), None)
    return (common,) if common else tuple(sorted({*network.first_names, *local}))


OwnValues = Mapping[str, Mapping[str, str]]  # variables by hostname (uname -n)

_UNKNOWN = 'echo "ncheck: nothing is known to be right for $(uname -n)" >&2'


def exported(own: OwnValues) -> str:
    """Return the shell statement that exports a node's own values there, and fails on any other node."""
    return _case(own, f"  *) {_UNKNOWN}; false ;;", "\n")


def wrapped(own: OwnValues, program: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program behind a shell that exports the node's own values first, if there are any."""
    if not own:
        return program
    return ("sh", "-c", _case(own, f"*) {_UNKNOWN}; exit 1 ;;", " ") + '; exec "$@"', "sh", *program)


def _case(own: OwnValues, otherwise: str, separator: str) -> str:
    indent = "  " if separator == "\n" else ""
    rows = (f"{indent}{'|'.join(names)}) export {values} ;;" for values, names in _grouped(own))
    return separator.join(['case "$(uname -n)" in', *rows, otherwise, "esac"])


def _grouped(own: OwnValues) -> Iterator[tuple[str, list[str]]]:
    """Yield the values as a shell takes them, with the nodes that have them."""
    nodes: dict[str, list[str]] = {}
    for name, values in own.items():
        assignments = " ".join(f"{variable}={shell_word(value)}" for variable, value in values.items())
        if assignments:
            nodes.setdefault(assignments, []).append(quote(name))
    yield from nodes.items()
