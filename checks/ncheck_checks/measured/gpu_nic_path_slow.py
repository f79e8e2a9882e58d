"""The path between GPU and NIC is slow

## What it finds
With `--nic-test`: nodes whose GPUs fail, or stay below 0.85 of the expected value, while NCCL may use neither NVLink
nor shared memory (NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1), so that all data crosses the NICs of the node. Expected is
0.84 of the sum of the NICs, divided by the ranks: published acceptance tests ask for more than 0.85 of that.

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
from ncheck.probe.expected import expected
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS, NodeHardware, hardware_in
from ncheck.probe.node_result import Method
from ncheck.probe.results import Collective, collectives
from ncheck.probe.standing import LOW
from ncheck.text import printable


@cluster_check("NC743", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS, alone=True, explains=SLOW_NETWORK)
def gpu_nic_path_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    probed = cluster.facts(ProbeFacts)
    ran = [one for one in collectives(probed) if one.step.method is Method.NICS]
    tested = {node for one in ran for node in one.step.group}
    hardware = hardware_in(cluster) if ran else {}
    for one in ran:
        yield from _judged(one, hardware)
    for node, facts in probed.items():
        for skipped in facts.skipped:
            if skipped.step.method is Method.NICS:
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
