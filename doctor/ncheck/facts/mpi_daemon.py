"""mpirun and its daemons on a node, as each kind of shell there finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from posixpath import basename, dirname
from typing import Annotated

from ncheck.decode import OPTIONAL, AtMost, Key, Null, Path, PathOrEmpty
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact, exempt_in_job
from ncheck.facts.environment import variable
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.parse.mpi_version import parse_mpi

PLAIN = "plain login"  # neither interactive nor a login shell: what `ssh node command` gets
JOB = "job's environment"
BESIDE = "beside mpirun"
INTERACTIVE = "interactive shell"
LOGIN = "login shell"
USUAL = "usual folder"


@dataclass(frozen=True)
class MpiProgram:
    """A program of an MPI. `found_by`: "plain login", "job's environment", "beside mpirun" and the like. `trouble`:
    why it does not run, "" if it does. `implementation` and `version` are those of its installation, "" if unknown.
    `helped`: it runs once its own lib folder is on LD_LIBRARY_PATH, where --prefix puts it. `built_with`: of cuda,
    rocm, ucx, verbs and the like, those that Open MPI was configured with; None if unknown. `prefix_by_default`: an
    mpirun that was built to act as if --prefix named its own installation.
    """

    path: str
    real_path: str
    found_by: tuple[str, ...]
    implementation: str = ""
    version: str = ""
    trouble: str = ""
    helped: bool = False
    prefix_by_default: bool = False
    built_with: tuple[str, ...] | None = None

    @property
    def release(self) -> str:
        """The first two numbers of the version, which must be the same as mpirun's: "4.1"."""
        return ".".join(self.version.split(".")[:2])

    @property
    def name(self) -> str:
        """The name of the program, such as orted."""
        return basename(self.path)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The values of --prefix that start it: the folder above bin, for each of its paths."""
        folders = (dirname(self.path), dirname(self.real_path))
        return tuple(dict.fromkeys(dirname(folder) for folder in folders if basename(folder) == "bin"))


@dataclass(frozen=True)
class EarlyReturn:
    """The line of a start-up file that ends it in non-interactive shells: the lines after it are not run."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class RshAgent:
    """A variable that names the program with which Open MPI logs in to other nodes; `found`: the node has it."""

    variable: Annotated[str, variable]
    value: str
    found: bool


@dataclass(frozen=True)
class UnknownParameter:
    """A variable that sets a parameter which this Open MPI does not have, and the parameter that is named like it."""

    variable: Annotated[str, variable]
    near: Annotated[str, variable]


@dataclass(frozen=True)
class MpiDaemonFacts:
    """The mpirun that a job would start here, and every daemon (orted, prted, Hydra's proxies) that was found.

    `shells` maps each shell that did not answer to the reason; none is tried if the plain login finds everything.
    `login_shell` is the path of the user's login shell, "" if it is not known. `parameters`: those that variables set
    and that the starter's Open MPI does not have.
    """

    starter: Annotated[MpiProgram, program] | None
    daemons: Annotated[tuple[Annotated[MpiProgram, program], ...], AtMost(_MOST)]
    shells: Mapping[Annotated[str, _place], str] = field(default_factory=dict)
    early_return: Annotated[EarlyReturn | None, Key("start_up")] = None
    login_shell: Annotated[PathOrEmpty, OPTIONAL, Null("")] = ""
    rsh_agents: Annotated[tuple[RshAgent, ...], OPTIONAL, Null(())] = ()
    parameters: Annotated[tuple[UnknownParameter, ...], OPTIONAL, Null(())] = ()


@dataclass(frozen=True)
class Ran:
    """What a program printed, and how it ended; `exit_status` is negative for a signal."""

    said: str
    exit_status: int | None
    status: str
    reason: str


@dataclass(frozen=True)
class ProgramAnswer:
    """A program. `says`: what its --version did; `prefixed`: the same with its own lib folder, where that failed."""

    path: Path
    real_path: Path
    by: tuple[Annotated[str, _place], ...]
    info: str
    says: Ran
    prefixed: Ran | None


MPI_DAEMON = Answer("mpi-daemon", shape=MpiDaemonFacts, slow=True)
_PLACES = frozenset({PLAIN, JOB, BESIDE, INTERACTIVE, LOGIN, USUAL})
_MOST = 64  # daemons
_CANNOT_RUN = (126, 127)  # the loader's and the shell's exit status for what cannot be started


@reading(MPI_DAEMON)
def mpi_daemon(answer: MpiDaemonFacts) -> MpiDaemonFacts:
    """Read the answer."""
    return answer


def program(answer: ProgramAnswer) -> MpiProgram:
    """Read one program. What its installation (ompi_info) prints comes before what the program prints."""
    words, info = answer.says, answer.info
    mpi = parse_mpi(info) or parse_mpi(words.said)
    return MpiProgram(
        path=answer.path,
        real_path=answer.real_path,
        found_by=answer.by,
        implementation=(mpi.implementation or "") if mpi else "",
        version=(mpi.version or "") if mpi else "",
        trouble=_trouble(words),
        helped=answer.prefixed is not None and not _trouble(answer.prefixed),
        built_with=_options(info),
        prefix_by_default=any(line.strip().endswith("prefix_by_default:yes") for line in info.splitlines()),
    )


# --with-cuda    |    --without-verbs    |    --with-ucx=no
_OPTION = expression(r"--with(out)?-([a-z]+)(=no)?(?=\s|$)")


def _options(info: str) -> tuple[str, ...] | None:
    line = next((line for line in info.splitlines() if line.startswith("config:cli:")), None)
    if line is None:
        return None
    return tuple(sorted({name for without, name, no in _OPTION.findall(line) if not (without or no)}))


def _trouble(words: Ran) -> str:
    """Return why it did not run. A daemon that rejects --version or asks for a job did run."""
    ended, output = words.exit_status, words.said.strip()
    if words.status != "ok":
        return words.reason or "it did not end in time"
    if ended is None:
        raise ValueError("it ended without an exit status")
    if ended in _CANNOT_RUN:
        return output.splitlines()[-1] if output else f"it ended with exit status {ended}"
    return f"it was ended by signal {-ended}" if ended < 0 else ""


def _place(name: str) -> str:
    if name not in _PLACES:
        raise ValueError(f"{name[:80]!r} is not a known place of a program")
    return name


FACTS = (Fact(MpiDaemonFacts, (MPI_DAEMON,), mpi_daemon, exempt=exempt_in_job),)
