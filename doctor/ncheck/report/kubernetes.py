"""The commands that keep new pods from the bad nodes in Kubernetes, and give back the good ones: printed for somebody
to read and run, never run by ncheck.

A node is cordoned, and labelled so that it is known whose work that was: only nodes with that label are uncordoned. The
names are those in the list, which must be the names that Kubernetes has for the nodes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TextIO

from ncheck.model.report import Report
from ncheck.report.draining import REACHED, codes_of, comments, good, reasons

_LABEL = "ncheck-drained"  # its value: the codes, as NC402.NC710
_MOST_CODES = 9  # a label has 63 characters

_GIVE_BACK = f"""\
give_back() {{
    passed=$1; shift
    for node; do
        drained=$(kubectl get node "$node" -o 'jsonpath={{.metadata.labels.{_LABEL}}}') || continue
        [ -n "$drained" ] || continue
        for code in $(echo "$drained" | tr . ' '); do
            case " $passed " in *" $code "*) ;; *) continue 2 ;; esac
        done
        kubectl uncordon "$node" && kubectl label node "$node" {_LABEL}-
    done
}}"""


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  a script has no colours
    """Print two commands per reason; what is only to be read is a comment."""
    stream.writelines(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield from comments(report)
    codes = codes_of(report)
    for reason, nodes in reasons(report):
        yield f"# {reason}"
        yield shlex.join(("kubectl", "cordon", *nodes))
        more = ("more",) if len(codes[nodes[0]]) > _MOST_CODES else ()  # then only a person gives it back
        label = ".".join((*codes[nodes[0]][:_MOST_CODES], *more)) or REACHED
        yield shlex.join(("kubectl", "label", "--overwrite", "node", *nodes, f"{_LABEL}={label}"))
    if fine := good(report):
        yield "# Give back what ncheck cordoned before, and what passes now:"
        yield _GIVE_BACK
        yield from (shlex.join(("give_back", passed, *nodes)) for passed, nodes in fine)
