"""NCCL did not use the network that it was held to

## What it finds
Steps in which NCCL's own log names another network than NCCL_NET asked for, such as Socket instead of IB, or another
interface or HCA than those of the plan.

## Why it matters
NCCL without its HCAs goes on over TCP, many times slower, and a training job says nothing of it. In the probe the
network is pinned, so that this is a failure and not a slow pass.

## What to type
`NCCL_DEBUG=INFO` shows why an HCA was passed over; `ibstat` shows its ports, `ls -l /dev/infiniband` whether they may
be opened, `ncheck plan nodes.txt --for env` the variables that name the right ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.probe import NodeResult, ProbeFacts
from ncheck.triage.used import Role, Way, used_ways

_MOST_EVIDENCE = 6


@dataclass(frozen=True)
class FallenBack:
    """What NCCL used instead, and a line to type."""

    told: str
    evidence: tuple[str, ...]
    fix: str


def fallen_back(facts: ProbeFacts) -> FallenBack | None:
    """Return the first step in which NCCL took something else; None where there is none."""
    for result in _spoken(facts):
        ways = used_ways(result.used)
        found = _other_network(result, ways) or _other_devices(result, ways)
        if found:
            told, fix = found
            return FallenBack(told, result.used[:_MOST_EVIDENCE], fix)
    return None


def silent_about(facts: ProbeFacts) -> bool:
    """Tell whether no step with other nodes says what NCCL used."""
    return not any(True for _ in _spoken(facts))


def _spoken(facts: ProbeFacts) -> Iterator[NodeResult]:
    for result in facts.results:
        if result.step.method.by_nccl and len(result.step.group) > 1 and result.used:
            yield result


def _other_network(result: NodeResult, ways: tuple[Way, ...]) -> tuple[str, str] | None:
    """Return what was used under a pin to something else. What names the network itself outweighs what was tried."""
    pin = result.step.net
    if not pin:
        return None
    named = [way.name for way in ways if way.role is Role.NETWORK]
    other = next((name for name in named if not name.lower().startswith(pin.lower())), "")
    if not named and pin == "IB" and not any(way.hca for way in ways):
        other = next(("Socket" for way in ways if way.role is Role.SOCKET), "")
    if not other:
        return None
    fix = "ibstat; ls -l /dev/infiniband" if pin == "IB" else "ncheck plan nodes.txt --for env"
    return f"NCCL was held to {pin} and used {other}", fix


def _other_devices(result: NodeResult, ways: tuple[Way, ...]) -> tuple[str, str] | None:
    """Return the HCA ports that are none of the plan's, or the interfaces where none of them is."""
    ports = [device for device in result.planned if ":" in device]
    interfaces = [device for device in result.planned if ":" not in device]
    used_ports = [way.name for way in ways if way.hca]
    strange = [name for name in used_ports if not any(_same_port(name, port) for port in ports)]
    if ports and strange:
        return _instead(strange, ports)
    sockets = [way.name for way in ways if way.role in (Role.SOCKET, Role.BOOTSTRAP)]
    if interfaces and sockets and not set(sockets) & set(interfaces):
        return _instead(sockets, interfaces)
    return None


def _same_port(used: str, planned: str) -> bool:
    """Tell whether both are one port: NCCL may leave the number out."""
    return used == planned or (":" not in used and planned.partition(":")[0] == used)


def _instead(used: list[str], planned: list[str]) -> tuple[str, str]:
    told = f"NCCL used {' and '.join(dict.fromkeys(used))} and not {' and '.join(planned)}, as planned"
    return told, "ncheck plan nodes.txt --for env"


@node_check("NC704", Severity.ERROR, ProbeFacts)
def net_fell_back(node: NodeView) -> Iterator[Problem | NotApplicable]:
    found = fallen_back(node[ProbeFacts])
    if found:
        yield Problem(found.told, found.fix, found.evidence)
    elif silent_about(node[ProbeFacts]):
        yield NotApplicable("no step with other nodes has NCCL's word of the network that it used")
