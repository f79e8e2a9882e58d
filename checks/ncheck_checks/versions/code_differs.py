"""The job's code differs between nodes

## What it finds
With `--workdir DIR`: nodes where DIR is at another git commit than on the other nodes, or where its source files
(Python, C, CUDA, shell, YAML, TOML, ds_config.json) or the files that git calls changed have other contents. The
contents are compared with and without git; times, owners and permissions do not matter. Hidden folders, virtual
environments, __pycache__ and folders that programs write to (checkpoints, logs, outputs, runs, wandb, data ...) are
passed over, unless they hold an `__init__.py`. So are files that git-lfs keeps, and folders that are links.

## Why it matters
Ranks that run other code take part in other collectives: the job hangs in the first all-reduce that only some of them
call (Horovod then prints "Missing ranks"), or it runs on and the results are wrong, without any message. A `git pull`
that was forgotten on one node is enough, or an edit on the node where somebody looked for a fault.

## What to type
`git -C DIR status --short --branch` on the named nodes and on a healthy one. Then the same commit everywhere
(`git -C DIR checkout COMMIT`), or the same files (`rsync -a DIR/ NODE:DIR/`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check, fold, split
from ncheck.facts.code import CodeFacts

_MOST = 5  # files that a message names
_EVIDENCE = 20  # and the evidence


@cluster_check("NC220", Severity.ERROR, CodeFacts)
def code_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    code = {node: own for node, own in cluster.facts(CodeFacts).items() if own.exists}
    commits = split({node: own.commit[:12] for node, own in code.items() if own.commit})
    if commits:
        message = f"the code is at different commits: {commits.summary()}"
        yield Problem(message, _look(code), _changes(code), commits.odd, look=True, summary="the job's code differs")
    alike = {node: own for node, own in code.items() if not (commits and node in commits.odd)}
    if unknown := tuple(node for node, own in alike.items() if own.cut and not own.clean):
        yield Inconclusive(f"the source files were not all compared: {code[unknown[0]].cut}", unknown)
    parted = split({node: own.digest for node, own in alike.items() if not own.cut}) or split(
        {node: str(sorted(own.changed.items())) for node, own in alike.items() if own.commit and not own.unasked}
    )
    if parted:
        files = _files([alike[nodes[0]] for _, nodes in parted.groups])
        named = ", ".join(files[:_MOST]) + (f" and {len(files) - _MOST} more" if len(files) > _MOST else "")
        sides = " and ".join(fold(nodes) for _, nodes in parted.groups)
        message = f"files differ between {sides}: {named or 'too many source files to name those that do'}"
        evidence = (*files[_MOST:_EVIDENCE], *_changes(alike))
        yield Problem(message, _look(alike), evidence, parted.odd, look=True, summary="the job's code differs")


def _look(code: Mapping[str, CodeFacts]) -> str:
    """Return a line that shows more: what git says, or without git a digest of every Python file."""
    own = next(iter(code.values()))
    if own.commit:
        return f"git -C {quote(own.folder)} status --short --branch"
    return f"find {quote(own.folder)} -name '*.py' -exec sha256sum {{}} +"


def _changes(code: Mapping[str, CodeFacts]) -> tuple[str, ...]:
    changed = ((node, sorted(own.changed)) for node, own in code.items() if own.changed)
    return tuple(f"changed since the commit on {node}: {', '.join(files[:_EVIDENCE])}" for node, files in changed)


def _files(sides: list[CodeFacts]) -> list[str]:
    """Return the files whose contents differ, as far as the nodes list them."""
    lists = [{**own.listed, **own.changed} for own in sides]
    names = sorted({name for listed in lists for name in listed})
    return [name for name in names if len({listed.get(name) for listed in lists}) > 1]
