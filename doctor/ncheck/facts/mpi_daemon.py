"""What mpirun's ssh would start on a node, as each kind of shell there finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import basename, dirname
from typing import cast

from ncheck.facts.definition import Fact, no_answer
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read
from ncheck.parse.mpi_version import parse_mpi

PLAIN = "plain login"  # neither interactive nor a login shell: what `ssh node command` gets


JOB = "job's environment"


BESIDE = "beside mpirun"


INTERACTIVE = "interactive shell"


LOGIN = "login shell"


USUAL = "usual folder"


@dataclass(frozen=True)
class MpiProgram:
    """A program of an MPI. `found_by` are the ways above. `trouble` says why it does not run, "" where it does.

    `implementation` and `version` are those of the installation that it lies in, "" where nothing there tells them.
    `helped`: it does run once its own lib folder is on LD_LIBRARY_PATH, where --prefix puts it.
    `prefix_by_default`: an mpirun that was built to act as if --prefix named its own installation.
    """

    path: str
    real_path: str
    found_by: tuple[str, ...]
    implementation: str = ""
    version: str = ""
    trouble: str = ""
    helped: bool = False
    prefix_by_default: bool = False

    @property
    def release(self) -> str:
        """The first two numbers of the version, which must be mpirun's: "4.1"."""
        return ".".join(self.version.split(".")[:2])

    @property
    def name(self) -> str:
        """The name that it was looked for by, such as orted."""
        return basename(self.path)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What --prefix may be to have it started: the folder above bin, by each of its paths."""
        folders = (dirname(self.path), dirname(self.real_path))
        return tuple(dict.fromkeys(dirname(folder) for folder in folders if basename(folder) == "bin"))


@dataclass(frozen=True)
class EarlyReturn:
    """The line of a start-up file that ends it where no person is at the terminal: what stands below is not run."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class MpiDaemonFacts:
    """The mpirun that a job would start here, and every daemon (orted, prted, Hydra's proxies) that was found.

    `shells` tells of a person's shells that gave no answer, and why; none was asked where the plain login finds all.
    """

    starter: MpiProgram | None
    daemons: tuple[MpiProgram, ...]
    shells: Mapping[str, str] = field(default_factory=dict)
    early_return: EarlyReturn | None = None


MPI_DAEMON = Answer("mpi-daemon")


Said = Mapping[str, object]


_WAYS = frozenset({PLAIN, JOB, BESIDE, INTERACTIVE, LOGIN, USUAL})


_MOST = 64  # daemons: more are no answer


_LONGEST_PATH = 4096


_CANNOT_RUN = (126, 127)  # the loader's and the shell's exit status for what cannot be started


def mpi_daemon(evidence: Evidence) -> Read[MpiDaemonFacts]:
    """Read the answer. Raises KeyError, TypeError or ValueError for what is none."""
    reply = evidence.reply(MPI_DAEMON)
    if why := no_answer(MPI_DAEMON, reply):
        return why
    said = cast("Mapping[str, object]", reply.value)
    daemons = cast("list[Said]", said["daemons"])
    starter, early = cast("Said | None", said["starter"]), cast("Said | None", said["start_up"])
    return MpiDaemonFacts(
        starter=None if starter is None else program(starter),
        daemons=tuple(program(one) for one in daemons[:_MOST]),
        shells={_way(name): _text(why) for name, why in cast("Said", said["shells"]).items()},
        early_return=None if early is None else _early(early),
    )


def program(said: Said) -> MpiProgram:
    """Read one program: its installation's own word outweighs that of the program."""
    words = cast("Said", said["says"])
    info = _text(said["info"])
    mpi = parse_mpi(info) or parse_mpi(_text(words["said"]))
    return MpiProgram(
        path=_path(said["path"]),
        real_path=_path(said["real_path"]),
        found_by=tuple(_way(way) for way in cast("list[object]", said["by"])),
        implementation=(mpi.implementation or "") if mpi else "",
        version=(mpi.version or "") if mpi else "",
        trouble=_trouble(words),
        helped=said["prefixed"] is not None and not _trouble(cast("Said", said["prefixed"])),
        prefix_by_default=any(line.strip().endswith("prefix_by_default:yes") for line in info.splitlines()),
    )


def _trouble(words: Said) -> str:
    """Say why it did not run. That a daemon knows no --version, or wants a job, is no trouble: it did run."""
    status, ended, said = words["status"], words["exit_status"], _text(words["said"]).strip()
    if status != "ok":
        return _text(words["reason"]) or "it did not end in its time"
    if ended is None or isinstance(ended, bool) or not isinstance(ended, int):
        raise TypeError(f"{ended!r} is no exit status")
    if ended in _CANNOT_RUN:
        return said.splitlines()[-1] if said else f"it ended with exit status {ended}"
    return f"signal {-ended} ended it" if ended < 0 else ""


def _early(said: Said) -> EarlyReturn:
    line = said["line"]
    if not isinstance(line, int) or isinstance(line, bool):
        raise TypeError(f"{line!r} is no line number")
    return EarlyReturn(_text(said["file"]), line, _text(said["text"]))


def _path(value: object) -> str:
    """Take an absolute path without what cannot stand in a line to type."""
    path = _text(value)
    if not path.startswith("/") or not path.isprintable() or len(path) > _LONGEST_PATH:
        raise ValueError(f"{path[:80]!r} is no path")
    return path


def _way(value: object) -> str:
    if value not in _WAYS:
        raise ValueError(f"{value!r} is no way to find a program")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


FACTS = (Fact(MpiDaemonFacts, (MPI_DAEMON,), mpi_daemon),)
