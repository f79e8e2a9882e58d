"""What single changes would bring: each is made to the facts, and the prediction is made again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.pcie import PcieFacts, PcieLink
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.nccl.hca import active, selected, value_for
from ncheck.nccl.settings import release_of
from ncheck.plan.hca import HCA, sort_ports
from ncheck.plan.inputs import logged_in, rdma_everywhere
from ncheck.predict.carriers import by_sockets, folded
from ncheck.predict.case import LARGE, Case, Part
from ncheck.predict.prediction import Change, OpPrediction, predicted
from ncheck.predict.releases import NEWEST
from ncheck.topology.pcie_width import behind

LEAST = 0.02  # a gain below it is not worth a change
_FEW = 4  # devices, beyond which each is not tried alone: every try is made for all nodes

# Settings that keep NCCL from what it would choose by itself, and what they keep it from.
_RESTRICTING = {
    "NCCL_ALGO": "NCCL may then choose any algorithm",
    "NCCL_PROTO": "NCCL may then choose any protocol",
    "NCCL_NVLS_ENABLE": "NVLS is turned off",
    "NCCL_P2P_DISABLE": "the GPUs are kept from reaching each other directly",
    "NCCL_IB_DISABLE": "the HCAs are not used",
    "NCCL_NET": "the network is fixed",
    "NCCL_MNNVL_ENABLE": "NVLink between nodes is turned off",
    "NCCL_PXN_DISABLE": "GPUs are kept from sending by the GPU next to a NIC",
    "NCCL_NET_GDR_LEVEL": "how far from a NIC GPUDirect RDMA is used",
}


@dataclass(frozen=True)
class _Idea:
    """A change that may bring something, and the nodes as they would be with it. `of_links`: only what the links carry
    counts, in large messages.
    """

    change: str
    nodes: tuple[str, ...]
    reason: str
    case: Case
    fix: str = ""
    of_links: bool = False


def changes_of(cluster: Cluster, case: Case, now: Sequence[OpPrediction], sizes: Sequence[int]) -> Iterator[Change]:
    """Yield the changes that make some operation faster at some size, the best first."""
    found: dict[tuple[str, float], Change] = {}
    for idea in _ideas(cluster, case):
        for change in _gain(idea, now, sizes):
            found.setdefault((idea.reason, change.after), change)  # of two that bring the same the first one is smaller
    yield from sorted(found.values(), key=_share, reverse=True)


def _gain(idea: _Idea, now: Sequence[OpPrediction], sizes: Sequence[int]) -> Iterator[Change]:
    """Yield the change with its best gain, at the largest size that gains nearly as much."""
    rows: list[Change] = []
    for one in now:
        then = predicted(idea.case, one.op, sizes)
        for row, other in zip(one.rows, then.rows, strict=True):
            if other.busbw and (row.size >= LARGE or not idea.of_links):
                change = Change(
                    idea.change, idea.nodes, idea.reason, one.op, row.size, row.busbw, other.busbw, idea.fix
                )
                rows += [change] if change.gain is None or change.gain > LEAST else []
    if rows:
        most = max(_share(change) for change in rows)
        yield max((change for change in rows if _share(change) > 0.9 * most), key=lambda change: change.size)


def _share(change: Change) -> float:
    """Return how many times as fast it is; where nothing is known of now, it counts as no gain, and comes last."""
    return 1 + (change.gain or 0.0)


def _ideas(cluster: Cluster, case: Case) -> Iterator[_Idea]:
    yield from _unset(cluster, case)
    yield from _nics(cluster, case)
    usual = tuple({port.name: port for part in case.values() for port in part.ports}.values())
    links = {node: part.hardware.pcie for node, part in case.items() if part.hardware.pcie}
    worse = {node: tuple(port.name for port in narrow) for node, narrow in behind(links).items()}
    yield from _repaired(case, "bring up {what}", "it is not Active", lambda _, part: _raised(part, usual))
    yield from _repaired(
        case,
        "reseat {what}",
        "fewer PCIe lanes than on other nodes",
        lambda node, part: _widened(part, worse.get(node, ())),
    )
    yield from _newer(case)


def _unset(cluster: Cluster, case: Case) -> Iterator[_Idea]:
    """Yield each setting that may keep NCCL from something, removed where it is."""
    for name, reason in _RESTRICTING.items():
        nodes = tuple(node for node, part in case.items() if name in part.settings)
        if not nodes:
            continue
        setting = case[nodes[0]].settings[name]
        then = {node: part.set(name, None) if name in part.settings else part for node, part in case.items()}
        if name in ("NCCL_IB_DISABLE", "NCCL_NET"):
            if not _by_hcas(cluster, then) or any(part.ports for part in case.values()):
                continue  # there are none, or another setting keeps it from them, too
            then = {node: replace(part, ports=_chosen(part)) for node, part in then.items()}
        yield _Idea(f"unset {name}", nodes, f"{setting.described}: {reason}", then, setting.set_to("").line)


def _by_hcas(cluster: Cluster, case: Case) -> bool:
    """Return whether NCCL can use HCAs on all of these nodes, as far as NCCL_IB_HCA allows."""
    return rdma_everywhere(logged_in(cluster)) and not any(by_sockets(part.settings) for part in case.values())


def _chosen(part: Part) -> tuple[HcaPort, ...]:
    """Return the ports that NCCL uses on a node with its NCCL_IB_HCA."""
    ports = part.hardware.infiniband.ports if part.hardware.infiniband else ()
    return selected(part.settings[HCA].value if HCA in part.settings else "", ports)


def _nics(cluster: Cluster, case: Case) -> Iterator[_Idea]:
    """Yield the selection of all HCA ports that are for the job."""
    if len(case) == 1 or not _by_hcas(cluster, case):
        return
    hcas, used = logged_in(cluster).facts(InfinibandFacts), sort_ports(logged_in(cluster)).used
    better = {node: active(used[node]) for node in case}
    fewer = tuple(node for node, part in case.items() if set(better[node]) - set(part.ports))
    if not fewer:
        return
    unused = sorted({port.name for node in fewer for port in set(better[node]) - set(case[node].ports)})
    setting = case[fewer[0]].settings[HCA]
    why = "" if all(case[node].ports for node in fewer) else " matches none: data goes by sockets"
    reason = f"{folded(unused)}: not used ({setting.described}{why})"
    then = {node: replace(part, ports=better[node]) for node, part in case.items()}
    value = value_for(port for ports in better.values() for port in ports)
    if all(set(active(hcas[node].ports)) == set(better[node]) for node in case):
        yield _Idea(f"unset {HCA}", fewer, reason, then, setting.set_to("").line)
    elif all(set(selected(value, hcas[node].ports)) == set(better[node]) for node in case):
        yield _Idea(f"{HCA}={value}", fewer, reason, then)
    else:
        yield _Idea(f"{HCA}, of each node its own", fewer, reason, then)


_Repair = Callable[[str, Part], Iterator[tuple[str, Part]]]


def _repaired(case: Case, change: str, reason: str, repair: _Repair) -> Iterator[_Idea]:
    """Yield each device that is repaired alone, where they are few; and all together, for one may hide another."""
    found = [(node, what, then) for node, part in case.items() for what, then in repair(node, part)]
    for node, what, then in found if len(found) <= _FEW else ():
        yield _Idea(change.format(what=what), (node,), reason, {**case, node: then})
    if len(found) > 1:
        nodes = tuple(dict.fromkeys(node for node, _, _ in found))
        what = f"{found[0][1]} and {len(found) - 1} more"
        whole = {node: _all_repaired(node, case[node], repair) for node in nodes}
        yield _Idea(change.format(what=what), nodes, reason, {**case, **whole})


def _all_repaired(node: str, part: Part, repair: _Repair) -> Part:
    while (fixed := next(repair(node, part), None)) is not None:
        part = fixed[1]
    return part


def _raised(part: Part, usual: Sequence[HcaPort]) -> Iterator[tuple[str, Part]]:
    """Yield the node with a port that carries data on other nodes and is not Active here."""
    own = part.hardware.infiniband.ports if part.hardware.infiniband else ()
    rates = {port.name: port.rate for port in usual}
    for port in own if part.ports else ():
        if port.state != "Active" and port.name in rates:
            up = replace(port, state="Active", rate=rates[port.name])
            ports = tuple(up if one is port else one for one in own)
            fixed = replace(part, hardware=replace(part.hardware, infiniband=InfinibandFacts(ports, "prediction")))
            if up in _chosen(fixed):
                yield port.name, replace(fixed, ports=(*part.ports, up))


def _widened(part: Part, worse: Collection[str]) -> Iterator[tuple[str, Part]]:
    """Yield the node with a link at full width, of those that have less than on other nodes: where all are alike, the
    slots are wired so.
    """
    pcie = part.hardware.pcie
    if pcie is None:
        return
    for name in worse:
        if (own := pcie.hcas.get(name)) and _narrow(own[0]):
            yield name, _with(part, replace(pcie, hcas={**pcie.hcas, name: _wide(own)}))
        elif (own := pcie.gpus.get(name)) and _narrow(own[0]):
            yield f"the GPU at {name}", _with(part, replace(pcie, gpus={**pcie.gpus, name: _wide(own)}))


def _narrow(link: PcieLink) -> bool:
    return bool(link.width and link.most_width and link.width < link.most_width)


def _wide(links: Sequence[PcieLink]) -> tuple[PcieLink, ...]:
    own, *above = links
    return (replace(own, width=own.most_width), *above)


def _with(part: Part, pcie: PcieFacts) -> Part:
    return replace(part, hardware=replace(part.hardware, pcie=pcie))


def _newer(case: Case) -> Iterator[_Idea]:
    """Yield the newest release of NCCL whose rules are known. Releases differ in what they assume of small messages,
    and that makes none faster.
    """
    newest = ".".join(map(str, NEWEST))
    old = tuple(node for node, part in case.items() if part.version and release_of(part.version) < NEWEST)
    if len(old) == len(case):
        then = {node: replace(part, version=newest) for node, part in case.items()}
        yield _Idea(f"NCCL {newest}", old, f"instead of {case[old[0]].version}", then, of_links=True)
