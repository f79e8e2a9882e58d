"""What ssh configuration says of each node: ~/.ssh/config and /etc/ssh/ssh_config, or -F FILE, as OpenSSH reads them.

The files are read once a run and a node costs microseconds. Where this reading cannot decide (Match exec, Match
final, CanonicalizeHostname, a keyword or token that we do not know), `ssh -G` is asked for that node, 5 ms each.

What the command line gives outweighs the files, and the listing counts as command line: `user@host` and a port in
it come first, then --user and -p, then the files, then the local user and port 22.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from ncheck.errors import SettingsError
from ncheck.model.node import Node
from ncheck.settings import Settings
from ncheck.ssh.config_file import Block, ConfigFile, Criterion, HostPatterns, Line, Named, Part, read_config_file
from ncheck.ssh.config_needs import kerberos_ticket
from ncheck.ssh.config_options import REPEATED, from_ssh_g, target_of
from ncheck.ssh.config_words import LocalUser, UnknownTokenError, local_user, matches, matches_list, percent_expanded
from ncheck.ssh.target import SshTarget
from ncheck.text import printable

SYSTEM_CONFIG = "/etc/ssh/ssh_config"


ASKING = 10.0  # seconds for one ssh -G: a Match exec may be slow


def read_ssh_config(settings: Settings, environ: Mapping[str, str], user: LocalUser | None = None) -> SshConfig:
    """Read the configuration of this run; SettingsError where -F names a file that cannot be read."""
    user = user or local_user(environ)
    return SshConfig(settings, user, _files(settings.ssh_config, user))


def _files(chosen: str | None, user: LocalUser) -> tuple[ConfigFile, ...]:
    """Read -F FILE alone, nothing for -F none, or the user's file and then the system's."""
    if chosen is None:
        return (
            read_config_file(f"{user.home}/.ssh/config", user.home, of_user=True, checked=True),
            read_config_file(SYSTEM_CONFIG, user.home, of_user=False, checked=False),
        )
    if chosen.lower() == "none":
        return ()
    try:
        chosen = str(Path(chosen).expanduser())
        with Path(chosen).open("rb"):
            return (read_config_file(chosen, user.home, of_user=True, checked=False),)
    except OSError as error:
        raise SettingsError(f"-F {printable(chosen)}: {error.strerror}") from None


class SshConfig:
    """The configuration of one run. `resolve` may be called from many threads at once."""

    def __init__(self, settings: Settings, user: LocalUser, files: tuple[ConfigFile, ...]) -> None:
        self.settings = settings
        self.user = user
        self.files = files
        self.trouble = next((file.trouble for file in files if file.trouble), "")

    def resolve(self, node: Node) -> SshTarget:
        """Return what ssh would use for this node. SettingsError where `ssh -G` refuses the configuration."""
        target = self.read(node)
        if not target.unsure or not (ssh := shutil.which("ssh", path=self.user.environ.get("PATH"))):
            return target
        return self._asked(ssh, node)

    def read(self, node: Node) -> SshTarget:
        """Return our own reading; its `unsure` says where it cannot be trusted."""
        reading = _Reading(node.name, self.user.name, self._given(node))
        for file in self.files:
            reading.take(file.parts)
        return target_of(node.name, reading.options, self.user, self._ticket_in_sight, self.trouble or reading.unsure)

    def ssh_arguments(self, node: Node) -> list[str]:
        """Return the arguments that make ssh see this node as we do, its name last: ["-F", FILE, "-p", "22", ...]."""
        given = self._given(node)
        flags = {"-F": self.settings.ssh_config, "-i": self.settings.identity}
        flags |= {"-l": given.get("user", (None,))[0], "-p": given.get("port", (None,))[0]}
        return [word for flag, value in flags.items() if value for word in (flag, value)] + ["--", node.name]

    def _given(self, node: Node) -> dict[str, tuple[str, ...]]:
        """Return what command line and listing settle before any file is read."""
        given: dict[str, tuple[str, ...]] = {}
        if user := node.user or self.settings.user:
            given["user"] = (user,)
        if port := node.port or self.settings.port:
            given["port"] = (str(port),)
        if self.settings.identity:
            path = Path(self.settings.identity).expanduser().absolute()
            given["identityfile"] = (str(path).replace("%", "%%"),)
        return given

    def _asked(self, ssh: str, node: Node) -> SshTarget:
        asking = [ssh, "-G", *self.ssh_arguments(node)]
        try:
            asked = subprocess.run(
                asking, stdin=subprocess.DEVNULL, capture_output=True, timeout=ASKING, check=False,
                env=dict(self.user.environ),
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SettingsError(f"ssh -G {node.name}: {printable(str(error))}") from None
        if asked.returncode != 0:
            raise SettingsError(f"ssh configuration: {_complaint(asked.stderr)}")
        return from_ssh_g(asked.stdout.decode(errors="surrogateescape"), self.user, self._ticket_in_sight)

    def _ticket_in_sight(self) -> bool:
        return self._ticket

    @cached_property
    def _ticket(self) -> bool:
        return kerberos_ticket(self.user.environ, self.user.uid)


def _complaint(stderr: bytes) -> str:
    """Return what ssh said first: the lines after it only sum up."""
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line and "Pseudo-terminal" not in line]
    return printable(lines[0], 1000) if lines else "ssh -G failed and said nothing"  # a file's path stands before it


class _Reading:
    """The options of one host as the files go by: the first value of each stands."""

    def __init__(self, name: str, local_name: str, given: dict[str, tuple[str, ...]]) -> None:
        self.name = name
        self.local_name = local_name
        self.options = given
        self.unsure = ""

    def take(self, parts: tuple[Part, ...]) -> None:
        for part in parts:
            if isinstance(part, Named):
                self.take(part.by_name.get(self.name, ()))
            elif part.when is None or self._applies(part.when):
                self._follow(part)

    def _follow(self, block: Block) -> None:
        for entry in block.entries:
            if isinstance(entry, Line):
                self._set(entry)
            else:
                for parts in entry.files:
                    self.take(parts)

    def _set(self, line: Line) -> None:
        keyword = line.keyword
        if keyword in REPEATED:
            earlier = self.options.get(keyword, ())
            self.options[keyword] = earlier if line.values[0] in earlier else earlier + line.values
        elif keyword == "proxyjump":
            if "proxycommand" not in self.options:
                self.options.setdefault(keyword, line.values)
        elif keyword == "proxycommand":
            if self.options.get("proxyjump", _NO_JUMP)[0].lower() == "none":
                self.options.setdefault(keyword, line.values)
        else:
            self.options.setdefault(keyword, line.values)
            if keyword == "canonicalizehostname" and self.options[keyword] != ("no",):
                self.unsure = self.unsure or "CanonicalizeHostname"

    def _applies(self, when: HostPatterns | tuple[Criterion, ...]) -> bool:
        if isinstance(when, HostPatterns):
            return self.name in when.literal or (bool(when.patterns) and self._named(when.patterns))
        return all(self._meets(criterion) is not criterion.negated for criterion in when)

    def _named(self, patterns: tuple[str, ...]) -> bool:
        found = False
        for pattern in patterns:
            if pattern.startswith("!"):
                if matches(self.name, pattern[1:]):
                    return False
            elif matches(self.name, pattern):
                found = True
        return found

    def _meets(self, criterion: Criterion) -> bool:
        return _CRITERIA[criterion.kind](self, criterion.value)

    def _host_name(self) -> str:
        written = self.options.get("hostname", (self.name,))[0]
        try:
            return percent_expanded(written, {"h": self.name, "%": "%"}) if "hostname" in self.options else self.name
        except UnknownTokenError as error:
            self.unsure = self.unsure or f"HostName {written}: {error}"
            return written

    def _exec(self) -> bool:
        """Leave it to ssh: we run no command of a configuration file."""
        self.unsure = self.unsure or "Match exec"
        return False


_NO_JUMP = ("none",)


_CRITERIA: Mapping[str, Callable[[_Reading, str], bool]] = {
    "all": lambda _reading, _value: True,
    "canonical": lambda _reading, _value: False,  # CanonicalizeHostname, which makes it true, goes to ssh anyway
    "exec": lambda reading, _value: reading._exec(),  # noqa: SLF001  a table of the class's own steps
    "host": lambda reading, value: matches_list(reading._host_name().lower(), value.lower()),  # noqa: SLF001
    "originalhost": lambda reading, value: matches_list(reading.name.lower(), value.lower()),
    "user": lambda reading, value: matches_list(reading.options.get("user", (reading.local_name,))[0], value),
    "localuser": lambda reading, value: matches_list(reading.local_name, value),
}
