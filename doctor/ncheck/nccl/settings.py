"""NCCL's settings: which ones are in force on a node, where each is set, and what depends on NCCL's release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from shlex import quote
from string import ascii_letters, digits

from ncheck import login_variables
from ncheck.expression import expression
from ncheck.facts.environment import IFNAME, Assignment, EnvironmentFacts, is_variable
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Fix
from ncheck.model.cluster import Cluster
from ncheck.model.fact import Absent, Unread
from ncheck.text import sudo_for

GLOO = "GLOO_SOCKET_IFNAME"
MACHINE_FILE, OF_RCCL = "/etc/nccl.conf", "/etc/rccl.conf"  # a node has read one or the other
OWN = ("NCCL_", "RCCL_")  # how the names of NCCL's variables begin, and those that RCCL adds

Release = tuple[int, ...]

# Since this release a leading "=" in a list of interfaces makes its names exact.
EXACT_NAMES = (2, 5, 6)

# The last release before, and the first one with: an interface without a link is passed over.
BEFORE_LINK_STATE, LINK_STATE_COUNTS = (2, 27, 7), (2, 28, 3)

# Since this release NCCL_CONF_FILE names the user's file.
CONF_FILE_VARIABLE = (2, 23, 4)

# 1, 0x1, -1: what strtoll reads at the beginning
_NUMBER = expression(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+))", re.ASCII)

PLAIN = frozenset(ascii_letters + digits + "_.,:@^=-")  # the characters that a command to type may contain


@dataclass(frozen=True)
class PlacedSetting:
    """A variable with its value. `file` is NCCL's configuration file that sets it, "" the environment; `start_up` are
    the lines of start-up files that set it there, as far as they are known.

    In lists of interfaces NCCL's entries are prefixes, unless "=" makes them exact, and "^" excludes what they match.
    Gloo's are exact, and all are used: torch (source, distributed/c10d) takes a list, Paddle one name. To both
    libraries a value of one character counts as unset.
    """

    variable: str
    value: str
    file: str = ""
    start_up: tuple[Assignment, ...] = ()
    machine_file: str = MACHINE_FILE  # of this node, for all its users

    @property
    def described(self) -> str:
        """Return "NCCL_ALGO=Tree in /etc/nccl.conf"."""
        return f"{self.variable}={self.value} in {self.file or 'the environment'}"

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(entry for entry in self.value.removeprefix("^").removeprefix("=").split(",") if entry)

    @property
    def negated(self) -> bool:
        return self.value.startswith("^")

    @property
    def exact(self) -> bool:
        return self.variable == GLOO or self.value.removeprefix("^").startswith("=")

    def set_to(self, value: str) -> Fix:
        """Return the command that sets another value in the same place, or removes the setting if `value` is ""."""
        plain = value if set(value) <= PLAIN else ""
        if not self.file and plain:
            return login_variables.changed(self.start_up, self.variable, plain)
        if not self.file:
            return login_variables.removed(self.start_up, self.variable)
        change = f"s/^{self.variable}=.*/{self.variable}={plain}/" if plain else f"/^{self.variable}=/d"
        return Fix(f"{sudo_for(self.file)}sed -i {quote(change)} {quote(self.file)}")

    def renamed(self, wanted: str) -> Fix:
        """Return the command that gives the setting another name in the same place."""
        if not self.file:
            return login_variables.renamed(self.start_up, self.variable, wanted)
        change = quote(f"s/^{self.variable}=/{wanted}=/")
        return Fix(f"{sudo_for(self.file)}sed -i {change} {quote(self.file)}")


@lru_cache(maxsize=256)
def release_of(version: str) -> Release:
    """Return (2, 21, 5) for "2.21.5", and () for anything else."""
    numbers = version.partition("+")[0].split(".")
    return tuple(int(number) for number in numbers) if all(number.isdecimal() for number in numbers) else ()


def releases_of(nccl: object) -> tuple[Release, ...]:
    """Return the release of the NCCL that the job loads; if unknown, one with the old rules and one with the new."""
    known = isinstance(nccl, LoadedNcclFacts) and release_of(nccl.version)
    return (known,) if known else (BEFORE_LINK_STATE, LINK_STATE_COUNTS)


def placed_settings(environment: EnvironmentFacts, release: Release) -> Mapping[str, tuple[str, str]]:
    """Return NCCL's variables as a job has them: (value, file that sets it), the file "" for the environment.

    The environment takes precedence over the user's file, and that over /etc/nccl.conf.
    """
    if release not in environment.placed:
        environment.placed[release] = _placed(environment, release)
    return environment.placed[release]


def _placed(environment: EnvironmentFacts, release: Release) -> Mapping[str, tuple[str, str]]:
    other = _named_file(environment, release)
    users = [path for path in environment.files if (path == other if other else path.endswith(_USERS))]
    settings = {name: (value, "") for name, value in environment.variables.items() if name.startswith(OWN)}
    for path in (*users, machine_file(environment)):
        for name, value in _assignments(environment.files.get(path, Absent("not there"))):
            settings.setdefault(name, (value, path))
    return settings


_USERS = ("/.nccl.conf", "/.rccl.conf")


def machine_file(environment: EnvironmentFacts) -> str:
    """Return the file of a node that sets NCCL's variables for all users; RCCL's where that one was read."""
    return OF_RCCL if OF_RCCL in environment.files else MACHINE_FILE


def _assignments(lines: tuple[str, ...] | Unread | Absent) -> Iterator[tuple[str, str]]:
    """Yield a file's settings as NCCL reads them. It strips no blanks: "NCCL_X = v" sets no variable that it knows.

    A file that this user may not read sets nothing: NCCL runs as the same user.
    """
    for line in () if isinstance(lines, (Unread, Absent)) else lines:
        name, equals, value = line.rstrip("\n").partition("=")
        if equals and is_variable(name):
            yield name, value


def settings_in_force(environment: EnvironmentFacts, release: Release) -> dict[str, str]:
    """Return the values of NCCL's variables as a job has them."""
    return {name: value for name, (value, _) in placed_settings(environment, release).items()}


