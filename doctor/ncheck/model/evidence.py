"""Evidence: what is asked of a node, and what it answered, raw.

A source says what to read; a reply is what came back. Neither is judged here, and nothing is parsed on the node.
A recording is one `Evidence` a node, as JSON: its records are LEAN, written without their defaults (see decode.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from enum import Enum
from functools import cached_property
from typing import ClassVar, TypeVar

from ncheck.lazy_dataclass import dataclass

_T = TypeVar("_T")

INTERRUPTED = "ncheck was interrupted"  # in the reason of all that ^C left without an answer
ROUND = "#"  # parts a key from its round
JsonValue = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None


@dataclass(frozen=True)
class Command:
    """A program to run on the node under LC_ALL=C, its standard input closed.

    `timeout` is in seconds (None: the run's --command-timeout). `root` marks what an ordinary user can never do on a
    default machine: it is run through `sudo -n` when --sudo was given, and by the plain user otherwise.
    `tail` keeps the end of an output that is too long, not its beginning.
    `holding` is for logs: the first lines are sent, and of the rest those that hold this word, or one of "a|b".
    `job` runs it in the job's environment (the job's interpreter first on PATH) instead of the plain login's.
    `slow`: it may take seconds, so a node begins with it.
    """

    argv: tuple[str, ...]
    timeout: float | None = None
    root: bool = False
    job: bool = False
    tail: bool = False
    holding: str = ""
    slow: bool = field(default=False, compare=False)

    @cached_property
    def key(self) -> str:
        return "command:" + " ".join(self.argv)


@dataclass(frozen=True)
class File:
    """A file's text. The reply's value is that text."""

    path: str
    slow: ClassVar[bool] = False

    @cached_property
    def key(self) -> str:
        return "file:" + self.path


@dataclass(frozen=True)
class Tree:
    """Small files and links that match glob patterns (sysfs). The reply's value maps each path to its text.

    A symbolic link answers with its real path, a folder with None, an unreadable file with {"error": why}.
    """

    patterns: tuple[str, ...]
    slow: ClassVar[bool] = False

    @cached_property
    def key(self) -> str:
        return "tree:" + " ".join(self.patterns)


@dataclass(frozen=True)
class Answer:
    """What one of the agent's own functions says: `interfaces`, `gpus`, `interpreter` and so on (agent/answers).

    `arguments` are handed to that function; they are no part of the key, so one node answers one name once. What is
    asked again and again (the rounds of the probe) has a `round`, and each round its own reply.
    `shape` is the declared type of the reply's value (see facts/answers.py); without one, the reader checks it.
    `kept` stays here: by node, what is kept with its reply of what was asked, of a source without rounds.
    `slow`: it may take seconds, so a node begins with it.
    """

    name: str
    timeout: float | None = None
    arguments: JsonValue = field(default=None, compare=False)
    round: int | None = None
    shape: object = field(default=None, compare=False, repr=False)
    kept: Mapping[str, JsonValue] | None = field(default=None, compare=False, repr=False)
    slow: bool = field(default=False, compare=False)

    @cached_property
    def key(self) -> str:
        return "answer:" + self.name + ("" if self.round is None else f"{ROUND}{self.round}")


Source = Command | File | Tree | Answer


class Status(str, Enum):
    """How the reading itself went; whether a program's exit status is good is for the parser to say."""

    OK = "ok"
    MISSING = "missing"  # no such program, file or module
    DENIED = "denied"  # it is there, and this user may not
    TIMEOUT = "timeout"  # it did not end in its time and was ended
    FAILED = "failed"  # the system or the agent could not do it: see reason
    NOT_ASKED = "not-asked"  # see the node's notes
    UNANSWERED = "unanswered"  # the connection ended before this was answered


@dataclass(frozen=True)
class Reply:
    """One source's answer. `seconds` is how long it took on the node; `truncated` says that output was cut off.

    `asked` is what the head wanted of a source that has rounds, or keeps of one (Answer.kept): its own word, never the
    node's.
    """

    LEAN: ClassVar = True
    status: Status
    reason: str = ""
    exit_status: int | None = None
    stdout: str = ""
    stderr: str = ""
    value: JsonValue = None
    seconds: float = 0.0
    truncated: bool = False
    asked: JsonValue = None

    @property
    def succeeded(self) -> bool:
        """Tell whether the reading went well, ended with exit status 0 if it was a program, and came whole."""
        return self.status is Status.OK and self.exit_status in (None, 0) and not self.truncated


