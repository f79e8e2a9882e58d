"""mpirun and its daemons on a node, as each kind of shell there finds them."""

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
    """A program of an MPI. `found_by` are the places above. `trouble` says why it does not run, "" if it does.

    `implementation` and `version` are those of its installation, "" if unknown.
    `helped`: it runs once its own lib folder is on LD_LIBRARY_PATH, where --prefix puts it.
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
class MpiDaemonFacts:
    """The mpirun that a job would start here, and every daemon (orted, prted, Hydra's proxies) that was found.

    `shells` maps each shell that did not answer to the reason; none is tried if the plain login finds everything.
    """

    starter: MpiProgram | None
    daemons: tuple[MpiProgram, ...]
    shells: Mapping[str, str] = field(default_factory=dict)
    early_return: EarlyReturn | None = None


MPI_DAEMON = Answer("mpi-daemon")


JsonObject = Mapping[str, object]


_PLACES = frozenset({PLAIN, JOB, BESIDE, INTERACTIVE, LOGIN, USUAL})


_MOST = 64  # daemons


_LONGEST_PATH = 4096


_CANNOT_RUN = (126, 127)  # the loader's and the shell's exit status for what cannot be started


def mpi_daemon(evidence: Evidence) -> Read[MpiDaemonFacts]:
    """Read the answer. Raises KeyError, TypeError or ValueError if it is malformed."""
    reply = evidence.reply(MPI_DAEMON)
    if why := no_answer(MPI_DAEMON, reply):
        return why
    answer = cast("Mapping[str, object]", reply.value)
    daemons = cast("list[JsonObject]", answer["daemons"])
    starter, early = cast("JsonObject | None", answer["starter"]), cast("JsonObject | None", answer["start_up"])
    return MpiDaemonFacts(
        starter=None if starter is None else program(starter),
        daemons=tuple(program(one) for one in daemons[:_MOST]),
        shells={_place(name): _text(why) for name, why in cast("JsonObject", answer["shells"]).items()},
        early_return=None if early is None else _early(early),
    )


def program(answer: JsonObject) -> MpiProgram:
    """Read one program. What its installation (ompi_info) prints comes before what the program prints."""
    words = cast("JsonObject", answer["says"])
    info = _text(answer["info"])
    mpi = parse_mpi(info) or parse_mpi(_text(words["said"]))
    return MpiProgram(
        path=_path(answer["path"]),
        real_path=_path(answer["real_path"]),
        found_by=tuple(_place(way) for way in cast("list[object]", answer["by"])),
        implementation=(mpi.implementation or "") if mpi else "",
        version=(mpi.version or "") if mpi else "",
        trouble=_trouble(words),
        helped=answer["prefixed"] is not None and not _trouble(cast("JsonObject", answer["prefixed"])),
        prefix_by_default=any(line.strip().endswith("prefix_by_default:yes") for line in info.splitlines()),
    )


def _trouble(words: JsonObject) -> str:
    """Return why it did not run. A daemon that rejects --version or asks for a job did run."""
    status, ended, output = words["status"], words["exit_status"], _text(words["said"]).strip()
    if status != "ok":
        return _text(words["reason"]) or "it did not end in time"
    if ended is None or isinstance(ended, bool) or not isinstance(ended, int):
        raise TypeError(f"{ended!r} is not an exit status")
    if ended in _CANNOT_RUN:
        return output.splitlines()[-1] if output else f"it ended with exit status {ended}"
    return f"it was ended by signal {-ended}" if ended < 0 else ""


def _early(answer: JsonObject) -> EarlyReturn:
    line = answer["line"]
    if not isinstance(line, int) or isinstance(line, bool):
        raise TypeError(f"{line!r} is not a line number")
    return EarlyReturn(_text(answer["file"]), line, _text(answer["text"]))


def _path(value: object) -> str:
    """Return an absolute path. Raises ValueError for one that cannot be part of a command."""
    path = _text(value)
    if not path.startswith("/") or not path.isprintable() or len(path) > _LONGEST_PATH:
        raise ValueError(f"{path[:80]!r} is not an absolute path")
    return path


def _place(value: object) -> str:
    if value not in _PLACES:
        raise ValueError(f"{value!r} is not a known place of a program")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


FACTS = (Fact(MpiDaemonFacts, (MPI_DAEMON,), mpi_daemon),)
