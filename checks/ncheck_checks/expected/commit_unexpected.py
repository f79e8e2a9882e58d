"""The job's code is not at the expected commit

## What it finds
Nodes where the folder of `--workdir` is not at the git commit of `--expect commit=abc1234` or of `[expect]` in
ncheck.toml, or has files that were changed since that commit. The first seven digits of a commit are enough.

## Why it matters
Nodes that agree can agree on the wrong code: a shared folder at another branch looks the same from everywhere. A result
cannot be reproduced from a commit that did not run.

## What to type
`git -C DIR status --short --branch` on the named nodes, then `git -C DIR checkout COMMIT`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.code import CodeFacts
from ncheck.facts.expected import ExpectedFacts

_MOST = 5  # files that the message names


@node_check("NC906", Severity.ERROR, ExpectedFacts, also=(CodeFacts,))
def commit_unexpected(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    expected, code = node[ExpectedFacts].commit, node.maybe(CodeFacts)
    if expected is None:
        yield NotApplicable("no commit is expected: --expect commit=abc1234")
    elif not isinstance(code, CodeFacts):
        yield Inconclusive(code.reason if isinstance(code, (Absent, Unread)) else "the code was not read")
    elif not code.exists:
        yield NotApplicable(f"{code.folder} does not exist: see NC223")
    else:
        look, summary = f"git -C {quote(code.folder)} status --short --branch", "unexpected commit"
        if not code.commit and code.unasked:
            yield Inconclusive(f"the commit is unknown: {code.unasked}")
        elif not code.commit.startswith(expected):
            yield Problem(f"{code.folder}: {code.described}, expected {expected}", look, look=True, summary=summary)
        elif code.changed:
            files = ", ".join(sorted(code.changed)[:_MOST])
            message = f"{code.folder} is at {code.described}, with {len(code.changed)} changed files: {files}"
            yield Problem(message, look, look=True, summary=summary)
        elif code.unasked:
            yield Inconclusive(f"whether files were changed since {expected} is unknown: {code.unasked}")