@dataclass(frozen=True)
class Note:
    """Why this machine did not ask a node for a source. No node can say it.

    failed  the node should have been asked, and could not be; otherwise it has nothing of the kind
    remedy  a name for what helps, of which the reader makes a command to type: a recording brings none along
    asked   what the node would have been asked, as in a reply
    """

    LEAN: ClassVar = True
    reason: str
    failed: bool = False
    remedy: str = ""
    asked: JsonValue = None


class Cause(str, Enum):
    """Why a node could not be used: each value has one check in checks/ssh, of nearly the same name."""

    STEP_NOT_STARTED = "step-not-started"  # Slurm starts no task there: the node is down, its slurmd does not answer
    NAME_UNKNOWN = "name-unknown"  # the name does not resolve
    REFUSED = "refused"  # RST: nothing listens on that port
    FILTERED = "filtered"  # no answer to SYN within the time
    UNROUTABLE = "unroutable"  # no route, network or host unreachable
    NOT_SSH = "not-ssh"  # something listens, and it is not an SSH server
    SILENT = "silent"  # TCP connects, no SSH banner comes: sshd is frozen
    STALLED = "stalled"  # a banner came, then the key exchange, the login or what is larger stopped: large packets lost
    HOST_KEY_UNKNOWN = "host-key-unknown"
    HOST_KEY_CHANGED = "host-key-changed"
    HOST_KEY_REVOKED = "host-key-revoked"
    AUTH_REFUSED = "auth-refused"
    CERTIFICATE_EXPIRED = "certificate-expired"  # one of the user's that was offered
    KEY_TYPE_REFUSED = "key-type-refused"  # the server accepts no key of the types that were offered
    TOO_MANY_KEYS = "too-many-keys"
    PERSON_WANTED = "person-wanted"  # keyboard-interactive or an expired password
    SLURM_JOB_WANTED = "slurm-job-wanted"  # pam_slurm_adopt: no job of yours there
    OVERLOADED = "overloaded"  # MaxStartups drops, retried in vain: infrastructure, never the node's fault
    NO_SHELL = "no-shell"  # nologin, or a shell that ends at once or does not answer
    COMMAND_REPLACED = "command-replaced"  # a start-up file or sshd runs another program than the command
    NO_PYTHON = "no-python"  # reached; no python3 >= 3.6 that runs the agent
    NOT_ENTERED = "not-entered"  # --setup or --enter failed on the node
    CLOSED = "closed"  # the connection ended before all was answered
    FLOODED = "flooded"  # more output than any answer could be
    DEADLINE = "deadline"  # the run's own deadline came first: infrastructure
    NOT_TRIED = "not-tried"  # it came before anything was sent to the node
    TRANSPORT = "transport"  # our side could not: no ssh binary, too few file descriptors, a jump host that fails


# What the node is never blamed for.
INFRASTRUCTURE = frozenset({Cause.OVERLOADED, Cause.DEADLINE, Cause.NOT_TRIED, Cause.TRANSPORT})


@dataclass(frozen=True)
class Login:
    """The result of a login. `reached` means: host key verified, logged in, and the remote command runs.

    A node may be reached and still have a cause (no-python, not-entered, closed): then the shell answered and the
    agent could not do its work, or not all of it.
    """

    LEAN: ClassVar = True
    reached: bool
    cause: Cause | None = None
    detail: str = ""  # the words of the library, ssh or the node, one line
    transport: str = ""  # paramiko, openssh, rsh, srun, local, recorded
    address: str = ""  # the address that was connected to, "" when it never came to that
    port: int = 0  # the port that was connected to, 0 when it never came to that
    user: str = ""
    attempts: int = 1  # how many times it was tried
    seconds: float = 0.0  # seconds from the first attempt to the shell's first answer, or to the failure
    authentication_seconds: float = 0.0  # seconds from the key exchange to the command's start; 0: not measured
    offered_keys: tuple[str, ...] = ()  # "ED25519 SHA256:... ~/.ssh/id_ed25519", as they were offered
    host_key: str = ""  # "ssh-ed25519 SHA256:..."
    fix: str = ""  # a command line for this very case, where the transport knows one
    other_port: int = 0  # where the port refused, another one on which an SSH server answers there; 0 for none known
    options: tuple[str, ...] = ()  # of ssh, without which a login by hand is not the same: ("-F", FILE, "-i", KEY)
    host_key_warning: str = ""  # why it should not be trusted, where StrictHostKeyChecking no trusts it all the same
    shared_socket: str = ""  # the ControlPath, where it is one for all hosts: ssh reaches the same machine by each name


