"""NCCL did not use the planned network

## What it finds
Steps in which NCCL's log names another network than NCCL_NET asks for, such as "Using network Socket" instead of
IB, or another interface or HCA than the planned ones.

## Why it matters
Without its HCAs NCCL continues over TCP, many times slower, and a training job reports nothing. The probe pins the
network, so that this is a failure and not a slow pass.

## What to type
`NCCL_DEBUG=INFO` shows why NCCL skipped an HCA, `ibstat` its ports, `ls -l /dev/infiniband` whether you may open them.
`ncheck plan nodes.txt --for env` prints the variables that select the right ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, PLAN, SLOW_NETWORK, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.lazy_dataclass import dataclass
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import NodeResult
from ncheck.triage.nccl_network import NetworkUse, Role, network_uses

_MOST_EVIDENCE = 6

_SHOWS_HCAS = "ibstat; ls -l /dev/infiniband"


@dataclass(frozen=True)
class FallenBack:
    """What NCCL used instead, and the command to type."""

    message: str
    evidence: tuple[str, ...]
    fix: str


def fallen_back(facts: ProbeFacts) -> FallenBack | None:
    """Return the first step in which NCCL used something else; None if there is none."""
    for result in _logged(facts):
        uses = network_uses(result.used)
        found = _other_network(result, uses) or _other_devices(result, uses)
        if found:
            message, fix = found
            return FallenBack(message, result.used[:_MOST_EVIDENCE], fix)
    return None


def silent_about(facts: ProbeFacts) -> bool:
    """Return whether no step with other nodes shows what NCCL used."""
    return not any(True for _ in _logged(facts))


def _logged(facts: ProbeFacts) -> Iterator[NodeResult]:
    for result in facts.results:
        if result.step.method.by_nccl and len(result.step.group) > 1 and result.used:
            yield result


def _other_network(result: NodeResult, uses: tuple[NetworkUse, ...]) -> tuple[str, str] | None:
    """Return another network than the pinned one. A line that names the network outweighs lines about attempts."""
    pin = result.step.net
    if not pin:
        return None
    named = [use.name for use in uses if use.role is Role.NETWORK]
    other = next((name for name in named if not name.lower().startswith(pin.lower())), "")
    if not named and pin == "IB" and not any(use.hca for use in uses):
        other = next(("Socket" for use in uses if use.role is Role.SOCKET), "")
    if not other:
        return None
    fix = _SHOWS_HCAS if pin == "IB" else PLAN
    return f"NCCL was pinned to {pin} but used {other}", fix


def _other_devices(result: NodeResult, uses: tuple[NetworkUse, ...]) -> tuple[str, str] | None:
    """Return HCA ports that are not planned, or the interfaces if none of them is planned."""
    ports = [device for device in result.planned if ":" in device]
    interfaces = [device for device in result.planned if ":" not in device]
    used_ports = [use.name for use in uses if use.hca]
    strange = [name for name in used_ports if not any(_same_port(name, port) for port in ports)]
    if ports and strange:
        return _instead(strange, ports)
    sockets = [use.name for use in uses if use.role in (Role.SOCKET, Role.BOOTSTRAP)]
    if interfaces and sockets and not set(sockets) & set(interfaces):
        return _instead(sockets, interfaces)
    return None


def _same_port(used: str, planned: str) -> bool:
    """Return whether both are the same port: NCCL may leave out the number."""
    return used == planned or (":" not in used and planned.partition(":")[0] == used)


def _instead(used: list[str], planned: list[str]) -> tuple[str, str]:
    message = f"NCCL used {' and '.join(dict.fromkeys(used))} instead of the planned {' and '.join(planned)}"
    return message, "ncheck plan nodes.txt --for env"


@node_check("NC704", Severity.ERROR, ProbeFacts, explains=SLOW_NETWORK)
def net_fell_back(node: NodeView) -> Iterator[Problem | NotApplicable]:
    found = fallen_back(node[ProbeFacts])
    if found:
        where = "" if found.fix == _SHOWS_HCAS else HERE
        yield Problem(found.message, found.fix, found.evidence, where=where, look=True)
    elif silent_about(node[ProbeFacts]):
        yield NotApplicable("NCCL's log does not show the network of any step with other nodes")
