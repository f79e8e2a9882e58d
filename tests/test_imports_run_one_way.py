"""The house's floors: data runs down, and no import runs back up. Read from the source, lazy imports and all."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import checks
import doctor

HOMES = {"doctor": Path(doctor.__file__).parent, "checks": Path(checks.__file__).parent}

# What an agent on a node may use beside the standard library, each only where that interpreter has it: torch is the
# job's own, for gloo's ranks.
GUESTS = {"psutil", "netifaces", "pynvml", "torch"}

# What a floor may import of the house; whatever is not named here is held by the sort alone.
ALLOWED = {
    "doctor.model": {"doctor.model"},
    "doctor.parse": {"doctor.model", "doctor.parse"},
    "doctor.agent": {"doctor.agent"},
}

# What a floor never imports: the way to the nodes, and those that call it.
OUTSIDE = {"doctor.transport", "doctor.gather", "doctor.agent", "doctor.mesh", "doctor.pipeline", "doctor.record"}
PURE = OUTSIDE | {"doctor.collect", "doctor.engine", "doctor.advice", "doctor.report", "doctor.parse"}
FORBIDDEN = {
    "doctor.reasoning": PURE | {"doctor.links", "doctor.nccl"},
    "doctor.nccl": PURE | {"doctor.links"},
    "doctor.links": PURE,
    "checks": OUTSIDE | {"doctor.collect", "doctor.report", "doctor.parse"},
    "doctor.collect": OUTSIDE | {"doctor.engine", "doctor.advice", "doctor.report"},
    "doctor.engine": OUTSIDE | {"doctor.collect", "doctor.advice", "doctor.report"},
    "doctor.advice": OUTSIDE | {"doctor.collect", "doctor.report"},
    "doctor.report": OUTSIDE | {"doctor.collect"},
}


def modules() -> Iterator[tuple[str, Path]]:
    for home, folder in HOMES.items():
        for path in sorted(folder.rglob("*.py")):
            if "fixtures" not in path.parts:
                parts = (home, *path.relative_to(folder).with_suffix("").parts)
                yield ".".join(parts).removesuffix(".__init__"), path


@cache
def imported(path: Path) -> set[str]:
    """Return every module that a file imports anywhere in it; `from doctor import y` counts as doctor.y too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "doctor")
    return found


def floor(module: str) -> str:
    """Return the part of the house: doctor.model for doctor.model.facts.gpu, and checks for every check."""
    parts = module.split(".")
    return "checks" if parts[0] == "checks" else ".".join(parts[:2])


def floors() -> dict[str, set[str]]:
    """Return what each floor imports of the others. The package's own front door, doctor, is part of no floor."""
    known = {floor(name) for name, _ in modules()} - {"doctor"}
    graph: dict[str, set[str]] = defaultdict(set)
    for name, path in modules():
        if floor(name) in known:
            graph[floor(name)] |= {floor(other) for other in imported(path)} & known - {floor(name)}
    return graph


def test_no_two_parts_of_the_house_import_each_other() -> None:
    order = list(TopologicalSorter(floors()).static_order())  # raises CycleError, with the cycle
    assert order.index("doctor.model") < order.index("checks")


def test_the_lower_floors_import_nothing_of_the_house_but_what_lies_below() -> None:
    for name, path in modules():
        allowed = ALLOWED.get(floor(name))
        ours = {floor(other) for other in imported(path) if other.split(".")[0] in HOMES} - {"doctor"}
        assert allowed is None or ours <= allowed, name


def test_judging_collecting_advising_and_reporting_know_no_way_to_a_node() -> None:
    graph = floors()
    assert {name: graph[name] & far for name, far in FORBIDDEN.items() if graph[name] & far} == {}


def test_the_checks_import_nothing_but_doctor_and_doctor_never_imports_them() -> None:
    for name, path in modules():
        roots = {other.split(".")[0] for other in imported(path)}
        if name.startswith("checks"):
            assert roots - sys.stdlib_module_names <= {"doctor"}, name
        else:
            assert "checks" not in roots, name


def test_the_agent_needs_nothing_but_the_standard_library() -> None:
    for name, path in modules():
        if name.startswith("doctor.agent"):
            roots = {other.split(".")[0] for other in imported(path)}
            assert roots - sys.stdlib_module_names <= {"doctor"} | GUESTS, name


def test_paramiko_lives_in_the_ssh_transport_and_in_the_demos_servers_only() -> None:
    users = {name for name, path in modules() if any(other.split(".")[0] == "paramiko" for other in imported(path))}
    assert {name for name in users if not name.startswith(("doctor.transport.ssh.", "doctor.demo."))} == set()
