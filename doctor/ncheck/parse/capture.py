"""What every pasted capture may suffer from, undone: colours, line ends, quote marks, what a logger put in front."""

from __future__ import annotations

import codecs
import re
from collections import Counter

# \x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")


# "ninja .................. [92m[OKAY][0m": the escape character is lost, or written as ^[
_ANSI_LEFT = re.compile(r"(?:\^\[)?\[(?:0|[1-9]\d?)(?:;\d+)*m")


# "# GPU0     X     NV4    NV4" as in a job's comments, "> GPU0     X" as in a mail
_QUOTE = re.compile(r"^[ \t]*[#>](?:[ \t]*[#>])*(?:[ \t]|$)")


# 2024-05-01 12:00:01,123 INFO CA 'mlx5_0'
_STAMP = re.compile(
    r"^\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"(?:$| (?:\[?(?:DEBUG|INFO|WARN\w*|ERROR)\]?:?(?: |$))?)"
)


# "node07: CA 'mlx5_0'" as clush and pdsh have it, "[node07] ...", "(worker pid=5280) ...", "worker_1  | ..."
_SPEAKER = re.compile(r"^(?:[\w.\-]+:|\[[^\]]+\]|\([^)]+\)|[\w.\-]+ *\|{1,2})(?= |$)")


# "[1,3]<stdout>:NCCL version 2.18.3" as mpirun --tag-output and horovodrun have it, a rank a line
_RANK = re.compile(r"^\[\d+(?:,\d+)?\]<std(?:out|err)>: ?", re.MULTILINE)


# "2: **ens3f0**: <BROADCAST,UP>": what an author made bold
_BOLD = re.compile(r"\*\*([^\s*]+)\*\*")


# "&lt;BROADCAST,UP&gt;" of a page's source, and the quote marks that a word processor makes of '
_WRITTEN = (
    ("\ufeff", ""), ("\xa0", " "), ("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'),
    ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&#x27;", "'"), ("&nbsp;", " "),
    ("&amp;", "&"), ("<br>", "\n"), ("<br/>", "\n"),
)  # fmt: skip


# <pre><code class="language-bash">CA 'mlx5_0'
_TAG = re.compile(r"</?(?:pre|code|samp|p|div|span|details|summary)(?: [^<>\n]*)?>", re.IGNORECASE)


_MOST = 0.8


_LONGEST = 2000  # a row of 80 devices is a third of it; what comes beyond is nobody's answer, and dear to search


_FEW = 3


def decoded(data: bytes) -> str:
    """Return a file's text: UTF-16 where its first bytes say so, as PowerShell writes it, else UTF-8; never fails."""
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if marked else "utf-8", "replace")


def lines_of(text: str) -> list[str]:
    """Return the capture's lines without colours, line ends and what stands in front of nearly every one of them.

    What a node sends may be anything: a line is cut where no answer is that long.
    """
    lines = [line[:_LONGEST] for line in plain_text(text).split("\n")]
    for pattern in (_STAMP, _speaker(lines), _QUOTE):
        lines = _without(pattern, lines)
    return lines


def plain_text(text: str) -> str:
    """Return the text without colours and Windows' line ends, its lines as long as they are: JSON may be one line."""
    plain = _RANK.sub("", _written(_ANSI_LEFT.sub("", _ANSI.sub("", text))))
    return plain.replace("\r\n", "\n").replace("\r", "\n")


def _written(text: str) -> str:
    """Return the text as the tool wrote it: tags, entities, quote marks and bold type are its author's."""
    text = _TAG.sub("", text)
    for found, meant in _WRITTEN:
        text = text.replace(found, meant)
    return _BOLD.sub(r"\1", text)


def _speaker(lines: list[str]) -> re.Pattern[str]:
    """Return what nearly all lines begin with, a node's name above all, as a pattern; it is the same on each."""
    named = Counter(found[0] for line in lines if (found := _SPEAKER.match(line)))
    name, times = named.most_common(1)[0] if named else ("", 0)
    return re.compile(rf"^{re.escape(name)}(?: |$)") if times > _FEW else _QUOTE


def _without(pattern: re.Pattern[str], lines: list[str]) -> list[str]:
    full = [line for line in lines if line.strip()]
    if not full or sum(bool(pattern.match(line)) for line in full) < _MOST * len(full):
        return lines
    return [pattern.sub("", line, count=1) for line in lines]
