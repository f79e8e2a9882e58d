"""What a prompt finds: a shell that gave no answer is no fault of the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.mpi_daemon import EarlyReturn
from ncheck.facts.prompt import PROMPT, PromptFacts, prompt
from ncheck.model.evidence import Evidence, Reply, Source, Status
from ncheck.model.fact import Absent

Answered = Callable[[Mapping[Source, Reply]], Evidence]
SAID: dict[str, Any] = {
    "shell": "/bin/bash", "error": "", "python": "/opt/conda/bin/python3", "frameworks": ["torch"], "libraries": "/a",
    "start_up": {"file": "~/.bashrc", "line": 2, "text": "return"},
}  # fmt: skip


def test_a_prompt_is_read(answered: Answered) -> None:
    assert prompt(answered({PROMPT: Reply(Status.OK, value=SAID)})) == PromptFacts(
        "/bin/bash", "/opt/conda/bin/python3", ("torch",), "/a", EarlyReturn("~/.bashrc", 2, "return")
    )


def test_a_shell_that_gave_no_answer_and_a_node_without_a_reason_to_ask_have_none(answered: Answered) -> None:
    hung = {**SAID, "error": "ended because of its time limit", "python": "", "frameworks": []}
    replies = (Reply(Status.OK, value=hung), Reply(Status.MISSING, "no GPU"))
    assert [prompt(answered({PROMPT: reply})) for reply in replies] == [
        Absent("/bin/bash -lic gave no answer: ended because of its time limit"), Absent("no GPU"),
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["python3", "--flush", "/opt/\x1b[2J", "/" + "x" * 5000])
def test_what_is_no_path_is_no_fact(answered: Answered, path: str) -> None:
    with pytest.raises(ValueError, match="is not an absolute path"):
        prompt(answered({PROMPT: Reply(Status.OK, value={**SAID, "python": path})}))
