"""What mpirun's ssh would start on a node, as each kind of shell there finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import basename, dirname

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
