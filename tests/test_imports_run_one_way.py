"""The house's floors: data runs down, and no import runs back up. Read from the source, lazy imports and all."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import ncheck
import ncheck_checks

HOMES = {"ncheck": Path(ncheck.__file__).parent, "ncheck_checks": Path(ncheck_checks.__file__).parent}

# What an agent on a node may use beside the standard library, each only where that interpreter has it: torch is the
# job's own, for gloo's ranks.
GUESTS = {"psutil", "netifaces", "pynvml", "torch"}

# What a part may import of the house; whatever is not named here is held by the rules below alone.
ALLOWED = {
    "ncheck.agent": {"ncheck.agent"},
    "ncheck.hostlist": {"ncheck.text"},
    "ncheck.ssh": {"ncheck.ssh"},
    "ncheck.text": set[str](),
}

# What runs things: no part that knows, judges, plans or prints may reach it.
RUNS = {"ncheck.fleet", "ncheck.agent", "ncheck.pipeline", "ncheck.cli", "ncheck.demo"}
FORBIDDEN = {
    "ncheck.facts": RUNS | {"ncheck.judge", "ncheck.report", "ncheck.probe"},
    "ncheck.network": RUNS | {"ncheck.judge", "ncheck.report", "ncheck.probe", "ncheck.plan"},
    "ncheck.nccl": RUNS | {"ncheck.judge", "ncheck.report", "ncheck.probe", "ncheck.plan"},
    "ncheck.topology": RUNS | {"ncheck.judge", "ncheck.report", "ncheck.probe", "ncheck.plan"},
    "ncheck.judge": RUNS | {"ncheck.plan", "ncheck.report", "ncheck.probe"},
    "ncheck.plan": RUNS | {"ncheck.report", "ncheck.probe"},
    "ncheck.report": RUNS | {"ncheck.judge", "ncheck.facts", "ncheck.plan", "ncheck.probe"},
}

# What a check may import: the names of `ncheck` itself, and these modules and packages.
PUBLIC = {"ncheck.facts", "ncheck.mpi", "ncheck.nccl", "ncheck.network", "ncheck.topology"}

# The checks of measured bandwidth also use the arithmetic of the probe and the signatures of NCCL's log, those of GPUs
# the table of drivers that `ncheck read` uses.
ALSO_PUBLIC = {
    "ncheck_checks.gpus": {"ncheck.parse"},
    "ncheck_checks.measured": {"ncheck.model", "ncheck.parse", "ncheck.probe", "ncheck.text", "ncheck.triage"},
}


def modules() -> Iterator[tuple[str, Path]]:
    for home, folder in HOMES.items():
        for path in sorted(folder.rglob("*.py")):
            if "fixtures" not in path.parts:
                parts = (home, *path.relative_to(folder).with_suffix("").parts)
                yield ".".join(parts).removesuffix(".__init__"), path


@cache
def imported(path: Path) -> set[str]:
    """Return every module that a file imports anywhere in it; `from ncheck import y` counts as ncheck.y too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
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


def at_import(path: Path, known: frozenset[str]) -> set[str]:
    """Return the modules of the house that a file imports as soon as it is imported itself."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & known
            found |= inside or {node.module} & known
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    known = frozenset(name for name, _ in modules())
    graph = {name: at_import(path, known) - {name} for name, path in modules()}
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError, with the cycle


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
    wrong: dict[str, set[str]] = {}
    for name, path in modules():
        if name.startswith("ncheck_checks."):
            allowed = PUBLIC | ALSO_PUBLIC.get(".".join(name.split(".")[:2]), set())
            names = {f"ncheck.{public}" for public in ncheck.__all__}
            ours = {other for other in imported(path) if other.split(".")[0] in HOMES and other != "ncheck"}
            private = {other for other in ours if part(other) not in allowed and other not in names}
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
        if name.startswith("ncheck.agent"):
            roots = {other.split(".")[0] for other in imported(path)}
            assert roots - sys.stdlib_module_names <= {"ncheck"} | GUESTS, name


def test_paramiko_lives_in_the_ssh_transport_and_in_the_demos_servers_only() -> None:
    users = {name for name, path in modules() if any(other.split(".")[0] == "paramiko" for other in imported(path))}
    assert {name for name in users if not name.startswith(("ncheck.ssh.", "ncheck.demo."))} == set()
