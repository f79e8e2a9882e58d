"""The job's code on a node: the folder of --workdir, its git commit, and a digest of its source files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict, cast

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.facts.shapes import absolute_path
from ncheck.model.evidence import Answer, Evidence, Status
from ncheck.model.fact import Absent, Read

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class CodeFacts:
    """One folder of code. `commit` and `branch` are "" without git, or where .git could not be read.

    `changed` has the files that git calls changed, with digests of their contents; `unasked` says why git did not tell.
    `digest` is that of the contents of all source files, `cut` why it does not cover them all; `listed` has the digest
    of each of these files, unless they are too many.
    """

    folder: str
    exists: bool = True
    commit: str = ""
    branch: str = ""
    changed: Mapping[str, str] = field(default_factory=dict)
    unasked: str = ""
    digest: str = ""
    cut: str = ""
    listed: Mapping[str, str] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Whether git says that nothing was changed since the commit."""
        return bool(self.commit) and not self.changed and not self.unasked

    @property
    def described(self) -> str:
        """Return "97ff6cfd9c86 (main)", "no git commit" without one."""
        branch = f" ({self.branch})" if self.branch else ""
        return f"{self.commit[:12]}{branch}" if self.commit else "no git commit"


class GitAnswer(TypedDict):
    """What .git and git say; `error`: why git did not say what was changed."""

    commit: str
    branch: str
    changed: dict[str, str]
    error: str


class TreeAnswer(TypedDict):
    """Digests of source files, in hexadecimal digits."""

    digest: str
    cut: str
    listed: dict[str, str]


class CodeAnswer(TypedDict):
    """The folder; `git` is null without a repository, `tree` without a folder."""

    folder: str
    exists: bool
    git: GitAnswer | None
    tree: TreeAnswer | None


CODE = Answer("code", shape=CodeAnswer)


_HEX = re.compile(r"[0-9a-f]{0,64}")


def code(evidence: Evidence) -> Read[CodeFacts]:
    """Read the answer. Raises ValueError for a commit or a digest that is none."""
    reply = evidence.reply(CODE)
    if reply.status is Status.UNANSWERED and evidence.recorded:
        return Absent("the recording lacks it: no --workdir was given then")
    if why := no_answer(CODE, reply):
        return why
    answer = cast("CodeAnswer", reply.value)
    folder, git, tree = absolute_path(answer["folder"]), answer["git"], answer["tree"]
    if not answer["exists"]:
        return CodeFacts(folder, exists=False)
    if tree is None:
        raise ValueError("a folder without a digest")
    commit, changed = (git["commit"], git["changed"]) if git else ("", {})
    digests = (commit, tree["digest"], *tree["listed"].values(), *changed.values())
    if not all(_HEX.fullmatch(text) for text in digests):
        raise ValueError("a commit or a digest that is none")
    return CodeFacts(
        folder=folder,
        commit=commit,
        branch=git["branch"][:LONGEST] if git else "",
        changed=changed,
        unasked=git["error"][:LONGEST] if git else "",
        digest=tree["digest"],
        cut=tree["cut"],
        listed=tree["listed"],
    )


def _questions(cluster: Cluster, settings: Settings, _: float) -> Questions:
    asked = Answer(CODE.name, arguments={"folder": settings.workdir or ""}, shape=CodeAnswer)
    return dict.fromkeys(cluster.names, (asked,))


def _exempt(cluster: Cluster, settings: Settings) -> Mapping[str, str]:
    return {} if settings.workdir else dict.fromkeys(cluster.names, "no folder of code was named: --workdir DIR")


FACTS = (Fact(CodeFacts, (CODE,), code, questions=_questions, exempt=_exempt),)
