"""The line of shell, under each shell that a node's /bin/sh may be."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
from ncheck.agent import answers
from ncheck.fleet.bootstrap import Bootstrap, agent_blob, bootstrap, cut, module_text, parse_script
from ncheck.fleet.engine import REMOTE_COMMAND

NONCE = "0f3a99bc12d4e5f6"


def shells() -> list[list[str]]:
    """Return the POSIX shells that are here."""
    named = [["dash"], ["bash", "--posix"], ["bash"], ["busybox", "sh"], ["ksh"], ["mksh"], ["zsh", "--emulate", "sh"]]
    return [shell for shell in named if shutil.which(shell[0])]


def answered(shell: list[str], sent: Bootstrap) -> list[str]:
    done = subprocess.run(
        [*shell, "-c", *shlex.split(REMOTE_COMMAND)[3:]],
        input=sent.script.encode() + b"\n" + sent.rest,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.stdout.decode().split("\n")


def greeting(marker: str) -> list[str]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    told = [
        "command ncheck-command",
        "forced ",
        f"host {os.uname().nodename}",
        f"boot {boot}",
        f"net {Path('/proc/self/ns/net').readlink()}",
    ]
    return ["", *(f"{marker} {line}" for line in ("hello", *told, f"uid {os.getuid()}", "end"))]


@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_the_greeting_is_the_same_under_every_shell(shell: list[str]) -> None:
    script = bootstrap(NONCE, None)
    assert answered(shell, script) == [*greeting(script.marker), ""]


@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_the_agent_starts_under_every_shell(shell: list[str]) -> None:
    script = bootstrap(NONCE, 60.0)
    told = answered(shell, script)
    assert told[:-5] == greeting(script.marker)
    assert (told[-5], told[-3]) == (f"{script.marker} started", f"{script.marker} try python3")
    assert told[-4].startswith(f"{script.marker} files ")
    assert told[-2].startswith(f"{script.marker} go 3.")
    assert told[-1] == ""


@pytest.mark.slow
@pytest.mark.parametrize("enter", ["env", "env A=1 sh -c 'exec \"$@\"' sh", "env\n"])
@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_what_is_entered_may_be_any_words_of_shell(shell: list[str], enter: str) -> None:
    script = bootstrap(NONCE, 60.0, enter=enter)
    told = answered(shell, script)
    assert told[len(greeting(script.marker)) :][:2] == [f"{script.marker} started", f"{script.marker} in"]
    assert told[-2] == f"{script.marker} left 0"


def test_what_the_shell_reads_is_two_short_lines_and_the_first_fits_into_a_small_packet() -> None:
    sent = bootstrap(NONCE, 60.0, enter="docker exec -i\ntrain", python="/opt/my python/bin/python3")
    assert "\n" not in sent.script + sent.start
    assert len(sent.script) < 1000
    assert len(sent.start) < 3000  # the shell reads it byte by byte


def test_an_echo_of_the_script_is_not_taken_for_an_answer() -> None:
    script = bootstrap(NONCE, 60.0, enter="env")
    assert script.marker not in script.script + script.start


def test_a_server_can_tell_what_a_script_asks_for() -> None:
    greeting_only, agent = bootstrap(NONCE, None), bootstrap(NONCE, 57.0)
    assert parse_script(greeting_only.script) == (greeting_only.marker, None)
    assert parse_script(agent.script) == (agent.marker, len(agent.rest))
    entered = bootstrap(NONCE, 57.0, enter="docker exec -i train")
    assert parse_script(entered.script) == (entered.marker, len(entered.rest))
    with pytest.raises(ValueError, match="not a script of ncheck"):
        parse_script("ls -l")


def test_the_remote_command_reads_alike_in_every_login_shell() -> None:
    assert not set("\\\n!`") & set(REMOTE_COMMAND)


MODULE = """\
import os

LIMIT = 5

class Unused(object):
    pass

@staticmethod
def asked(name):
    '''Words.'''

    return inner(name)

def other():
    return Unused()

def inner(name): return name
LAST = [LIMIT]
"""


def test_of_a_module_only_what_its_user_leads_to_is_sent() -> None:
    unused = ("class Unused(object):\n    pass\n\n", "def other():\n    return Unused()\n\n")
    assert cut(MODULE, "print(module.asked(1))") == MODULE.replace(unused[0], "").replace(unused[1], "")
    assert cut(MODULE, "module.other()").count("def ") == 1


def test_a_module_that_cannot_be_cut_is_sent_whole() -> None:
    odd = "def unused(\n    name,\n):\n    return name\n"
    assert cut(odd, "") == odd


def test_every_module_of_the_agent_is_sent_without_notes() -> None:
    rooms = [json.loads(module_text(f"{answers.ROOM_OF}{name}") or "") for name in ("step", "stacks")]
    texts = {**json.loads(zlib.decompress(agent_blob())), **rooms[0], **rooms[1]}
    trees = [ast.parse(text) for text in texts.values()]
    assert len(trees) > 100
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions if ast.get_docstring(node) or node.returns] == []
    assert [node.arg for node in nodes if isinstance(node, ast.arg) and node.annotation] == []
    assert [node for node in nodes if isinstance(node, ast.AnnAssign)] == []
    assert [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "typing"] == []
