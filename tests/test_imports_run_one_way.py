"""The house's floors: data runs down, and no import runs back up. Read from the source, lazy imports and all."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import ncheck
import ncheck_checks

HOMES = {"ncheck": Path(ncheck.__file__).parent, "ncheck_checks": Path(ncheck_checks.__file__).parent}

# What an agent on a node may use beside the standard library, each only where that interpreter has it: torch is the
# job's own, for gloo's ranks.
GUESTS = {"pynvml", "torch"}

# What a part may import of the house; whatever is not named here is held by the rules below alone.
ALLOWED = {
    "ncheck.agent": {"ncheck.agent"},
    "ncheck.hostlist": {"ncheck.expression", "ncheck.text"},
    "ncheck.lazy_dataclass": set[str](),
    "ncheck.ssh": {"ncheck.ssh", "ncheck.lazy_dataclass"},
    "ncheck.text": {"ncheck.redact"},  # when it cuts a text: without its end, a secret is not known as one
}

# What runs things: no part that knows, judges, plans or prints may reach it.
RUNS = {"ncheck.fleet", "ncheck.agent", "ncheck.pipeline", "ncheck.cli", "ncheck.demo", "ncheck.mcp"}
FORBIDDEN = {
    "ncheck.facts": RUNS | {"ncheck.steps.judge", "ncheck.report", "ncheck.probe", "ncheck.plan"},
    "ncheck.network": RUNS | {"ncheck.steps.judge", "ncheck.report", "ncheck.probe", "ncheck.plan"},
    "ncheck.nccl": RUNS | {"ncheck.steps.judge", "ncheck.report", "ncheck.probe", "ncheck.plan"},
    "ncheck.topology": RUNS | {"ncheck.steps.judge", "ncheck.report", "ncheck.probe", "ncheck.plan"},
    "ncheck.steps.judge": RUNS | {"ncheck.plan", "ncheck.report", "ncheck.probe"},
    "ncheck.plan": RUNS | {"ncheck.report", "ncheck.probe"},
    "ncheck.report": RUNS | {"ncheck.steps.judge", "ncheck.facts", "ncheck.plan", "ncheck.probe"},
}

# What a check may import, beside the names of `ncheck` itself and how a record is made: docs/api.md names it as public.
PUBLIC = {
    "ncheck.expression", "ncheck.facts", "ncheck.login_variables", "ncheck.mpi", "ncheck.nccl", "ncheck.network",
    "ncheck.outliers", "ncheck.parity", "ncheck.text", "ncheck.topology", "ncheck.parse.cuda_compatibility",
    "ncheck.parse.interface_names", "ncheck.plan.planned_pick",
}  # fmt: skip

# The checks of what was measured read the probe's results: fifteen of them, and no other check.
MEASURED = "ncheck_checks.measured."
OF_MEASURED = {"ncheck.model.op", "ncheck.model.report", "ncheck.probe", "ncheck.triage"}

# What only one use needs. Of the rest, these open a room: inside a function, or for types.
ROOMS = (
    "ncheck.probe", "ncheck.triage", "ncheck.hook", "ncheck.read", "ncheck.speedup", "ncheck.predict", "ncheck.retry",
)  # fmt: skip
OPENERS = (
    "ncheck",
    "ncheck.api",
    "ncheck.cli",
    "ncheck.steps.conclude",
    "ncheck.demo",
    "ncheck.mcp",
    "ncheck.pipeline",
)

# Imported by an option alone, in a function: these open their room at their top.
BY_OPTION = {"ncheck.cli.retry"}

# What a room uses of another one.
BETWEEN_ROOMS = {
    ("ncheck.probe", "ncheck.triage.log_clues"): "why an all-reduce failed is in NCCL's log",
    ("ncheck.probe", "ncheck.triage.clue"): "and in what its ranks printed, or how they ended",
    ("ncheck.probe", "ncheck.triage.certainty"): "the same",
    ("ncheck.hook", "ncheck.triage.harmless"): "a node of a watched job answers what triage asks",
    ("ncheck.hook", "ncheck.triage.report"): "an alarm is printed as triage prints it",
    ("ncheck.hook", "ncheck.triage.watch"): "a job is watched from inside as it is from outside",
    ("ncheck.read", "ncheck.triage.causes"): "a log is read as triage reads it",
    ("ncheck.read", "ncheck.triage.certainty"): "the same",
    ("ncheck.read", "ncheck.triage.log_clues"): "the same",
    ("ncheck.read", "ncheck.triage.parse.nccl_ras"): "so is what NCCL's RAS prints",
    ("ncheck.predict", "ncheck.probe.expected"): "what the links carry is what a measurement is held to",
    ("ncheck.predict", "ncheck.probe.node_result"): "it is asked for as a step of the bandwidth test",
    ("ncheck.predict", "ncheck.probe.results"): "the same",
    ("ncheck.predict", "ncheck.probe.links.algorithms"): "which algorithms a node's settings leave",
    ("ncheck.predict", "ncheck.probe.links.domains"): "which nodes are one to NCCL",
    ("ncheck.predict", "ncheck.probe.links.gpu_links"): "how the GPUs of a node are linked",
    ("ncheck.predict", "ncheck.probe.links.hardware"): "the facts of all these",
    ("ncheck.predict", "ncheck.probe.links.pcie_links"): "what NCCL assumes of PCIe",
    ("ncheck.predict", "ncheck.probe.links.nic_links"): "which HCA ports a run used, by its log",
    ("ncheck.predict", "ncheck.probe.skip_reason"): "on which nodes something was begun",
    ("ncheck.read", "ncheck.probe.parse.nccl_tests"): "the output of nccl-tests is read and measured by one parser",
}


def modules() -> Iterator[tuple[str, Path]]:
    for home, folder in HOMES.items():
        for path in sorted(folder.rglob("*.py")):
            if "fixtures" not in path.parts:
                parts = (home, *path.relative_to(folder).with_suffix("").parts)
                yield ".".join(parts).removesuffix(".__init__"), path


@cache
def imports_of(path: Path) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return every import of a file, and those at its top alone; its tree is not kept, for all would be large."""
    body = ast.parse(path.read_text()).body
    return list(imports(body)), [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(*bodies: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the imports in these statements, and in the statements within them."""
    for node in chain(*bodies):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        inner = [part for name in ("handlers", "cases") for part in getattr(node, name, ())]
        for holder in (node, *inner):
            yield from imports(*(getattr(holder, name, []) for name in ("body", "orelse", "finalbody")))


@cache
def imported(path: Path) -> set[str]:
    """Return every module that a file imports anywhere in it; `from ncheck import y` counts as ncheck.y too."""
    found: set[str] = set()
    for node in imports_of(path)[0]:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "ncheck")
    return found


def part(module: str) -> str:
    """Return the part of the house: ncheck.facts for ncheck.facts.gpus, and ncheck_checks for every check."""
    parts = module.split(".")
    return parts[0] if parts[0] == "ncheck_checks" else ".".join(parts[:2])


@cache
def house() -> dict[str, dict[str, bool]]:
    """Return which modules each module imports, anywhere in it; True where it does as soon as it is imported itself."""
    known = frozenset(name for name, _ in modules())
    found: dict[str, dict[str, bool]] = {}
    for name, path in modules():
        everywhere, at_once = (_named(nodes, known) - {name} for nodes in imports_of(path))
        found[name] = {other: other in at_once for other in everywhere}
    return found


def _named(nodes: Iterable[ast.stmt], known: frozenset[str]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            each = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {inner if inner in known else node.module for inner in each.values()}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known


def room_of(module: str) -> str:
    return next((room for room in ROOMS if module == room or module.startswith(room + ".")), "")


def test_no_module_imports_itself_by_way_of_others_be_it_in_a_function_or_for_types() -> None:
    graph = {name: set(others) for name, others in house().items()}
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError, with the cycle


def test_nothing_imports_a_room_but_who_opens_it() -> None:
    wrong = [
        (name, other)
        for name, others in house().items()
        for other, at_once in others.items()
        if room_of(other) and room_of(name) != room_of(other) and not _may_open(name, other, at_once=at_once)
    ]
    assert wrong == []


def _may_open(name: str, other: str, *, at_once: bool) -> bool:
    if room_of(name):
        return (room_of(name), other) in BETWEEN_ROOMS
    if name.startswith(MEASURED):
        return True
    return name.startswith(OPENERS) and (not at_once or name in BY_OPTION)


def test_each_exception_between_rooms_is_needed() -> None:
    used = {(room_of(name), other) for name, others in house().items() for other in others}
    assert set(BETWEEN_ROOMS) - used == set()


def test_the_lowest_parts_import_nothing_of_the_house_but_what_lies_below() -> None:
    for name, path in modules():
        allowed = ALLOWED.get(part(name))
        ours = {part(other) for other in imported(path) if other.split(".")[0] in HOMES} - {"ncheck"}
        assert allowed is None or ours <= allowed, name


def test_what_knows_judges_plans_or_reports_runs_nothing() -> None:
    wrong: dict[str, set[str]] = defaultdict(set)
    for name, path in modules():
        wrong[name] |= {part(other) for other in imported(path)} & FORBIDDEN.get(part(name), set())
    assert {name: parts for name, parts in wrong.items() if parts} == {}


def test_a_check_imports_only_public_names() -> None:
    names = {f"ncheck.{public}" for public in ncheck.__all__}
    wrong: dict[str, set[str]] = {}
    for name, others in house().items():
        if name.startswith("ncheck_checks."):
            allowed = PUBLIC | (OF_MEASURED if name.startswith(MEASURED) else set())
            ours = {other for other in others if other.split(".")[0] == "ncheck"} - {"ncheck", *names}
            private = {other for other in ours - {"ncheck.lazy_dataclass"} if not {other, part(other)} & allowed}
            wrong |= {name: private} if private else {}
    assert wrong == {}


def test_the_checks_need_nothing_but_ncheck_and_ncheck_never_imports_them() -> None:
    for name, path in modules():
        roots = {other.split(".")[0] for other in imported(path)}
        if name.startswith("ncheck_checks"):
            assert roots - sys.stdlib_module_names <= {"ncheck"}, name
        else:
            assert "ncheck_checks" not in roots, name


def test_the_agent_needs_nothing_but_the_standard_library() -> None:
    for name, path in modules():
        if name.startswith(("ncheck.agent", "ncheck.probe.agent", "ncheck.triage.agent")):
            roots = {other.split(".")[0] for other in imported(path)}
            assert roots - sys.stdlib_module_names <= {"ncheck"} | GUESTS, name


OF_A_PROCESS = re.compile(r"^/proc$|/proc/(?:[{*\[\d]|VALUE)")  # and not /proc/meminfo, nor /proc/self


def test_one_module_reads_what_the_kernel_shows_of_a_process() -> None:
    readers = {name for name, path in modules() if any(map(OF_A_PROCESS.search, texts_of(path)))}
    assert readers == {"ncheck.agent.proc", "ncheck.files"}  # the latter makes no temporary file there


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a path in a file's code; what is put into one, or added to it, is VALUE. READS says what is
    read.
    """
    code = path.read_text()
    for node in ast.parse(code).body if "/proc" in code else ():
        if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "READS"):
            documentation = {id(each.value) for each in ast.walk(node) if isinstance(each, ast.Expr)}
            for each in ast.walk(node):
                match each:
                    case ast.JoinedStr():
                        yield "".join(
                            str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in each.values
                        )
                    case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Add()):
                        yield text + "VALUE"
                    case ast.Constant(value=str(text)) if id(each) not in documentation:
                        yield text


def test_paramiko_lives_in_the_ssh_transport_and_in_the_demos_servers_only() -> None:
    users = {name for name, path in modules() if any(other.split(".")[0] == "paramiko" for other in imported(path))}
    assert {name for name in users if not name.startswith(("ncheck.ssh.", "ncheck.demo."))} == set()


def test_psutil_and_netifaces_each_have_one_user_which_says_what_the_single_file_does_without() -> None:
    users = {
        package: {name for name, path in modules() if package in {other.split(".")[0] for other in imported(path)}}
        for package in ("psutil", "netifaces")
    }
    assert users == {"psutil": {"ncheck.this_machine.process"}, "netifaces": {"ncheck.this_machine.local_host"}}
