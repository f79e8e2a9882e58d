"""Libraries and networks of NCCL that differ between the nodes, or are missing on some."""

from __future__ import annotations

from collections.abc import Sequence

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import LogLine
from ncheck.triage.signature import Detected, Detector, LineClue

# node01:77:77 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]
_NO_VERBS = "Failed to open libibverbs"

# node01:77:77 [0] NCCL INFO NET/Socket : Using [0]ib0:10.3.0.1<0>
# mpirun -x NCCL_IB_HCA=mlx5_0 ...
_WANTS_VERBS = expression(r"(?:Using |\])(?:ib\w*|roce\w*):\S+<\d+>|\bNCCL_IB_(?:HCA|GID_INDEX|DISABLE=0)")

# node01:77:77 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
_VERBS_OFF = expression(r"NCCL_IB_DISABLE(?:=| set (?:by environment )?to )1")


def verbs_missing(lines: Sequence[LogLine]) -> Detected:
    """Yield that libibverbs is missing, if the log shows that the job wants InfiniBand: otherwise it is no fault."""
    lacking = next((line for line in lines if _NO_VERBS in line.text), None)
    wanted = lacking and next((line for line in lines if _WANTS_VERBS.search(line.text)), None)
    if lacking and wanted and not any(_VERBS_OFF.search(line.text) for line in lines):
        yield LineClue("ibverbs_missing", Grade.LIKELY, ("container_isolation",)), (lacking, wanted)


# node01:77:77 [0] NCCL INFO NCCL version 2.27.5+cuda12.9
# [rank3]: torch.distributed.DistBackendError: NCCL error in: ..., unhandled system error, NCCL version 2.27.3
_VERSION = expression(r"NCCL version (\d+\.\d+(?:\.\d+)?)")


def versions_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield a line for each NCCL version, if ranks print different ones."""
    by_version: dict[str, LogLine] = {}
    for line in lines:
        if (line.host or line.rank) and "NCCL version" in line.text and (match := _VERSION.search(line.text)):
            by_version.setdefault(match[1], line)
    if len(by_version) > 1:
        yield LineClue("version_mismatch", Grade.CERTAIN), tuple(by_version.values())


# node01:77:80 [5] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.
_NO_PLUGIN = expression(r"NET/Plugin ?: (?:Could not find:? libnccl-net|No plugin found|.*using internal)")

# node02:78:81 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so
_PLUGIN = expression(r"Plugin Path ?: \S*libnccl-net|NET/Plugin ?: Loaded net plugin (?!IB |Socket )")


def plugins_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield a line of a node with a network plug-in and one of a node without, if there are both."""
    plugin_lines = [line for line in lines if line.host and "lugin" in line.text]
    without = {line.host: line for line in plugin_lines if _NO_PLUGIN.search(line.text)}
    loaded = {line.host: line for line in plugin_lines if _PLUGIN.search(line.text)}
    lacking = [host for host in without if host not in loaded]
    if loaded and lacking:
        shown = without[lacking[0]], next(iter(loaded.values()))
        yield LineClue("net_plugin", Grade.LIKELY, ("version_mismatch",)), shown


# node01:77:77 [0] NCCL INFO Using network Socket
_NETWORK = expression(r"Using network (\w(?:[\w /.-]{0,60}[\w/.-])?)\s*$")

_NETWORKS_DIFFER = LineClue(
    "net_plugin",
    Grade.LIKELY,
    ("ibverbs_missing", "ib_fabric", "container_isolation"),
    meaning="some nodes use another network than the others and cannot communicate with them",
)

_VERBS_MISSING_ON_SOME = LineClue(
    "ibverbs_missing",
    Grade.LIKELY,
    ("container_isolation",),
    meaning="some nodes cannot load the InfiniBand libraries and use TCP, the others InfiniBand",
)


def networks_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield a line for each network, if nodes use different ones."""
    by_network: dict[str, LogLine] = {}
    for line in lines:
        if line.host and "Using network" in line.text and (match := _NETWORK.search(line.text)):
            by_network.setdefault(match[1], line)
    if len(by_network) < 2 or len({line.host for line in by_network.values()}) < 2:  # noqa: PLR2004
        return
    by_socket = by_network.get("Socket")
    lacking = by_socket and next(
        (line for line in lines if line.host == by_socket.host and _NO_VERBS in line.text), None
    )
    if lacking:
        yield _VERBS_MISSING_ON_SOME, (lacking, *by_network.values())
    else:
        yield _NETWORKS_DIFFER, tuple(by_network.values())


def verbs_note(lines: Sequence[LogLine]) -> str:
    """Return what is to be said of libibverbs where it is missing and nothing shows that the job wants it."""
    lacking = any(_NO_VERBS in line.text for line in lines)
    by_socket = any("Using network Socket" in line.text for line in lines)
    if not (lacking and by_socket) or any(_VERBS_OFF.search(line.text) for line in lines):
        return ""
    return (
        "NCCL uses TCP: it could not open libibverbs (ibverbs_missing). That matters only if the nodes have InfiniBand"
        " or RoCE: sudo apt-get install libibverbs1 ibverbs-providers"
    )


DETECTORS: tuple[Detector, ...] = (verbs_missing, versions_differ, plugins_differ, networks_differ)
WORDS = (
    "nccl version", "plugin", "using network", "libibverbs", "]ib", "]roce", "using ib", "using roce", "nccl_ib_",
)  # fmt: skip
