"""Text for people and shells: byte sizes (binary units), traffic (decimal units), times, printable text, quoting."""

from __future__ import annotations

import time
from collections.abc import Iterable
from shlex import quote, split

LONGEST_MESSAGE = 400  # characters of a node's own text in a reason: a program may print a mebibyte on one line


def size(number: int) -> str:
    """Return a size in binary units: "64 MiB"."""
    for unit, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 1 << unit:
            return f"{number / (1 << unit):.4g} {name}"
    return f"{number} B"


def moved(number: float) -> str:
    """Return an amount of traffic in decimal units, like rates: "61.2 GB"."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= unit:
            return f"{number / unit:.3g} {name}" if number < 1000 * unit else f"{number / unit:.0f} {name}"
    return f"{number:.0f} B"


def rates(reached: Iterable[float], of: float | None = None) -> str:
    """Return bandwidths that are given in GB/s, from the lowest to the highest: "118 to 121 GB/s", "2.1 MB/s of 12".

    `of` is what they are compared with, in the same unit.
    """
    every = tuple(reached)
    most = max(*every, of or 0.0) or 1.0
    scale, unit = next(
        ((scale, unit) for scale, unit in ((1.0, "GB/s"), (1e-3, "MB/s")) if most >= 0.9995 * scale), (1e-6, "kB/s")
    )  # fmt: skip
    low, high = (f"{pick(every) / scale:.3g}" for pick in (min, max))
    beside = "" if of is None else f" of {of / scale:.3g}"
    return f"{low if low == high else f'{low} to {high}'} {unit}{beside}"


_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def span(seconds: float) -> str:
    """Return how long this is: "90 s", "40 min", "14 h", "12 days"."""
    for unit, name in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def utc(seconds: float) -> str:
    """Return a time in seconds since 1970 for people: "2026-11-26 14:20 UTC"."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def clock(seconds: float) -> str:
    """Return a time in seconds since 1970 as this machine's clock shows it: "14:20:07"."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))


LONGEST = 120
_BEYOND = 4000  # characters: as far as a secret may go that begins in what is shown


def printable(text: str, longest: int = LONGEST) -> str:
    """Return the text with control, escape and invisible characters as `?`, cut to `longest` characters.

    What is changed loses its secrets first: without its end or its line breaks, a secret is not known as one.
    """
    if len(text) <= longest and text.isprintable():
        return text
    from ncheck.redact import redact

    text = redact(text[: longest + _BEYOND])
    cut = text if len(text) <= longest else text[: longest - 3] + "..."
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "?" for c in cut)


LONGEST_COMMAND = 8000  # characters: the names of a thousand nodes are shorter


def typable(command: str) -> bool:
    """Return whether this can be pasted: one line of printable text, all of whose quotes are closed.

    Text is cleaned before it is quoted, never after: a `?` in the place of an escape would make another command of it.
    """
    try:
        return len(command) <= LONGEST_COMMAND and command.isprintable() and bool(split(command))
    except ValueError:
        return False


def shell_word(word: str) -> str:
    """Quote a word for bash and zsh; zsh would expand =eth0 to the path of a program eth0."""
    return f"'{word}'" if word.startswith("=") and quote(word) == word else quote(word)


def sudo_for(path: str) -> str:
    """Return the prefix of a command that changes this file: "sudo " in /etc, else ""."""
    return "sudo " if path.startswith("/etc/") else ""


def export_line(name: str, value: str) -> str:
    """Return the line that sets a variable, such as export NCCL_SOCKET_IFNAME='=eth0'."""
    return f"export {quote(name)}={shell_word(value)}"
