"""What comes after a try that failed: each row is a whole situation, and the action with its sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.model.next_step import Action
from ncheck.retry.plan import Again, End, Limits, Proof, Prove, Try, next_action

FOUR = ("n01", "n02", "n03", "n04")
GPU = Try(FOUR, Action.RESTART_WITHOUT, "gpu_fault", "a GPU failed", at_fault=("n03",), ranks=(2,))
PORT = Try(FOUR, Action.RESTART, "port_in_use", "another process uses the port")
GUILTY = {"n03": Proof(proved=True, reason="n03 fails with n[01-02], which pass together")}
NETWORK = {"n03": Proof(proved=False, reason="n[01-02] fail together, too")}
TWICE = Limits(2)


@pytest.mark.parametrize(("tries", "limits", "spares", "proofs", "action"), [
    # nothing speaks against a second start
    ([PORT], TWICE, (), {},
     Again(FOUR, "restart on the same nodes: another process uses the port")),
    ([Try(FOUR)], TWICE, (), {},
     Again(FOUR, "restart on the same nodes: the log shows no cause")),
    # it must fail in the same way, or nobody knows
    ([replace(PORT, advice=Action.STOP, meaning="TypeError: x", ranks=(3,))], TWICE, (), {},
     End("not restarted: a second start would fail in the same way: TypeError: x (rank 3)")),
    ([replace(PORT, advice=Action.FIX_FIRST, fix="ulimit -l unlimited")], TWICE, (), {},
     End("not restarted: this must be fixed first: ulimit -l unlimited")),
    ([replace(PORT, advice=Action.FIX_FIRST)], TWICE, (), {},
     End("not restarted: this must be fixed first: another process uses the port")),
    ([replace(PORT, advice=Action.LOOK)], TWICE, (), {},
     End("not restarted: the log does not show whether a second start can succeed: another process uses the port")),
    # a signal or a time limit is no failure of a node, whatever the log says of one
    ([replace(GPU, ended="it was ended by SIGTERM")], TWICE, ("n05",), GUILTY,
     End("not restarted: it was ended by SIGTERM")),
    # proof before exclusion, with partners that were never named themselves
    ([GPU], TWICE, ("n05",), {}, Prove("n03", ("n01", "n02"))),
    ([replace(GPU, at_fault=("n01",), cause="x"), GPU], TWICE, ("n05",), {}, Prove("n03", ("n02", "n04"))),
    ([replace(GPU, at_fault=("n03", "n04"))], TWICE, (), GUILTY, Prove("n04", ("n01", "n02"))),
    ([GPU], TWICE, ("n05",), GUILTY,
     Again(("n01", "n02", "n05", "n04"),
           "restart, n05 takes the place of n03: n03 fails with n[01-02], which pass together")),
    ([GPU], TWICE, ("n05",), NETWORK,
     Again(FOUR, "restart on the same nodes, nobody is excluded: n[01-02] fail together, too")),
    ([replace(GPU, at_fault=())], TWICE, ("n05",), {},
     Again(FOUR, "restart on the same nodes: a GPU failed (rank 2), and the log names no node of the job")),
    ([replace(GPU, nodes=("n03", "n04"))], TWICE, (), {},
     Again(("n03", "n04"), "restart on the same nodes: nobody is excluded without proof, and it needs 2 other nodes to "
           "compare n03 with")),
    ([replace(GPU, nodes=("n03", "n04"))], TWICE, ("n05",), {}, Prove("n03", ("n04", "n05"))),
    ([replace(GPU, at_fault=("n02", "n03", "n04"))], TWICE, ("n05", "n06"), {},
     Again(FOUR, "restart on the same nodes, nobody is excluded: 3 of 4 nodes are named, so it is not the fault of one "
           "node: a GPU failed (n[02-04])")),
    # no spare: the size of the job changes only where --shrink allows it
    ([GPU], TWICE, (), GUILTY,
     End("not restarted: no spare for n03: name one with --spare, or allow fewer nodes with --shrink (n03 fails with "
         "n[01-02], which pass together)")),
    ([GPU], Limits(2, shrink=True), (), GUILTY,
     Again(("n01", "n02", "n04"),
           "restart, without n03, on 3 nodes: n03 fails with n[01-02], which pass together")),
    ([replace(GPU, nodes=("n03",))], Limits(2, shrink=True), (), GUILTY,
     End("not restarted: no spare for n03: name one with --spare (n03 fails with n[01-02], which pass together)")),
    # the spares go to the first nodes of the job, whatever the order of the log
    ([replace(GPU, at_fault=("n04", "n03"))], Limits(2, shrink=True), ("n05",), GUILTY | {"n04": GUILTY["n03"]},
     Again(("n01", "n02", "n05"),
           "restart, n05 takes the place of n03, without n04, on 3 nodes: n03 fails with n[01-02], which pass "
           "together")),
    # the end of all patience
    ([GPU, PORT, PORT], TWICE, (), {},
     End("not restarted: it was started 3 times (--retry 2): another process uses the port")),
    ([PORT, PORT], Limits(9), (), {}, Again(FOUR, "restart on the same nodes: another process uses the port")),
    ([PORT, PORT, PORT], Limits(9), (), {},
     End("not restarted: 3 tries ended in the same way: another process uses the port")),
    ([GPU, replace(GPU, at_fault=("n02",)), GPU], Limits(9), (), GUILTY | NETWORK,
     Again(FOUR, f"restart on the same nodes, nobody is excluded: {NETWORK['n03'].reason}")),
    ([replace(PORT, step=(0, 500)), replace(PORT, cause="x", step=(0, 500))], TWICE, (), {},
     End("not restarted: no progress: the try before came to step 500, this one to step 500")),
    ([replace(PORT, step=(1, 20)), replace(PORT, step=(2, 10))], TWICE, (), {},
     Again(FOUR, "restart on the same nodes: another process uses the port")),
    ([replace(PORT, step=(2, 20)), replace(PORT, step=(2, 10))], TWICE, (), {},
     End("not restarted: no progress: the try before came to epoch 2, step 20, this one to epoch 2, step 10")),
    ([replace(GPU, step=(0, 500)), replace(PORT, nodes=("n01", "n02", "n05", "n04"), step=(0, 3))], TWICE, (), {},
     Again(("n01", "n02", "n05", "n04"), "restart on the same nodes: another process uses the port")),
    ([replace(PORT, step=(0, 5)), PORT], TWICE, (), {},
     Again(FOUR, "restart on the same nodes: another process uses the port")),
])  # fmt: skip
def test_each_situation_has_one_action(
    tries: list[Try],
    limits: Limits,
    spares: tuple[str, ...],
    proofs: dict[str, Proof],
    action: Prove | Again | End,
) -> None:
    assert next_action(tries, limits, spares, proofs) == action
