"""The parts of a text that holds several captures: the output of several nodes, or of several commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass

# user@node:~$ nvidia-smi topo -m     (base) root@gpu01:/workspace# ibstat     $ mpirun --version     [me@n1 ~]$ ip a
_PROMPT = expression(
    r"^[ \t]*(?:\([\w.\-]{1,60}\) ?)?"
    r"(?:\[?([\w.\-]{1,60}@[\w.\-]{1,60})[^\n$#%>]{0,200}\]?)?[$#%>][ \t]+(?=[\w./])(.*)$",
    re.MULTILINE,
)

# "gpu01 | CHANGED | rc=0 >>" of ansible, "==> gpu01.txt <==" of head, "===== gpu01 =====" of a loop over nodes
_HEADING = expression(
    r"^(?:([\w.\-]{1,255}) \| (?:SUCCESS|CHANGED|FAILED)\b.*|==> ([^\n]{1,255}) <=="
    r"|[=#*-]{3,99} ?(\w[\w.]{0,99}(?:-[\w.]{1,99}){0,9}) ?[=#*-]{3,99})[ \t]*$",
    re.MULTILINE,
)

# "---------------" above and below "gpu[01-04]": clush -b and dshbak
_BLOCK = expression(r"^-{4,}\n([\w.\-\[\],]{1,255})(?: \(\d+\))?\n-{4,}$", re.MULTILINE)
_HEADINGS = (_HEADING, _BLOCK)

# gpu01: CA 'mlx5_0'
_NODE = expression(r"^([A-Za-z][\w.\-]{0,250}): ?(.*)$")

# What a tool prints at its start; a second one begins another capture.
_BANNERS = (
    expression(r"^.*NVIDIA-SMI \d[\d.]+ .*(?:Driver|KMD) Version", re.MULTILINE),
    expression(r"^=+NVSMI LOG=+", re.MULTILINE),
    expression(r"^[ \t]*GPU0\s(?:.*\s)?CPU Affinity", re.MULTILINE),
)

_MOST = 1000
_FEWEST_LINES = 3


@dataclass(frozen=True)
class Part:
    """One part; `name` is its node or command, "" for the text before the first heading."""

    name: str
    text: str


def parts_of(text: str, *, kind_of: Callable[[str], str]) -> list[Part]:
    """Return the parts in their order; one part if nothing divides the text. `kind_of` a command is "" if unknown."""
    if nodes := _by_node(text):
        return nodes
    starts = {found.start(): found[found.lastindex or 1] for each in _HEADINGS for found in each.finditer(text)}
    starts = {start: name for start, name in starts.items() if re.search(r"\d", name)}  # not "=== ID ==="
    if starts and text[: min(starts)].strip().count("\n") > 0:
        starts = {}  # it is within the output of one node: a loop over nodes names the first one too
    starts.update(_prompts(text, kind_of))
    for banner in _BANNERS:
        for first, second in pairwise(found.start() for found in banner.finditer(text)):
            if not any(first < start <= second for start in starts):
                starts[second] = ""
        if len(starts) > _MOST:
            return [Part("", text)]
    places = sorted(starts)
    return [Part(starts.get(start, ""), text[start:end]) for start, end in pairwise([*_before(places), len(text)])]


def _prompts(text: str, kind_of: Callable[[str], str]) -> Iterator[tuple[int, str]]:
    """Yield where each command begins and the command; the same tool again on the same node is one capture."""
    before = ("", "")
    for found in _PROMPT.finditer(text):
        here = (found[1] or "", kind_of(_program(found[2])))
        if here[1] and here != before:
            yield found.start(), found[2]
            before = here


def _before(places: list[int]) -> list[int]:
    return places if places[:1] == [0] else [0, *places]


def _program(command: str) -> str:
    """Return the command before its pipe: nvidia-smi topo -m of `nvidia-smi topo -m | head`."""
    return re.split(r"[|;&]", command[:200])[0]


def _by_node(text: str) -> list[Part]:
    """Divide lines that begin with the name of their node, in any order, as clush and pdsh print them."""
    lines: dict[str, list[str]] = {}
    for line in _not_empty(text):
        found = _NODE.match(line)
        if not found or not re.search(r"\d", found[1]):
            return []
        lines.setdefault(found[1], []).append(found[2])
    few = any(len(own) < _FEWEST_LINES for own in lines.values())
    return [] if few or len(lines) < 2 else [Part(node, "\n".join(own)) for node, own in lines.items()]  # noqa: PLR2004


def _not_empty(text: str) -> Iterator[str]:
    return (line for line in text.split("\n") if line.strip())
