"""What to do next: restart the job, mend something first, or look. A closed list, as data."""

from __future__ import annotations

from enum import Enum

from ncheck.lazy_dataclass import dataclass


class Action(str, Enum):
    """What to do.

    `restart`: start the job again, on the same nodes. `restart-without`: start it again without the nodes of the step.
    `fix-first`: mend it, or the same happens again. `stop`: a second start must fail in the same place, and only a
    change of the program or of its command helps. `reboot`: reboot the nodes of the step. `drain`: take them away from
    the scheduler. `reset-gpu`: reset the GPU on them. `ticket`: report it to those who repair the machine or the
    network. `look`: what is known does not decide.
    """

    RESTART = "restart"
    RESTART_WITHOUT = "restart-without"
    FIX_FIRST = "fix-first"
    STOP = "stop"
    REBOOT = "reboot"
    DRAIN = "drain"
    RESET_GPU = "reset-gpu"
    TICKET = "ticket"
    LOOK = "look"


@dataclass(frozen=True)
class NextStep:
    """The next step after a diagnosis or a finding.

    action: What to do.
    nodes: The nodes that it is about; of restart-without, those to leave out. Empty if it is about no node by itself.
    confidence: 0 to 1: how sure it is that this is the right step.
    """

    action: Action
    nodes: tuple[str, ...] = ()
    confidence: float = 0.0
