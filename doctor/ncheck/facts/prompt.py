"""Which Python a person gets at a prompt on a node, where the one that a launcher gets has no framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import LONGEST, Fact, exempt_in_job, trouble
from ncheck.facts.mpi_daemon import EarlyReturn, EarlyReturnAnswer
from ncheck.facts.shapes import absolute_path
from ncheck.model.evidence import Answer, Evidence, Status
from ncheck.model.fact import Absent, Read


@dataclass(frozen=True)
class PromptFacts:
    """What an interactive login shell finds: `python`, "" for none, the frameworks installed beside it, and its
    LD_LIBRARY_PATH. `early_return`: the line of ~/.bashrc after which a launcher's shell reads nothing.
    """

    shell: str
    python: str
    frameworks: tuple[str, ...] = ()
    libraries: str = ""
    early_return: EarlyReturn | None = None


class PromptAnswer(TypedDict):
    """`error`: why the shell gave no answer."""

    shell: str
    error: str
    python: str
    frameworks: list[str]
    libraries: str
    start_up: EarlyReturnAnswer | None


PROMPT = Answer("prompt", shape=PromptAnswer)


_LONGEST_PATH = 4096


def prompt(evidence: Evidence) -> Read[PromptFacts]:
    """Read the answer. A shell that needs a terminal gives none, and no job needs one."""
    reply = evidence.reply(PROMPT)
    if reply.status is Status.MISSING:
        return Absent(reply.reason)
    if reply.status is Status.UNANSWERED and evidence.recorded:
        return Absent("the recording lacks what a prompt finds")
    if why := trouble(PROMPT, reply):
        return why
    answer = cast("PromptAnswer", reply.value)
    if answer["error"]:
        return Absent(f"{answer['shell']} -lic gave no answer: {answer['error'][:LONGEST]}")
    early = answer["start_up"]
    return PromptFacts(
        shell=absolute_path(answer["shell"]),
        python=absolute_path(answer["python"]) if answer["python"] else "",
        frameworks=tuple(answer["frameworks"]),
        libraries=answer["libraries"][:_LONGEST_PATH],
        early_return=None if early is None else EarlyReturn(early["file"], early["line"], early["text"]),
    )


FACTS = (Fact(PromptFacts, (PROMPT,), prompt, exempt=exempt_in_job),)
