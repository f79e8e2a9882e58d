"""[[check]] in ncheck.toml, or in a *.toml file of the folder checks.d beside it: checks of a site, in any language.

    [[check]]
    code = "X001"                    # X, then letters and digits
    name = "scratch-is-mounted"
    run = "mountpoint -q /scratch"   # a shell line: it runs on each node, as the user of the run
    timeout = 60                     # seconds; without it --command-timeout; also title, fix

Its exit status is the verdict, as in the Monitoring Plugins' guidelines: 0 passed, 1 a warning, 2 failed, 3 unknown.
The first line of its output is the message, and the others are the evidence. Or the output is one JSON object: status
(passed, warning, failed, unknown, skipped), message, and evidence, a list of lines. No status there makes a run better
than an exit status that is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ncheck.expression import expression
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.settings import values as read
from ncheck.text import printable

_MOST, _LONGEST = 200, 2**16  # checks, and characters of a shell line: Linux takes twice as many in one argument


@dataclass(frozen=True)
class OwnCheck:
    """One [[check]].

    `timeout` is in seconds, None that of every command. `title` is a sentence, `fix` a command line for the node.
    """

    code: str
    name: str
    run: str
    title: str
    timeout: float | None = None
    fix: str = ""


def _of(pattern: str, wanted: str) -> Callable[[object], str]:
    matching = expression(pattern)

    def reader(value: object) -> str:
        if not isinstance(value, str) or not matching.fullmatch(value):
            raise ValueError(f"expected {wanted}, not {printable(repr(value), 60)}")
        return value

    return reader


def _line(value: object) -> str:
    """Read a shell line; a script of several lines is one, too."""
    if not isinstance(value, str) or not value.strip() or "\0" in value or len(value) > _LONGEST:
        raise ValueError(f"expected a shell line of at most {_LONGEST // 1024} kB")
    return value


_KEYS: Mapping[str, Callable[[object], object]] = {
    "code": _of(r"X[0-9A-Z]{1,15}", "X, then letters and digits, such as X001: NC is ncheck's own"),
    "name": _of(r"[a-z][a-z0-9-]{0,59}", "words in small letters with - between them, such as scratch-is-mounted"),
    "run": _line,
    "timeout": read.time_limit,
    "title": read.text,
    "fix": read.shell_line,
}
_WANTED = ("code", "name", "run")


def own_checks(table: object, *others: str) -> tuple[OwnCheck, ...]:
    """Read the [[check]] tables of one file. `others` are keys that it may not have. Raises ValueError."""
    if others:
        raise ValueError(f"{quoted(others[0])} is not allowed here, only [[check]]")
    if not isinstance(table, list) or not all(isinstance(one, dict) for one in table):
        raise ValueError("check: expected tables: [[check]]")
    return tuple(map(_check, table))


def _check(table: Mapping[str, object]) -> OwnCheck:
    name = printable(str(table.get("code", "")), 20)
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise ValueError(f"check {name}: unknown key {quoted(key)}; known: {', '.join(_KEYS)}")
        try:
            values[key] = _KEYS[key](value)
        except ValueError as error:
            raise ValueError(f"check {name}: {key}: {error}") from None
    if lacking := [key for key in _WANTED if key not in values]:
        raise ValueError(f"check {name}: it has no {' and no '.join(lacking)}")
    return OwnCheck(**{"title": str(values["name"]).replace("-", " "), **values})  # type: ignore[arg-type]


def once_each(checks: Iterable[OwnCheck]) -> tuple[OwnCheck, ...]:
    """Return them all. Raises ValueError where a code or a name is there twice, or where they are too many."""
    known: dict[str, OwnCheck] = {}
    for count, one in enumerate(checks):
        if count >= _MOST:
            raise ValueError(f"check {one.code}: more than {_MOST} checks")
        if one.code in known or one.name in known:
            raise ValueError(f"check {one.code} {one.name}: another check has this code or this name")
        known |= {one.code: one, one.name: one}
    return tuple(dict.fromkeys(known.values()))