@dataclass(frozen=True)
class Greeting:
    """What the node's shell told before any Python ran. `noise` is what start-up files printed on stdout before us."""

    LEAN: ClassVar = True
    host_name: str = ""
    boot_id: str = ""
    network_namespace: str = ""  # "net:[4026531840]"
    user_id: int | None = None
    python: str = ""  # the python3 that runs the agent, with its version; without, where it is there and does not run
    noise: str = ""
    python_seconds: float = 0.0  # from the greeting to the start of that python3; 0 where it was not measured
    shell_seconds: float = 0.0  # from the command's start to the greeting; 0 where it was not measured
    old_python: str = ""  # where each python3 there is too old for the agent: the last that was tried


@dataclass(frozen=True)
class Evidence:
    """All that one node answered, and what is noted about it. `replies` and `notes` are keyed by `Source.key`."""

    LEAN: ClassVar = True
    node: str
    login: Login
    greeting: Greeting | None = None
    replies: Mapping[str, Reply] = field(default_factory=dict)
    clock_offset: float | None = None  # seconds that the node's clock is ahead of ours
    clock_uncertainty: float | None = None  # half of the round trip that it was measured by, seconds
    places: tuple[str, ...] = ()  # where the node is listed: "nodes.txt:3"
    slots: int | None = None
    select: tuple[str, ...] = ()  # what --select named, or the command itself: what else there is was not asked
    level: tuple[str, ...] = ()  # --level of its run, and the settings that were not as the level has them
    began: float | None = None  # when its run began, seconds since 1970 by the clock of the machine that asked
    recorded: bool = False  # it was read from a file, not from a live node
    notes: Mapping[str, Note] = field(default_factory=dict)

    @cached_property
    def read(self) -> dict[tuple[str, object], object]:
        """What was read of its answers, by key and declared type: several facts are made of one."""
        return {}

    @property
    def keys(self) -> AbstractSet[str]:
        """The keys of the sources that the node answered, or that a note is about."""
        return self.replies.keys() | self.notes.keys()

    def reply(self, source: Source) -> Reply:
        """Return the node's answer, or what is noted in its place; UNANSWERED, with the reason, if there is neither."""
        if note := self.notes.get(source.key):
            return Reply(Status.FAILED if note.failed else Status.NOT_ASKED, note.reason)
        if reply := self.replies.get(source.key):
            return reply
        cause = self.login.cause
        why = f"{cause.value}: {self.login.detail}" if cause else "it was not asked of this node"
        return Reply(Status.UNANSWERED, reason=why)

    def before(self, later: Evidence) -> Evidence:
        """Return what the node answered by now: this, and what came later."""
        return replace(later, replies={**self.replies, **later.replies}, notes={**self.notes, **later.notes})

    def rounds(self, source: Source) -> dict[int, Reply]:
        """Return the replies to a source that was asked in rounds, by round and in their order."""
        return _by_round(source, self.replies)

    def noted_rounds(self, source: Source) -> dict[int, Note]:
        """Return the notes about the rounds of a source in which it was not asked."""
        return _by_round(source, self.notes)


def _by_round(source: Source, by_key: Mapping[str, _T]) -> dict[int, _T]:
    parts = {key: key.rpartition(ROUND) for key in by_key}
    found = {int(number): key for key, (name, _, number) in parts.items() if name == source.key and number.isdecimal()}
    return {number: by_key[found[number]] for number in sorted(found)}


def too_deep(value: object, most: int) -> bool:
    """Tell whether lists and mappings nest deeper than `most` levels."""
    level: list[dict[str, object] | list[object]] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            item  # type: ignore[misc]
            for held in level
            for item in (held.values() if type(held) is dict else held)
            if type(item) in _NESTING
        ]
    return bool(level)


_NESTING = frozenset((dict, list))  # JSON has no others
