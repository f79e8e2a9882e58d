"""From a diagnosis to the next step: by default what causes.py says, and by the evidence where that decides.

Two mistakes cost most: to stop a job that a second start would have brought through the night, and to leave out a node
that is well. So `stop` needs lines that a second start must print again, and `restart-without` a broken machine that is
named: never the network in between, and never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ncheck.expression import expression
from ncheck.model.next_step import Action, NextStep
from ncheck.parse import xids
from ncheck.parse.xid_details import advised
from ncheck.triage.causes import CAUSES, SYMPTOM
from ncheck.triage.certainty import NAMED, SURE
from ncheck.triage.diagnosis import Diagnosis

_BY_CAUSE = 0.9  # what is right after most failures of a cause; a line that decides is worth 1

# What a second start prints again: the program or its command line has to change.
# TypeError: forward() got an unexpected keyword argument 'mask'
# train.py: error: unrecognized arguments: --lr-x
_AGAIN = expression(
    r"\b(?:Type|Name|Attribute|UnboundLocal|Syntax|Indentation|NotImplemented)Error\b|"
    r": error: (?:unrecognized arguments|the following arguments are required|argument )"
)
# The same, unless it is so on one node alone: there its disk, mount or image differs.
# FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'
# bash: line 1: torchrunn: command not found
_MISSING = expression(
    r"\b(?:ModuleNotFound|Import|FileNotFound|IsADirectory|NotADirectory|Permission)Error\b|can't open file|"
    r"(?:command not found|No such file or directory|Permission denied)\s*$|the specified (?:executable|application)"
)
# What programs make for a while, and another process removes.
# FileNotFoundError: [Errno 2] No such file or directory: '/dev/shm/nccl-WU88OE'
_PASSING = expression(r"/(?:shm|tmp)/|/\.cache/|\.lock\b|\.tmp\b")
# GPU 0000:3b:00.0 has fallen off the bus, or: Unable to determine the device handle ...: GPU is lost.
_OFF_THE_BUS = expression(r"fallen off the bus|GPU is lost")
# srun: error: Node failure on node03
# Nov 22 16:14:51 node03 kernel: nvme nvme0: controller is down; will reset
_ACCUSED = r"Node failure on {0}(?![\w.-])|(?<![\w.-]){0} kernel: (?!.*(?:lockup|[Rr][Cc][Uu]))"
# with training_args.main_process_first(desc="dataset map pre-processing"):
# Running tokenizer on dataset:  88%|########  | 383700/433643 [29:55<03:25, 2432.70 examples/s]
_WORKS_ALONE = expression(r"(?:main_process|rank_zero|distributed_zero)_first\(|\d%\|")
# NET/IB : Got completion from peer 10.1.0.4<38560> with error 12, opcode 0
# Transport retry count exceeded on mlx5_0:1/IB
_NO_ANSWER = expression(r"completion .{0,120}(?:error|status)[ =:]{1,2}12\b|retry count(?:er)? exceeded|Retry exceeded")

# What NVIDIA says to do at once after an Xid; the later one is done where a GPU had several.
_AFTER_XID: Mapping[xids.Action, Action] = {
    xids.Action.NOTHING: Action.RESTART,
    xids.Action.RESTART: Action.RESTART,
    xids.Action.SUPPORT: Action.RESTART,  # a report, if it returns
    xids.Action.TEST: Action.LOOK,
    xids.Action.UPDATE: Action.FIX_FIRST,
    xids.Action.CABLES: Action.TICKET,
    xids.Action.POWER: Action.TICKET,
    **dict.fromkeys(
        (xids.Action.RESET, xids.Action.MEMORY, xids.Action.LINK, xids.Action.SEAT, xids.Action.PEER,
         xids.Action.VENDOR), Action.RESET_GPU,
    ),
    xids.Action.REBOOT: Action.REBOOT,
}  # fmt: skip
_OF_MACHINES = (Action.TICKET, Action.RESET_GPU, Action.REBOOT)
# What is done where the cause may be another one.
_UNSURE = {Action.STOP: Action.RESTART, **dict.fromkeys((*_OF_MACHINES, Action.RESTART_WITHOUT), Action.LOOK)}


def step_after(found: Diagnosis, *, one_node: bool = False) -> NextStep:
    """Return what to do after a diagnosis. `one_node`: the job has no other node to go on with."""
    action, share = _decided(found)
    if one_node and action is Action.RESTART_WITHOUT:
        action, share = _decided(replace(found, nodes=()))
    if found.confidence < SURE:
        action = _UNSURE.get(action, action)
    if action not in (Action.RESTART, Action.LOOK) and found.confidence < NAMED:
        action = Action.LOOK
    nodes = found.nodes if action in (*_OF_MACHINES, Action.RESTART_WITHOUT) else ()
    return NextStep(action, nodes, round(found.confidence * share, 2))


def _decided(found: Diagnosis) -> tuple[Action, float]:
    """Return what to do, and how sure that is if the diagnosis is right."""
    if found.works:
        return Action.LOOK, _BY_CAUSE  # they may be right to wait
    rule = _RULES.get(found.cause)
    decided = rule(found) if rule else None
    return (decided, 1.0) if decided else (CAUSES.get(found.cause, SYMPTOM).action, _BY_CAUSE)


def _after_crash(found: Diagnosis) -> Action | None:
    lines = [line.text for line in found.evidence if not _PASSING.search(line.text)]
    if found.kind == "memory":
        return Action.FIX_FIRST
    if any(map(_MISSING.search, lines)) and len(found.ranks) != 1:
        return Action.FIX_FIRST if len(found.nodes) == 1 else Action.STOP
    if any(map(_AGAIN.search, lines)) and (len(found.ranks) > 1 or not (found.ranks or found.nodes)):
        return Action.STOP
    return None


def _after_gpu_fault(found: Diagnosis) -> Action | None:
    lines = [line.text for line in found.evidence]
    advice = [_AFTER_XID[one] for one in map(advised, lines) if one]
    advice += [Action.REBOOT for line in lines if _OFF_THE_BUS.search(line)]
    order = list(dict.fromkeys(_AFTER_XID.values()))
    action = max(advice, key=order.index, default=None)
    if (action or Action.RESET_GPU) in _OF_MACHINES and found.nodes:
        return Action.RESTART_WITHOUT
    return action


def _after_node_failure(found: Diagnosis) -> Action | None:
    """Return that a node is left out which a line accuses. Many such lines begin with the node that prints them, and a
    lockup may be a driver's.
    """
    accused = all(
        any(re.search(_ACCUSED.format(re.escape(node)), line.text) for line in found.evidence) for node in found.nodes
    )
    return Action.RESTART_WITHOUT if found.nodes and accused else None


def _after_end(found: Diagnosis) -> Action | None:
    """Return what to do after the scheduler ended the job: whoever cancelled it decides whether it starts again."""
    return Action.LOOK if found.kind == "cancelled" else None


def _after_fabric(found: Diagnosis) -> Action | None:
    """Return what to do where the other side did not answer in time: a link that was down for seconds looks so."""
    return Action.RESTART if any(_NO_ANSWER.search(line.text) for line in found.evidence) else None


def _after_timeout(found: Diagnosis) -> Action | None:
    """Return what to do where one rank works for longer than the others wait: it needs as long the next time."""
    return Action.FIX_FIRST if any(_WORKS_ALONE.search(line.text) for line in found.evidence) else None


def _after_rendezvous(found: Diagnosis) -> Action | None:
    """Return that the logs of the others are to be looked at, where all that is known is that they did not come."""
    return Action.LOOK if found.confidence < SURE else None


_RULES = {
    "rank_crashed": _after_crash,
    "gpu_fault": _after_gpu_fault,
    "node_failed": _after_node_failure,
    "job_ended": _after_end,
    "ib_fabric": _after_fabric,
    "slow_rank_timeout": _after_timeout,
    "rendezvous_misconfig": _after_rendezvous,
}
