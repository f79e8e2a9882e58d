"""The kernel reported an error of a processor or of memory

## What it finds
Lines in the kernel log since boot about errors that the hardware could not correct: machine checks with the bit for
"uncorrected", EDAC lines with "UE", pages that the kernel gave up for their memory, and reports of the firmware
("Hardware Error") that are fatal or recoverable, also those that it kept from before this boot. A machine check without
an exception may be from before this boot, too. A storm of corrected errors counts. Single corrected errors,
"Machine check events logged", and a processor that slowed down because it was hot do not. Only root can read the kernel
log on a default machine (--sudo).

## Why it matters
The next such error can stop the node, and with it the job. A storm of corrected errors slows the machine, and often
comes before one that cannot be corrected. Lost memory is an error, the rest is a warning.

## What to type
`sudo journalctl -k -b --no-pager | grep -Ei 'machine check|hardware error|edac'` shows the messages with their times,
`sudo ras-mc-ctl --errors` what rasdaemon has decoded, and `sudo ipmitool sel list` what the board has noted. Have the
part exchanged that they name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.hardware_errors import MEMORY_ERROR
from ncheck.facts.hardware_log import CORRECTED, MEMORY, HardwareLogFacts
from ncheck.facts.kernel_log import Trouble, last_at


@node_check("NC656", Severity.ERROR, HardwareLogFacts, hardware=True, next_step="ticket")
def machine_check_reported(node: NodeView) -> Iterator[Problem]:
    log = node[HardwareLogFacts]
    for one in log.uncorrected:
        problem = _problem(f"the kernel reported errors of {one.of} that could not be corrected", one)
        memory = one.of == MEMORY
        yield replace(problem, severity=None, follows=MEMORY_ERROR) if memory else problem
    for one in log.earlier:
        yield _problem(f"the firmware has kept an error of {one.of} from before this boot", one)
    for one in log.storms:
        yield _problem(f"the kernel reported a storm of {one.of}", one)


def _problem(message: str, trouble: Trouble) -> Problem:
    lines = "1 line" if trouble.lines == 1 else f"{trouble.lines} lines"
    return Problem(
        f"{message} ({lines}){last_at(trouble.last)}",
        "sudo journalctl -k -b --no-pager | grep -Ei 'machine check|hardware error|edac|memory failure|storm'",
        tuple({trouble.first: "", trouble.last: ""}),
        look=True,
        summary=f"{'a storm of ' if trouble.of == CORRECTED else 'errors of '}{trouble.of}",
        severity=Severity.WARNING,
    )
