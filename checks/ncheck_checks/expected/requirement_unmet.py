"""A package is not the required one

## What it finds
Nodes whose job interpreter lacks a package of `--requirements FILE`, or has another version than the file asks for. The
file is one of pip: `torch==2.3.0`, `deepspeed>=0.14,<0.15`, with conditions such as `; python_version < "3.12"`, which
are decided by the node's Python. Extras are ignored. A file that names other files or addresses is refused.

## Why it matters
Nodes that agree can agree on the wrong packages: after an image was rolled back everywhere, no comparison shows it, and
the job fails with "ModuleNotFoundError", or trains with a release that it was never tested with.

## What to type
`python3 -m pip install -r FILE` in the job's environment on the named nodes. If the job uses another Python than the
one in the finding: `ncheck --python /path/to/python --requirements FILE nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.packages import Package, PackagesFacts
from ncheck.facts.requirements import Requirement, applies, is_met

_MOST = 5  # requirements that the message names
_EVIDENCE = 50  # and the evidence


@node_check("NC907", Severity.ERROR, ExpectedFacts, also=(PackagesFacts, InterpreterFacts))
def requirement_unmet(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    expected, found, python = node[ExpectedFacts].requirements, node.maybe(PackagesFacts), node.maybe(InterpreterFacts)
    if not expected:
        yield NotApplicable("no requirements were given: --requirements FILE")
    elif not (isinstance(found, PackagesFacts) and isinstance(python, InterpreterFacts)):
        yield Inconclusive(next(fact.reason for fact in (found, python) if isinstance(fact, (Absent, Unread))))
    else:
        wanted = {one: _wanted(one, found) for one in expected}
        yield from (answer for answer in wanted.values() if isinstance(answer, Inconclusive))
        unmet = {
            one: why for one in wanted if wanted[one] is True and (why := _unmet(one, found.packages.get(one.name)))
        }
        if unmet:
            lines = [f"{one.described} ({why})" for one, why in unmet.items()]
            more = f" and {len(lines) - _MOST} more" if len(lines) > _MOST else ""
            what = "1 requirement is unmet" if len(lines) == 1 else f"{len(lines)} requirements are unmet"
            fix = " ".join((quote(python.path), "-m pip install", *(quote(one.described) for one in unmet)))
            yield Problem(
                f"{what} by {python.path}: {', '.join(lines[:_MOST])}{more}", fix, tuple(lines[_MOST:_EVIDENCE]),
                summary="unmet requirements",
            )  # fmt: skip


def _wanted(requirement: Requirement, found: PackagesFacts) -> bool | Inconclusive:
    """Return whether the condition of a requirement holds on this node."""
    try:
        return applies(requirement, found.markers)
    except ValueError as error:
        return Inconclusive(f"the condition of {requirement.name} cannot be compared: {error}")


def _unmet(requirement: Requirement, package: Package | None) -> str:
    """Return why a package is not the required one, "" if it is."""
    if package is None:
        return "not installed"
    if not requirement.specifier:
        return ""
    try:
        return "" if is_met(requirement, package.version) else f"is {package.described}"
    except ValueError:
        return f"is {package.described}, which pip cannot compare"
