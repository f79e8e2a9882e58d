"""Clean up pasted output: remove colours, line ends, quote marks and the prefixes of loggers."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from functools import lru_cache

from ncheck.expression import expression

# \x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m
_ANSI = expression(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")

# "ninja .................. [92m[OKAY][0m": the escape character was lost, or is written as ^[
_ANSI_LEFT = expression(r"(?:\^\[)?\[(?:0|[1-9]\d?)(?:;\d+)*m")

# "# GPU0     X     NV4    NV4" in comments, "> GPU0     X" in an e-mail
_QUOTE = expression(r"^[ \t]*[#>](?:[ \t]*[#>])*(?:[ \t]|$)")

# 2024-05-01 12:00:01,123 INFO CA 'mlx5_0'
_STAMP = expression(
    r"^\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"(?:$| (?:\[?(?:DEBUG|INFO|WARN\w*|ERROR)\]?:?(?: |$))?)"
)

# "node07: CA 'mlx5_0'" from clush and pdsh, "[node07] ...", "(worker pid=5280) ...", "worker_1  | ..."
_PREFIX = expression(r"^(?:[\w.\-]+:|\[[^\]]+\]|\([^)]+\)|[\w.\-]+ *\|{1,2})(?= |$)")

# "[1,3]<stdout>:NCCL version 2.18.3" from mpirun --tag-output and horovodrun
_RANK = expression(r"^\[\d+(?:,\d+)?\]<std(?:out|err)>: ?", re.MULTILINE)

# "2: **ens3f0**: <BROADCAST,UP>": bold text of Markdown
_BOLD = expression(r"\*\*([^\s*]+)\*\*")

# "&lt;BROADCAST,UP&gt;" from the source of a page, and the quote marks of a word processor
_REPLACEMENTS = (
    ("\ufeff", ""), ("\xa0", " "), ("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'),
    ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&#x27;", "'"), ("&nbsp;", " "),
    ("&amp;", "&"), ("<br>", "\n"), ("<br/>", "\n"),
)  # fmt: skip

# <pre><code class="language-bash">CA 'mlx5_0'
_TAG = expression(r"</?(?:pre|code|samp|p|div|span|details|summary)(?: [^<>\n]*)?>", re.IGNORECASE)

# A digit of another script in 4096: Python would read it as a number, and no tool prints it
_FOREIGN_DIGIT = expression(r"(?![0-9])\d")
_MOST = 0.8
_LONGEST = 2000  # a row of 80 devices has a third of it; a longer line is not output of a tool, and slow to search
_MOST_LINES = 20_000  # nvidia-smi -q prints 300 for each GPU, ip addr 6 for each interface
_FEW = 3
_START = 1000  # bytes that show the encoding


def decoded(data: bytes) -> str:
    """Return a file's text: UTF-16 if its mark or zero bytes show it, as from PowerShell, else UTF-8. Never fails."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    start = data[:_START]
    if start[1::2].count(0) * 2 > len(start) * _MOST:
        return data.decode("utf-16-le", "replace")
    return data.decode("utf-8", "replace")


def lines_of(text: str) -> list[str]:
    """Return the lines without colours, line ends, and the prefix that nearly all of them have.

    A node may send anything: lines are cut at a length that no tool prints, and ValueError is raised for more lines
    than any tool prints.
    """
    return list(_lines_of(text))


@lru_cache(maxsize=1)  # the readers of all kinds try the same text one after the other
def _lines_of(text: str) -> tuple[str, ...]:
    plain = plain_text(text)
    plain = plain if plain.isascii() else _FOREIGN_DIGIT.sub("?", plain)
    lines = [line[:_LONGEST] for line in plain.split("\n", _MOST_LINES)]
    if len(lines) > _MOST_LINES:
        raise ValueError(f"more than {_MOST_LINES} lines: not the output of a tool")
    for pattern in (_STAMP, _common_prefix(lines), _QUOTE):
        lines = _without(pattern, lines)
    return tuple(lines)


def plain_text(text: str) -> str:
    """Return the text without colours and Windows line ends. Lines are not cut: JSON may be one line."""
    plain = _ANSI.sub("", text) if "\x1b" in text else text
    plain = _ANSI_LEFT.sub("", plain) if "[" in plain else plain
    plain = _without_markup(plain)
    plain = _RANK.sub("", plain) if ">" in plain else plain
    return plain.replace("\r\n", "\n").replace("\r", "\n")


def _without_markup(text: str) -> str:
    """Return the text without the HTML tags, entities, quote marks and bold type that an author added."""
    if "<" in text or "&" in text or not text.isascii():
        text = _TAG.sub("", text)
        for written, meant in _REPLACEMENTS:
            text = text.replace(written, meant)
    return _BOLD.sub(r"\1", text) if "**" in text else text


def _common_prefix(lines: list[str]) -> re.Pattern[str]:
    """Return a pattern of the prefix that most lines share, such as the name of a node."""
    named = Counter(found[0] for line in lines if (found := _PREFIX.match(line)))
    name, times = named.most_common(1)[0] if named else ("", 0)
    return re.compile(rf"^{re.escape(name)}(?: |$)") if times > _FEW else _QUOTE


def _without(pattern: re.Pattern[str], lines: list[str]) -> list[str]:
    not_empty = [line for line in lines if line.strip()]
    enough_without = not_empty[
        : 1 + int((1 - _MOST) * len(not_empty))
    ]  # if all of these are, it is not most that match
    if not any(map(pattern.match, enough_without)):
        return lines
    if len([line for line in not_empty if pattern.match(line)]) < _MOST * len(not_empty):
        return lines
    return [pattern.sub("", line, count=1) for line in lines]
