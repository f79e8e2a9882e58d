"""The commands that drain the bad nodes in Slurm, and give back the good ones: printed for somebody to read and run,
never run by ncheck.

Only nodes with a fault that is proved to be their own are drained: one of the hardware, or nobody reaches them.
The reason has codes and names of checks and nothing that a node wrote. A node is given back if ncheck has drained it,
by the reason that Slurm shows, and it passed every check of that reason in this run.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TextIO

from ncheck.hostlist import fold
from ncheck.model.report import Report
from ncheck.report.draining import comments, good, reasons

# The reason ends where Slurm adds who wrote it: Reason=ncheck: NC402 ib-port-polling [root@2026-11-26T10:00:00]
_GIVE_BACK = """\
give_back() {
    passed=$1 nodes=$2
    for node in $(scontrol show hostnames "$nodes"); do
        reason=$(scontrol -o show node "$node" | grep -o ' Reason=ncheck: [^[]*') || continue
        case $reason in
            *" more"*) continue ;;
            *": not reached"*) codes=reached ;;
            *) codes=$(echo "${reason#*: }" | tr , '\\n' | awk '{print $1}') ;;
        esac
        [ "$codes" ] || { echo "$node: not given back: its reason names no check" >&2; continue; }
        for code in $codes; do
            case " $passed " in *" $code "*) ;; *) continue 2 ;; esac
        done
        scontrol update nodename="$node" state=resume
    done
}"""


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  a script has no colours
    """Print a command per reason; what is only to be read is a comment."""
    stream.writelines(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield from comments(report)
    for reason, nodes in reasons(report):
        yield shlex.join(("scontrol", "update", f"nodename={fold(nodes)}", "state=drain", f"reason={reason}"))
    if fine := good(report):
        yield "# Give back what ncheck drained before, and what passes now:"
        yield _GIVE_BACK
        yield from (shlex.join(("give_back", codes, fold(nodes))) for codes, nodes in fine)
