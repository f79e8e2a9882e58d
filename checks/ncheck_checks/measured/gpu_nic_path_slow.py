"""The path between GPU and NIC is slow

## What it finds
With `--nic-test`: nodes whose GPUs fail, or stay below 0.85 of the expected value, while NCCL may use neither NVLink
nor shared memory (NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1), so that all data crosses the NICs of the node. Expected is
0.84 of the sum of the NICs, divided by the ranks: published acceptance tests ask for more than 0.85 of that. Where
ib_write_bw is installed, also HCA ports that write less than 0.9 of their rate to themselves (0.875 at 200 Gb/s), from
the memory of the nearest GPU if perftest was built with CUDA and GPUDirect RDMA is there.

## Why it matters
The test needs no second node, so what it shows lies in the node or at its own switch: GPUDirect RDMA that is missing,
access control (ACS) that leads the data through the processor, a narrow PCIe slot, a NIC or cable that is slow. Every
exchange with other nodes takes this path.

## What to type
`sudo lspci -vv` on the named node shows ACSCtl of the switches and LnkSta of GPUs and NICs, `nvidia-smi topo -m` which
are near each other. Where each NIC of a node is in a network of its own, they cannot reach each other, and this test
fails on a healthy node: leave it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.probe.expected import expected
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS, NodeHardware, hardware_in
from ncheck.probe.node_result import Method, Stage
from ncheck.probe.rails import MET_BY_TCP, gbits, loopback_share
from ncheck.probe.results import Collective, collectives
from ncheck.probe.standing import LOW
from ncheck.text import printable


@cluster_check("NC743", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS, alone=True, explains=SLOW_NETWORK)
def gpu_nic_path_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    probed = cluster.facts(ProbeFacts)
    ran = [one for one in collectives(probed) if one.step.stage is Stage.NICS]
    tested = {node for one in ran for node in one.step.group}
    hardware = hardware_in(cluster) if ran else {}
    for one in ran:
        by_nccl = one.step.method is Method.NICS
        yield from _judged(one, hardware) if by_nccl else _port_judged(one, cluster.facts(InfinibandFacts))
    for node, facts in probed.items():
        for skipped in facts.skipped:
            if skipped.step.stage is Stage.NICS:
                tested.add(node)
                yield Inconclusive(f"its NICs were not tested by themselves: {skipped.why}", (node,))
    if others := tuple(node.name for node in cluster if node.name not in tested):
        yield NotApplicable("the NICs were not tested by themselves (--nic-test)", others)


_LOOK = "sudo lspci -vv"


def _judged(one: Collective, hardware: Mapping[str, NodeHardware]) -> Iterator[Problem | Inconclusive]:
    """Yield what is wrong with the path of one node, or why that is not known."""
    (node,) = one.step.group
    failure = one.failures.get(node)
    if failure and not failure.late:
        words = f"{node}: by its NICs alone its GPUs fail in {failure.step}: {printable(failure.words)}"
        yield Problem(words, _LOOK, nodes=(node,), look=True, summary="GPUs fail by their NICs alone")
        return
    should = expected(one, hardware)
    if one.busbw is None or should.busbw is None:
        why = failure.words if failure else "no result from it" if one.busbw is None else ", ".join(should.unknown)
        yield Inconclusive(f"what its GPUs reach by its NICs alone: {why}", (node,))
    elif one.busbw < LOW * should.busbw:
        reached = f"{one.busbw:.3g} of {should.busbw:.3g} GB/s ({should.limited_by})"
        yield Problem(
            f"{node}: by its NICs alone its GPUs reach {reached}", _LOOK, should.lowered_by, nodes=(node,), look=True,
            summary="GPUs are slow by their NICs alone",
        )  # fmt: skip


def _port_judged(one: Collective, infiniband: Mapping[str, InfinibandFacts]) -> Iterator[Problem | Inconclusive]:
    """Yield what is wrong with one HCA port that wrote to itself, or why that is not known."""
    (node,) = one.step.group
    result, failure = one.results.get(node), one.failures.get(node)
    port = result.planned[0] if result and result.planned else "one of its ports"
    memory = f" from the memory of {result.used[0]}" if result and result.used else ""
    share = loopback_share(one, infiniband)
    if failure and not failure.late and failure.step != MET_BY_TCP:
        words = f"{node} {port} fails to write to itself: {printable(failure.words)}"
        yield Problem(words, _LOOK, nodes=(node,), look=True, summary="HCAs fail to write to themselves")
    elif share is None or one.largest is None:
        why = printable(failure.words) if failure else "no result, or an unknown rate"
        yield Inconclusive(f"what {port} writes to itself: {why}", (node,))
    elif share < 1:
        rate = gbits(one.largest)
        reached = f"{rate:.0f} Gb/s{memory} (minimum {rate / share:.0f})"
        yield Problem(
            f"{node} {port} writes to itself with {reached}", _LOOK, nodes=(node,), look=True,
            summary="HCAs are slow by themselves",
        )  # fmt: skip
