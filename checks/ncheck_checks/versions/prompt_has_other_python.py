"""A prompt has the job's Python, and a launcher gets another one

## What it finds
Nodes with GPUs on which a non-interactive ssh login finds a python3 without any framework, while the shell that a
person gets there (an interactive login shell) finds one with torch, tensorflow, jax or another. The message names the
line of ~/.bashrc that returns in non-interactive shells, before conda or a module is loaded. Not judged with
`--python`, `--setup` or an active environment, which choose the job's Python.

## Why it matters
mpirun, horovodrun, deepspeed and pdsh start the ranks in a shell that is neither interactive nor a login shell. There
the job ends with "ModuleNotFoundError: No module named 'torch'", or loads other libraries, although the same command
works at the prompt.

## What to type
`ncheck --python /path/to/python nodes.txt` with the Python of the prompt, and the same path in the launch command. Or
move the lines that set PATH in ~/.bashrc above the line that returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, NodeView, Problem, Severity, node_check
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.prompt import PromptFacts


@node_check("NC218", Severity.WARNING, PromptFacts, InterpreterFacts)
def prompt_has_other_python(node: NodeView) -> Iterator[Problem]:
    prompt, python = node[PromptFacts], node[InterpreterFacts]
    if prompt.frameworks and prompt.python != python.path and not python.frameworks:
        early = prompt.early_return
        why = f": line {early.line} of {early.file} returns first: {early.text}" if early else ""
        yield Problem(
            f"a prompt finds {prompt.python} with {', '.join(prompt.frameworks)}, and a launcher {python.path} "
            f"without a framework{why}",
            f"ncheck --python {quote(prompt.python)} nodes.txt",
            (f"LD_LIBRARY_PATH of the prompt: {prompt.libraries}",) if prompt.libraries else (),
            where=HERE, look=True, summary="a launcher gets another Python",
        )  # fmt: skip
