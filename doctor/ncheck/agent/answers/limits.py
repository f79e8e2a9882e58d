"""The limits that a non-interactive login gets: the agent's own; and the lines of files that set them so."""

import os
import re
import resource

from ncheck.agent.answers.environment import START_UP_FILES, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

LIMITS_FILES = ("/etc/security/limits.conf", "/etc/security/limits.d/*.conf")  # PAM's

READS = (
    "getrlimit of memlock, nofile, nproc, as, cpu, fsize, stack and data", "statvfs /dev/shm",
    "the numbers of the lines that set such a limit in " + " ".join(START_UP_FILES + LIMITS_FILES),
)  # fmt: skip

_KB, _MINUTE = 1024, 60
# By its key in the answer: getrlimit's number, its name in limits.conf and the unit there, `ulimit`'s letter and unit.
_LIMITS = {
    "memlock": (resource.RLIMIT_MEMLOCK, "memlock", _KB, "l", _KB),
    "open_files": (resource.RLIMIT_NOFILE, "nofile", 1, "n", 1),
    "processes": (resource.RLIMIT_NPROC, "nproc", 1, "u", 1),
    "address_space": (resource.RLIMIT_AS, "as", _KB, "v", _KB),
    "cpu_seconds": (resource.RLIMIT_CPU, "cpu", _MINUTE, "t", 1),
    "file_size": (resource.RLIMIT_FSIZE, "fsize", _KB, "f", _KB),
    "stack": (resource.RLIMIT_STACK, "stack", _KB, "s", _KB),
    "data": (resource.RLIMIT_DATA, "data", _KB, "d", _KB),
}
_MOST_PLACES = 8  # of one limit
_UNLIMITED = ("unlimited", "infinity", "-1")


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return the soft limits (null: unlimited), the lines that set these values, and /dev/shm's size."""
    limits = {key: _soft(limit[0]) for key, limit in _LIMITS.items()}
    return dict(limits, shm=_shm(), set_in=_set_in(limits))


def _soft(number: int) -> "Optional[int]":
    soft = resource.getrlimit(number)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _set_in(limits: "Dict[str, Optional[int]]") -> "Dict[str, List[Dict[str, object]]]":
    """Return the lines that set a limit to the value that it has, by the name in limits.conf."""
    found: "Dict[str, List[Dict[str, object]]]" = {}
    by_letter = {limit[3]: (limits[key], limit[1], limit[4]) for key, limit in _LIMITS.items()}
    for path, text in texts(START_UP_FILES):
        for number, line in _lines(text, "ulimit"):
            set_here = [by_letter[letter] + (value,) for letter, value in _ULIMIT.findall(line)]
            only = [name for _, name, _, _ in set_here] if _PLAIN.match(line) else []
            _add(found, set_here, {"file": path, "line": number, "sets": only})
    by_name = {limit[1]: (limits[key], limit[1], limit[2]) for key, limit in _LIMITS.items()}
    for path, text in texts(LIMITS_FILES):
        for number, line in _lines(text, ""):
            words = line.partition("#")[0].split()
            if len(words) == 4 and words[1] in ("soft", "hard", "-") and words[2] in by_name:
                row = by_name[words[2]] + (words[3],)
                _add(found, [row], {"file": path, "line": number, "sets": [words[2]]})
    return found


# ulimit -S -n 64   ulimit -Sn 64 -u 300
_ULIMIT = re.compile(r"\s-[SH]*([lnuvtfsd])\s+(\d+|unlimited)\b")
_PLAIN = re.compile(r"ulimit(?:\s+-[SH]+)*(?:\s+-[SH]*[lnuvtfsd]\s+(?:\d+|unlimited))+\s*(?:#.*)?$")


def _lines(text: str, word: str) -> "Iterator[Tuple[int, str]]":
    for number, line in enumerate(text.splitlines(), 1):
        if word in line and not line.lstrip().startswith("#"):
            yield number, line


def _add(
    found: "Dict[str, List[Dict[str, object]]]",
    rows: "Iterable[Tuple[Optional[int], str, int, str]]",
    place: "Dict[str, object]",
) -> None:
    for soft, name, unit, word in rows:
        value = None if word in _UNLIMITED else int(word) * unit if word.isdigit() else -1
        if value == soft and len(found.setdefault(name, [])) < _MOST_PLACES:
            found[name].append(place)


def _shm() -> "Dict[str, object]":
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108  asked about, not written to
    except OSError as error:
        return {"error": error.strerror}
    return {"total": found.f_frsize * found.f_blocks, "free": found.f_frsize * found.f_bavail}
