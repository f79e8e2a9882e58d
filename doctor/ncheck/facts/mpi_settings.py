"""Open MPI's parameters (MCA) that choose interfaces, as the user's environment and Open MPI's files set them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck.decode import decoded
from ncheck.facts.definition import Fact, trouble
from ncheck.facts.environment import ENVIRONMENT, Assignment, EnvironmentFacts, environment
from ncheck.facts.mpi_daemon import MPI_DAEMON, MpiDaemonFacts, mpi_daemon
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence, File, Tree
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class MpiSetting:
    """One parameter with its value, and the `variable` or the `file` that sets it. `start_up`: the lines of start-up
    files that set the variable.
    """

    name: str  # btl_tcp_if_include
    value: str
    variable: str = ""
    file: str = ""
    start_up: tuple[Assignment, ...] = ()

    @property
    def described(self) -> str:
        """Return "btl_tcp_if_include=docker0 (in /etc/openmpi/openmpi-mca-params.conf)"."""
        return f"{self.variable}={self.value}" if self.variable else f"{self.name}={self.value} (in {self.file})"


@dataclass(frozen=True)
class MpiSettingsFacts:
    """By name, those of PARAMETERS that are set. A variable outweighs the user's file, and that the system's."""

    settings: Mapping[str, MpiSetting]


# Of the ranks' messages (btl), of mpirun and its daemons (oob; prte in Open MPI 5).
LAYERS = ("btl_tcp", "oob_tcp", "prte")
INCLUDING, EXCLUDING = (tuple(f"{layer}_if_{word}" for layer in LAYERS) for word in ("include", "exclude"))
PARAMETERS = (*INCLUDING, *EXCLUDING)


def excluded_everywhere(nodes: Mapping[str, MpiSettingsFacts]) -> frozenset[str]:
    """Return the exclude lists that every node has: the launch plan leaves their include lists out.

    Open MPI accepts only one of the two lists.
    """
    return frozenset(name for name in EXCLUDING if nodes and all(name in own.settings for own in nodes.values()))


_PREFIXES = ("OMPI_MCA_", "PRTE_MCA_")
USERS_FILE = File("~/.openmpi/mca-params.conf")
_NAME = "openmpi-mca-params.conf"
_DEBIAN = "/etc/openmpi"

SYSTEM_FILES = Tree((
    f"{_DEBIAN}*/{_NAME}", f"/usr/local/etc/{_NAME}", f"/usr/mpi/*/*/etc/{_NAME}", f"/opt/*/etc/{_NAME}",
    f"/opt/*/*/etc/{_NAME}",
))  # fmt: skip


def mpi_settings(evidence: Evidence) -> Read[MpiSettingsFacts]:
    """Read the system's file, then the user's, then the variables: the last that sets a parameter counts."""
    known = environment(evidence)
    if not isinstance(known, EnvironmentFacts):
        return known
    users = evidence.reply(USERS_FILE)
    why = trouble(USERS_FILE, users)
    if isinstance(why, Unread):
        return why
    system = _system_files(evidence)
    if isinstance(system, Unread):
        return system
    texts = {**system, **({} if why else {USERS_FILE.path: decoded(users.value, str)})}
    found = [setting for path, text in texts.items() for setting in _in_file(path, text)]
    variables = (
        MpiSetting(
            name, known.variables[prefix + name], variable=prefix + name,
            start_up=known.start_up.get(prefix + name, ()),
        )
        for prefix in _PREFIXES for name in PARAMETERS if prefix + name in known.variables
    )  # fmt: skip
    return MpiSettingsFacts({setting.name: setting for setting in (*found, *variables) if setting.value})


def _system_files(evidence: Evidence) -> dict[str, str] | Unread:
    """Return the texts of the files of the mpirun that a job would start."""
    reply, found = evidence.reply(SYSTEM_FILES), mpi_daemon(evidence)
    why = trouble(SYSTEM_FILES, reply)
    if isinstance(why, Unread):
        return why
    mpirun = found.starter if isinstance(found, MpiDaemonFacts) else None
    if mpirun is None or isinstance(why, Absent):
        return {}
    shown = decoded(reply.value, Mapping[str, object])
    own = [path for path in shown if any(_belongs(path, prefix) for prefix in mpirun.prefixes) and path.isprintable()]
    return {path: decoded(shown[path], str) for path in own}


def _belongs(path: str, prefix: str) -> bool:
    """Tell whether an installation reads this file; distributions keep that of /usr in /etc."""
    return path == f"{prefix}/etc/{_NAME}" or (path.startswith(_DEBIAN) and prefix.startswith("/usr"))


def _in_file(path: str, text: str) -> Iterator[MpiSetting]:
    for line in text.splitlines():
        # such a line: "btl_tcp_if_include = eth0,eth1  # the fast ones"
        name, equals, value = line.partition("#")[0].partition("=")
        if equals and name.strip() in PARAMETERS:
            yield MpiSetting(name.strip(), value.strip().strip("\"'"), file=path)


FACTS = (Fact(MpiSettingsFacts, (ENVIRONMENT, USERS_FILE, SYSTEM_FILES, MPI_DAEMON), mpi_settings),)
