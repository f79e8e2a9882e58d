"""The job's code on a node: the folder of --workdir, its git commit, and a digest of its source files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import Path, Words
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer

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


_HEX = expression(r"[0-9a-f]{0,64}")


def _hexadecimal(text: str) -> str:
    if not _HEX.fullmatch(text):
        raise ValueError("no commit, and no digest")
    return text


Digest = Annotated[str, _hexadecimal]


@dataclass(frozen=True)
class Git:
    """What .git and git say; `error`: why git did not say what was changed."""

    commit: Digest = ""
    branch: Words = ""
    changed: Mapping[str, Digest] = field(default_factory=dict)
    error: Words = ""


@dataclass(frozen=True)
class SourceTree:
    """Digests of source files."""

    digest: Digest
    cut: str
    listed: Mapping[str, Digest]


@dataclass(frozen=True)
class CodeAnswer:
    """The folder; `git` is null without a repository, `tree` without a folder."""

    folder: Path
    exists: bool
    git: Git | None
    tree: SourceTree | None


CODE = Answer("code", shape=CodeAnswer, slow=True)


@reading(CODE)
def code(answer: CodeAnswer) -> CodeFacts:
    """Read the answer. Raises ValueError for a folder without a digest."""
    git, tree = answer.git or Git(), answer.tree
    if not answer.exists:
        return CodeFacts(answer.folder, exists=False)
    if tree is None:
        raise ValueError("a folder without a digest")
    return CodeFacts(
        answer.folder, commit=git.commit, branch=git.branch, changed=git.changed, unasked=git.error,
        digest=tree.digest, cut=tree.cut, listed=tree.listed,
    )  # fmt: skip


def _questions(cluster: Cluster, settings: Settings, _: float) -> Questions:
    asked = replace(CODE, arguments={"folder": settings.workdir or ""})
    return dict.fromkeys(cluster.names, (asked,))


def _exempt(cluster: Cluster, settings: Settings) -> Mapping[str, str]:
    return {} if settings.workdir else dict.fromkeys(cluster.names, "no folder of code was named: --workdir DIR")


FACTS = (
    Fact(
        CodeFacts,
        (CODE,),
        code,
        questions=_questions,
        exempt=_exempt,
        unrecorded="the recording lacks it: no --workdir was given then",
    ),
)
