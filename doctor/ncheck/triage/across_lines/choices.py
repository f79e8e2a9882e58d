"""What NCCL chose, and what makes it slower than it need be: its lines of TUNING, GRAPH, INIT and ENV.

That is information and no fault: a job that works stays healthy. Only ranks that choose differently fail by it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ncheck.expression import expression
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.text import size
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import LogLine
from ncheck.triage.nccl_network import network_uses
from ncheck.triage.signature import Detected, Detector, LineClue

# node01:77:80 [0] NCCL INFO ...: host, process and thread
_WRITER = expression(r"(?<![\w.-])([\w.-]{1,253}):(\d{1,9}):(\d{1,9}) \[\d{1,3}\]")

# ncclCommInitRank comm 0x5643 rank 2 nranks 16 cudaDev 2 nvmlDev 2 busId 86000 commId 0x847eed8d3654571a - Init START
_JOINS = expression(r"\brank \d{1,6} n[rR]anks \d{1,6} .{0,90}\bcommId (0x[0-9a-f]{1,16})")

# comm 0x5643898f8930 rank 4 nRanks 16 nNodes 2 localRanks 8 localRank 4 MNNVL 0
_PLACE = expression(r"\bnRanks \d{1,6} nNodes (\d{1,6}) localRanks (\d{1,4})\b")

# By number from 2.20 to 2.23, of which only the last names the operation; by name, with channels, since 2.24.
# n1:77:77 [0] NCCL INFO 65536 Bytes -> Algo 0 proto 0 time 37.798233
# n1:77:77 [0] NCCL INFO AllReduce: 8388608 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}
_CHOICE = expression(
    r"(?:\b(?P<op>[A-Z][A-Za-z]{1,20}): ?)?(?<![\d,])(?P<bytes>\d{1,19}) Bytes -> Algo (?P<algo>\w{1,16})"
    r" +proto (?P<proto>\w{1,8})"
)
_ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")
_BY_NAME = {name.upper(): name for name in (*_ALGORITHMS, *_PROTOCOLS)}
_OPS = {"AllReduce": "all-reduce", "AllGather": "all-gather", "ReduceScatter": "reduce-scatter",
        "Broadcast": "broadcast", "Reduce": "reduce"}  # fmt: skip

# n1:7:8 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1
# until 2.13 "speed" instead of "bw"; first inside a node, then between nodes; 4 is the pattern of rings
_RINGS = expression(
    r"Pattern 4, crossNic \d, nChannels (\d{1,3}), (?:bw|speed) [\d.]{1,16}/([\d.]{1,16}), type (\w{2,4})/(\w{2,4}),"
)

# n1:7:8 [0] NCCL INFO NET/5 :GPU/0-4000 (6/10.0/SYS) GPU/0-84000 (4/24.0/PIX) CPU/0-0 (4/10.0/SYS)
_NEAR = expression(r"(NET/\d{1,2})(?:-\d{1,2})? ?:.{0,900}?GPU/\S{1,20} \(\d{1,2}/[\d.]{1,16}/(PIX|PXB)\)")
_FAR = ("PHB", "SYS")  # through the CPU

# n1:7:8 [0] NCCL INFO Channel 00/0 : 16[0] -> 0[0] [receive] via NET/IB/7/GDRDMA: of network 7, by PXN "NET/IB/7(3)"
_SENDS = expression(r" via NET/([\w .-]{1,40})/(\d{1,3})(?:\(\d{1,6}\))?((?:/\w{1,12}){0,3})\s*$")

# n1:7:8 [0] NCCL INFO NVLS multicast support is not available on dev 0
_NVLS = expression(r"NVLS multicast support is (not )?available")

# n1:7:8 [0] NCCL INFO     AllReduce |    10.4/  43.6 |    21.5/ 128.8 |    32.4/ 165.6 |    10.2/  94.0 | ...
_TIMES = expression(r"\bAllReduce \|((?: *[\d.]{1,12}/ *[\d.]{1,12} \|){6,9})")
_CELL = expression(r"/ *([\d.]{1,12}) \|")  # the bandwidth; those of rings come fourth to sixth

# n1:7:8 [0] NCCL INFO NCCL_ALGO set by environment to Ring
_SET = expression(r"\b(NCCL_[A-Z0-9_]{2,60}) set by environment to (\S{1,80}?)\.?\s*$")
_DECIDE = ("NCCL_ALGO", "NCCL_PROTO")  # all ranks must have the same
# Variables that leave NCCL less to choose, and the values with which they do; () for each value.
_LIMIT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_DECIDE, ()),
    "NCCL_NVLS_ENABLE": ("0",), "NCCL_P2P_DISABLE": ("1",), "NCCL_SHM_DISABLE": ("1",), "NCCL_IB_DISABLE": ("1",),
}  # fmt: skip

_CHANNELS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS")
_EVER = 32  # channels: until 2.24 NCCL never has more, since then hardly ever (MAXCHANNELS in device.h, 64 since 2.25)

# n1:7:8 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer
_COUNT = expression(r"\b(\d{1,3}) coll channels, ")

_MOST_CHOICES, _MOST_OPS, _MOST_FAULTS = 4, 3, 4


_Process = tuple[str, str]


@dataclass(frozen=True)
class _Writer:
    host: str
    process: str
    thread: str

    @property
    def of(self) -> _Process:
        return self.host, self.process


@dataclass(frozen=True)
class _Choice:
    op: str
    bytes: int
    by: str  # "Ring LL128"


@dataclass(frozen=True)
class _Rings:
    """What one node counts on for rings, before NCCL takes the least of all nodes."""

    channels: int
    speed: float  # GB/s of one channel between nodes
    inside: str
    between: str


@dataclass
class _Node:
    """What the lines of one node say."""

    nics: set[str] = field(default_factory=set)
    used: set[tuple[str, str]] = field(default_factory=set)
    direct: set[bool] = field(default_factory=set)  # whether the HCA reads the GPU's memory itself
    ranks: dict[str, int] = field(default_factory=dict)  # on this node, of each communicator of several nodes
    near: str = ""  # a NIC beside a GPU
    nvls: set[bool] = field(default_factory=set)
    ll128: bool = True
    channels: int = 0  # of the communicator that has most
    values: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def read(self, text: str) -> None:
        """Take in one line."""
        if match := _found(_NVLS, "NVLS multicast", text):
            self.nvls.add(not match[1])
        elif match := _found(_TIMES, "AllReduce |", text):
            self.ll128 = self.ll128 and not _without_ll128(match[1])
        elif match := _found(_SET, " set by environment to ", text):
            self.values[match[1]].add(match[2])
        elif match := _found(_COUNT, " coll channels, ", text):
            self.channels = max(self.channels, int(match[1]))
        elif match := _found(_NEAR, ":GPU/", text):
            self.near = self.near or f"{match[1]} is at {match[2]}"
        elif (match := _found(_SENDS, " via NET/", text)) and match[1] != "Socket":
            self.direct.add("GDRDMA" in match[3])
            self.used.add((match[1], match[2]))
        elif "NET/IB" in text:
            self.nics.update(use.name for use in network_uses([text]) if use.hca)


def choice_notes(lines: Sequence[LogLine], sampled: Container[int], *, blamed: bool) -> tuple[str, ...]:
    """Return what NCCL chose for which sizes, what makes it slower, and which ranks differ; () if no line says it.

    `sampled` are the numbers of the logs of which lines were left out: they do not say which NICs are idle. `blamed`:
    a diagnosis says already that ranks differ.
    """
    choices = [one for line in lines if (one := _choice(line.text))]
    whole = {line.host for line in lines} - {line.host for line in lines if line.order[0] in sampled}
    slower = list(dict.fromkeys(_slower(lines, whole)))
    more = f"; and {len(slower) - _MOST_FAULTS} more" if len(slower) > _MOST_FAULTS else ""
    chosen = f"NCCL chose: {_chosen(choices)}" if choices else ""
    cost = f"may cost speed: {'; '.join(slower[:_MOST_FAULTS])}{more}" if slower else ""
    apart = () if blamed else tuple(f"may hang: {clue.meaning}" for clue, _ in choices_differ(lines))
    return (*filter(None, (chosen, cost)), *apart)


def _choice(text: str) -> _Choice | None:
    match = _found(_CHOICE, "Bytes -> Algo", text)
    if match is None:
        return None
    algorithm, protocol = _name(match["algo"], _ALGORITHMS), _name(match["proto"], _PROTOCOLS)
    if not algorithm or not protocol:
        return None
    return _Choice(_OPS.get(match["op"] or "", match["op"] or ""), int(match["bytes"]), f"{algorithm} {protocol}")


def _name(text: str, names: Sequence[str]) -> str:
    if text.isdecimal():
        return names[int(text)] if int(text) < len(names) else ""
    return _BY_NAME.get(text.upper().replace("_", ""), "")


def _chosen(choices: Iterable[_Choice]) -> str:
    """Return the choices of each operation by size: "all-reduce: Tree LL 4 B to 64 KiB, Ring Simple 1 MiB"."""
    by_op: dict[str, dict[int, dict[str, None]]] = {}
    for one in choices:
        by_op.setdefault(one.op, {}).setdefault(one.bytes, {})[one.by] = None
    texts = []
    for op, by_size in sorted(by_op.items())[:_MOST_OPS]:
        parts: list[tuple[str, int, int]] = []
        for number, names in sorted(by_size.items()):
            by = " or ".join(sorted(names))  # communicators of one job differ
            first = parts.pop()[1] if parts and parts[-1][0] == by else number
            parts.append((by, first, number))
        said = [f"{by} {size(first)}" + (f" to {size(last)}" if last > first else "") for by, first, last in parts]
        cut = [*said[: _MOST_CHOICES - 1], "...", said[-1]] if len(said) > _MOST_CHOICES else said
        texts.append(f"{op}: {', '.join(cut)}" if op else ", ".join(cut))
    return "; ".join(texts)


def once_per_node(text: str) -> str:
    """Return what is the same in many lines of a node, of which one is enough; "" for a line that counts by itself."""
    match = _found(_SENDS, " via NET/", text)
    return match[0] if match else ""


def _slower(lines: Sequence[LogLine], whole: Container[str]) -> Iterator[str]:
    nodes, rings = _read(lines)
    if limits := _limits(nodes):
        yield f"{' and '.join(limits)}: NCCL has less to choose from"
    yield from _rings_differ(rings)
    yield from _few_channels(nodes, rings)
    off = [host for host, one in nodes.items() if not one.ll128]
    if off and any(one.inside == "NVL" for by_host in rings.values() for one in by_host.values()):
        yield f"the protocol LL128 is off on {fold(off)}, although the GPUs have NVLink"
    lack = [host for host, one in nodes.items() if one.nvls == {False}]
    if lack and len(lack) < sum(bool(one.nvls) for one in nodes.values()):
        yield f"NVLS is not available on {fold(lack)}, but on the other nodes: no node can use it"
    if any(node.direct or node.used for node in nodes.values()):  # data crosses a network
        yield from _far(nodes, rings)
        yield from _idle_nics(nodes, [host for host in _connected(lines) if host in whole])
        slow = [host for host, one in nodes.items() if one.direct == {False}]
        if slow:
            yield f"no GPUDirect RDMA on {fold(slow)}: data goes through the memory of the host"


def _read(lines: Iterable[LogLine]) -> tuple[Mapping[str, _Node], Mapping[str, Mapping[str, _Rings]]]:
    """Return what each node says, and what each counts on for the rings of a communicator."""
    nodes: dict[str, _Node] = {}
    rings: dict[str, dict[str, _Rings]] = defaultdict(dict)
    comm: dict[_Writer, str] = {}
    for line in lines:
        if (writer := _writer(line)) is None:
            continue
        if match := _found(_JOINS, " commId ", line.text):
            comm[writer] = match[1]
        elif match := _found(_RINGS, "Pattern 4,", line.text):
            found = _Rings(int(match[1]), _number(match[2]), match[3], match[4])
            rings[comm.get(writer, "")].setdefault(writer.host, found)
        elif match := _found(_PLACE, " nNodes ", line.text):
            if match[1] != "1":
                nodes.setdefault(writer.host, _Node()).ranks[comm.get(writer, "")] = int(match[2])
        else:
            nodes.setdefault(writer.host, _Node()).read(line.text)
    return nodes, rings


def _found(pattern: re.Pattern[str], words: str, text: str) -> re.Match[str] | None:
    """Search a pattern in a text that has these words of it: most have not."""
    return pattern.search(text) if words in text else None


def _writer(line: LogLine) -> _Writer | None:
    match = _WRITER.search(line.text[:300])
    return _Writer(*match.groups()) if match else None


def _without_ll128(cells: str) -> bool:
    """Return whether the row gives rings the other two protocols and not LL128."""
    low, middle, simple = (_number(speed) for speed in _CELL.findall(cells)[3:6])
    return bool(low and simple and not middle)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _limits(nodes: Mapping[str, _Node]) -> list[str]:
    """Return the variables that leave NCCL less to choose: "NCCL_ALGO=Ring"."""
    found = {(name, value) for node in nodes.values() for name, values in node.values.items() for value in values}
    most = max((node.channels for node in nodes.values()), default=0) or _EVER - 1
    return sorted(f"{name}={value}" for name, value in found if _is_limit(name, value, most))


def _is_limit(name: str, value: str, most: int) -> bool:
    """Return whether a variable keeps NCCL from anything; `most`: the channels beyond which it had none anyway."""
    if name in _CHANNELS:
        return value.isascii() and value.isdecimal() and int(value) <= most
    return name in _LIMIT and (not _LIMIT[name] or value in _LIMIT[name])


def _rings_differ(rings: Mapping[str, Mapping[str, _Rings]]) -> Iterator[str]:
    """Yield the nodes that count on less for the rings of one communicator than most nodes do."""
    for comm, by_host in rings.items():
        if not comm:
            continue  # before 2.16 no line says which communicator it is
        kinds = Counter(by_host.values())
        usual = max(kinds, key=lambda kind: (kinds[kind], kind.channels, kind.speed, kind.between not in _FAR))
        for kind in kinds:
            odd = fold(host for host, one in by_host.items() if one == kind)
            if kind.channels < usual.channels:
                yield f"{odd} has {kind.channels} channels for rings, the others {usual.channels}: all use the fewest"
            elif kind.speed < usual.speed:
                yield f"{odd} counts on {kind.speed:g} GB/s per channel, the others on {usual.speed:g}: all do then"
            elif kind.between in _FAR and usual.between not in _FAR:
                yield f"{odd} reaches its NICs by {kind.between}, the others by {usual.between}"


def _few_channels(nodes: Mapping[str, _Node], rings: Mapping[str, Mapping[str, _Rings]]) -> Iterator[str]:
    """Yield the nodes that have fewer channels for rings than NICs that the ranks of the communicator could use."""
    alike: dict[tuple[int, int], list[str]] = {}
    for comm, by_host in rings.items():
        for host, one in by_host.items():
            node = nodes.get(host, _Node())
            if one.channels < min(len(node.nics), node.ranks.get(comm, 0)):
                alike.setdefault((one.channels, len(node.nics)), []).append(host)
    for (channels, nics), hosts in alike.items():
        yield f"{fold(hosts)} has {channels} channels for rings and {nics} NICs"


def _connected(lines: Iterable[LogLine]) -> set[str]:
    return {line.host for line in lines if "Connected all rings" in line.text}


def _far(nodes: Mapping[str, _Node], rings: Mapping[str, Mapping[str, _Rings]]) -> Iterator[str]:
    for host, node in nodes.items():
        between = {by_host[host].between for by_host in rings.values() if host in by_host}
        if node.near and between and between <= set(_FAR):
            yield f"the rings of {host} reach NICs by {min(between)}, through the CPU, although {node.near} of a GPU"


def _idle_nics(nodes: Mapping[str, _Node], connected: Container[str]) -> Iterator[str]:
    """Yield the nodes that send over fewer NICs than they have and their ranks could use."""
    alike: dict[tuple[int, int], list[str]] = {}
    for host, node in nodes.items():
        if host in connected and 0 < len(node.used) < min(len(node.nics), max(node.ranks.values(), default=0)):
            alike.setdefault((len(node.used), len(node.nics)), []).append(host)
    for (used, nics), hosts in alike.items():
        yield f"{fold(hosts)} sends over {used} of {nics} NICs"


_DIFFERS = LineClue(
    "algorithm_differs", Grade.LIKELY, ("collective_mismatch",), context=True,
    explains=frozenset({"waits", "stall", "gone", "system"}),
)  # fmt: skip
_NOT_SET = "not set"
_WHOLE, _WHOLE_ALIKE = 20_000, 1000  # lines, and of one log that set one variable: of so few none was left out


_Said = tuple[str, LogLine]


def choices_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield a line of each side, if ranks of one communicator have two values of a variable, or chose twice."""
    comms = _comms(lines)
    for (what, _), by_process in (_values(lines, comms) | _calls(lines, comms)).items():
        sides: dict[str, list[_Said]] = {}
        for value, line in filter(lambda said: said[0], by_process.values()):
            sides.setdefault(value.upper(), []).append((value, line))
        if len(sides) > 1:
            texts = [f"{found[0][0]} on {fold({line.host for _, line in found})}" for found in sides.values()]
            clue = replace(_DIFFERS, meaning=f"{what} is {', but '.join(texts)}")
            yield clue, tuple(found[0][1] for found in sides.values())
            return