def settings_of(environment: EnvironmentFacts, nccl: object) -> dict[str, PlacedSetting]:
    """Return NCCL's settings in force on a node, each with its place."""
    return settings_at(environment, releases_of(nccl)[-1])


def settings_at(environment: EnvironmentFacts, release: Release) -> dict[str, PlacedSetting]:
    """Return the settings that this release of NCCL would have in force."""
    placed = placed_settings(environment, release)
    return {name: setting_at(environment, name, *place) for name, place in placed.items()}


def setting_at(environment: EnvironmentFacts, name: str, value: str, file: str = "") -> PlacedSetting:
    """Return a variable with its value and its place: the file, or the lines of start-up files."""
    start_up = () if file else environment.start_up.get(name, ())
    return PlacedSetting(name, value, file, start_up, machine_file(environment))


def settings_everywhere(cluster: Cluster) -> dict[str, dict[str, PlacedSetting]]:
    """Return the same by node. The check must declare EnvironmentFacts and LoadedNcclFacts."""
    return {node.name: settings_of(node[EnvironmentFacts], node.maybe(LoadedNcclFacts)) for node in cluster}


def is_on(settings: Mapping[str, PlacedSetting], name: str) -> bool:
    """Return whether a variable is set to a number other than 0. NCCL reads words as 0."""
    number = _NUMBER.match(settings[name].value) if name in settings else None
    return number is not None and number[1].lower().replace("0x", "").strip("+-0") != ""


def interface_setting(environment: EnvironmentFacts, release: Release) -> PlacedSetting | None:
    """Return NCCL_SOCKET_IFNAME as NCCL uses it; to NCCL a value of one character counts as unset."""
    value, file = placed_settings(environment, release).get(IFNAME, ("", ""))
    return setting_at(environment, IFNAME, value, file) if len(value) > 1 else None


def gloo_interface_setting(environment: EnvironmentFacts) -> PlacedSetting | None:
    """Return GLOO_SOCKET_IFNAME, which no file sets; a value of one character counts as unset."""
    value = environment.variables.get(GLOO, "")
    return setting_at(environment, GLOO, value, "") if len(value) > 1 else None


def settings_that_steer_the_choice(
    environment: EnvironmentFacts, version: str, planned: Mapping[str, str]
) -> tuple[PlacedSetting, ...]:
    """Return the settings outside the plan that influence which address NCCL picks."""
    placed = placed_settings(environment, release_of(version))
    names = [name for name in ("NCCL_SOCKET_FAMILY", "NCCL_COMM_ID", IFNAME) if name in placed and name not in planned]
    return tuple(setting_at(environment, name, *placed[name]) for name in names)


def _named_file(environment: EnvironmentFacts, release: Release) -> str:
    """Return the file that NCCL reads in place of the one in the home directory, "" for none."""
    return environment.variables.get("NCCL_CONF_FILE", "") if release >= CONF_FILE_VARIABLE else ""


def lasting(
    variable: str, value: str, environment: EnvironmentFacts, release: Release, *, everywhere: bool = True
) -> Fix:
    """Return the command that gives one of NCCL's variables this value for every job on a node.

    `everywhere`: all nodes get the same value, so that a home directory that they share may hold it.
    """
    known, line = settings_at(environment, release).get(variable), quote(f"{variable}={value}")
    machine = machine_file(environment)
    if known and (everywhere or known.file == machine):
        return known.set_to(value)
    own = next((path for path in environment.files if path == _named_file(environment, release)), "")
    users = (
        f"echo {line} | {sudo_for(own)}tee -a {quote(own)}"
        if own
        else f"echo {line} >> ~/.{PurePosixPath(machine).name}"
    )
    append = users if everywhere else f"echo {line} | sudo tee -a {machine}"
    removal = known.set_to("") if known else Fix("")
    return removal if removal.look else Fix("; ".join(filter(None, (removal.line, append))))
