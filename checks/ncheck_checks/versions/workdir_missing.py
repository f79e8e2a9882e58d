"""The folder of the job's code is missing on a node

## What it finds
Nodes on which the folder of `--workdir DIR`, or of `workdir` in ncheck.toml, does not exist. If it exists and
cannot be read, because permission is missing or its file system does not answer, the check is unknown.

## Why it matters
The launcher starts every rank with the same command in the same folder. Where that is missing, the rank ends at once:
"can't open file 'train.py': No such file or directory", or mpirun says that it "could not change to the working
directory". The other ranks wait until their timeout.

## What to type
`ls -ld DIR` on the named nodes and on a healthy one, and `findmnt -T DIR` on that one: if it lies on a shared file
system there, the others lack that mount. Otherwise copy it: `rsync -a DIR/ NODE:DIR/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.code import CodeFacts


@node_check("NC223", Severity.ERROR, CodeFacts)
def workdir_missing(node: NodeView) -> Iterator[Problem]:
    code = node[CodeFacts]
    if not code.exists:
        yield Problem(
            f"{code.folder} (--workdir) does not exist", f"ls -ld {quote(code.folder)}", look=True,
            summary="the job's folder is missing",
        )  # fmt: skip