def _comms(lines: Iterable[LogLine]) -> Mapping[_Process, set[str]]:
    """Return the communicators of each process: one log may have several jobs, each with choices of its own."""
    comms: dict[_Process, set[str]] = defaultdict(set)
    for line in lines:
        match = _found(_JOINS, " commId ", line.text)
        if match and (writer := _writer(line)):
            comms[writer.of].add(match[1])
    return comms


def _add(by_process: dict[_Process, _Said], process: _Process, said: _Said) -> None:
    """Add what a process says; "" where it said something else before: with which of them it began may be lost."""
    before = by_process.setdefault(process, said)
    if before[0].upper() != said[0].upper():
        by_process[process] = "", said[1]


def _values(
    lines: Sequence[LogLine], comms: Mapping[_Process, set[str]]
) -> dict[tuple[str, str], dict[_Process, _Said]]:
    """Return what decides, by communicator.

    A process that sets nothing counts only if it prints other variables, and came to the end of the start, where NCCL
    has read all; and only if no line was left out.
    """
    set_in: dict[str, dict[_Process, _Said]] = {}
    printing: dict[_Process, _Said] = {}
    complete, alike = set[_Process](), Counter[tuple[int, str]]()
    for line in lines:
        match = _found(_SET, " set by environment to ", line.text)
        if match and (writer := _writer(line)):
            printing.setdefault(writer.of, (_NOT_SET, line))
            alike[line.order[0], match[1]] += 1
            if match[1] in _DECIDE:
                _add(set_in.setdefault(match[1], {}), writer.of, (match[2], line))
        elif "Init COMPLETE" in line.text and (writer := _writer(line)):
            complete.add(writer.of)
    whole = len(lines) < _WHOLE and max(alike.values(), default=0) < _WHOLE_ALIKE
    printing = {process: said for process, said in printing.items() if whole and process in complete}
    found: dict[tuple[str, str], dict[_Process, _Said]] = defaultdict(dict)
    for name, by_process in set_in.items():
        for process, said in (by_process | printing | by_process).items():
            for comm in comms.get(process, ()):
                found[name, comm][process] = said
    return found


def _calls(
    lines: Iterable[LogLine], comms: Mapping[_Process, set[str]]
) -> dict[tuple[str, str], dict[_Process, _Said]]:
    """Return what was chosen for each operation and size of a communicator, by process: of those that have one."""
    found: dict[tuple[str, str], dict[_Process, _Said]] = defaultdict(dict)
    for line in lines:
        one = _choice(line.text)
        writer = _writer(line) if one and one.op else None
        if one and writer and len(comms.get(writer.of, ())) == 1:
            (comm,) = comms[writer.of]
            call = f"the choice for {one.op} of {size(one.bytes)} in communicator {comm}", comm
            _add(found[call], writer.of, (one.by, line))
    return found


DETECTORS: tuple[Detector, ...] = (choices_differ,)
WORDS = (
    " bytes -> algo ", "pattern , crossnic ", "net/ :gpu/", "net/- :gpu/", " via net/", "connected all rings",
    "nvls multicast support", "allreduce |", " nnodes ", " busid ", "net/ib", "nccl_algo set by", "nccl_proto set by",
    "_nchannels set by", "nccl_max_ctas set by", "nccl_nvls_enable set by", "_disable set by",
    "nccl_socket_ifname set by", " coll channels, ",
)  # fmt: skip
