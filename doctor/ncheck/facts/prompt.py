"""Which Python a person gets at a prompt on a node, where the one that a launcher gets has no framework."""

from __future__ import annotations

from typing import Annotated

from ncheck.decode import Key, Path, PathOrEmpty, Words
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact, exempt_in_job, trouble
from ncheck.facts.mpi_daemon import EarlyReturn
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Reply, Status
from ncheck.model.fact import Absent, Unread

_LONGEST_PATH = 4096


def _cut(path: str) -> str:
    return path[:_LONGEST_PATH]


@dataclass(frozen=True)
class PromptFacts:
    """What an interactive login shell finds. `python`: "" for none; `frameworks` that are installed beside it;
    `libraries`: its LD_LIBRARY_PATH. `early_return`: the line of ~/.bashrc after which a launcher's shell reads
    nothing. `error`: why the shell gave no answer.
    """

    shell: Path
    python: PathOrEmpty
    frameworks: tuple[str, ...] = ()
    libraries: Annotated[str, _cut] = ""
    early_return: Annotated[EarlyReturn | None, Key("start_up")] = None
    error: Words = ""


PROMPT = Answer("prompt", shape=PromptFacts, slow=True)


def _reason(answer: Answer, reply: Reply) -> Unread | Absent | None:
    return Absent(reply.reason) if reply.status is Status.MISSING else trouble(answer, reply)


@reading(PROMPT, _reason)
def prompt(answer: PromptFacts) -> PromptFacts | Absent:
    """Read the answer. A shell that needs a terminal gives none, and no job needs one."""
    return Absent(f"{answer.shell} -lic gave no answer: {answer.error}") if answer.error else answer


FACTS = (Fact(PromptFacts, (PROMPT,), prompt, exempt=exempt_in_job),)
