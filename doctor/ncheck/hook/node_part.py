"""The part of the examination that runs on a node of the job: a child of one rank there.

It is started while the ranks are awaited, and then gets the connection to the examiner. It answers as the agent of
ncheck does over ssh, by the same code. But it runs no shell and executes nothing that it received: it answers only what
the facts of its own ncheck would ask for.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ncheck.agent.frames import read_message
from ncheck.agent.guard import PR_SET_PDEATHSIG, guarded, prctl
from ncheck.agent.loop import serve
from ncheck.agent.main import read_exactly, write_all
from ncheck.agent.sources import Sources
from ncheck.model.evidence import ROUND

if TYPE_CHECKING:
    from ncheck.model.evidence import Source

_TERM = 15
_LONGEST_SCRIPT = 65536  # bytes
_LONGEST_ANSWER = 60.0  # seconds that one source may take, whatever is asked
HOW = "the job's own"

Respond = Callable[[Mapping[str, object], Callable[[str], str | None] | None], Mapping[str, object]]


def main(parent: int, seconds: float, watched: bool = False) -> None:  # noqa: FBT001, FBT002
    """Get ready, wait for the connection, and serve until the examiner is done or gone, the rank that started this
    ends, or the time is over. `watched`: serve a watch after the examination, until the connection ends. Never returns.
    """
    prctl(PR_SET_PDEATHSIG, _TERM)
    known = own_questions() | (watching_questions() if watched else {})
    if os.getppid() == parent and _connected():
        if watched:
            from ncheck.hook.sessions import serve_sessions

            serve_sessions(lambda: _serve(known), parent, seconds)
        else:
            guarded(lambda: _serve(known), seconds)
    os._exit(1)


def _connected() -> bool:
    """Take the connection, which comes as a file descriptor over standard input, and let it be standard input."""
    with socket.socket(fileno=os.dup(0)) as control:
        data, numbers, _, _ = socket.recv_fds(control, 1, 1)
    if not data:
        return False
    (number,) = numbers
    os.set_blocking(number, True)
    os.dup2(number, 0)
    os.dup2(number, 1)
    os.close(number)
    return True


def _serve(known: Mapping[str, Mapping[str, object]]) -> None:
    from ncheck.fleet.bootstrap import parse_script

    script = b""
    while not script.endswith(b"\n") and len(script) < _LONGEST_SCRIPT and (byte := os.read(0, 1)):
        script += byte
    marker, size = parse_script(script.decode("utf-8", "replace"))
    write_all(_greeting(marker).encode("utf-8", "backslashreplace"))
    if size is None:
        read_message(read_exactly)  # it says bye, or nothing
        return
    if len(read_exactly(size)) != size:  # the agent as text, of which nothing is used
        return
    sources = Sources()
    serve(read_exactly, write_all, guarded_answers(sources.respond, known), _start(sources))
    sources.end()


def _greeting(marker: str) -> str:
    """Return what a shell would have said before the agent starts."""
    from ncheck.fleet.engine import COMMAND_NAME

    lines = (
        f"command {COMMAND_NAME}",
        f"host {os.uname().nodename}",
        f"boot {_text('/proc/sys/kernel/random/boot_id')}",
        f"net {_link('/proc/self/ns/net')}",
        f"uid {os.getuid()}",
        "end",
        f"go {'.'.join(map(str, sys.version_info[:3]))} {sys.executable}",
    )
    return f"\n{marker} hello\n" + "".join(f"{marker} {line}\n" for line in lines)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123  pathlib costs a start of this process
            return file.read().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


def _start(sources: Sources) -> Callable[[Mapping[str, object]], dict[str, str]]:
    """Return what the start message does: the environment is the rank's own, whatever the message says of it."""

    def start(message: Mapping[str, object]) -> dict[str, str]:
        timeout = message.get("command_timeout")
        limit = min(timeout, _LONGEST_ANSWER) if isinstance(timeout, int | float) and timeout > 0 else None
        answer: dict[str, str] = sources.start({
            "command_timeout": limit, "environment": {"python": sys.executable} if sys.executable else {},
        })  # fmt: skip
        sources.job.how = HOW
        return answer

    return start


def guarded_answers(respond: Respond, known: Mapping[str, Mapping[str, object]]) -> Respond:
    """Return a function that answers the known questions, and refuses all else.

    Modules that an answer needs (pynvml, the program of a rank) are this machine's own, not the examiner's.
    """

    def answer(source: Mapping[str, object], _fetch: object) -> Mapping[str, object]:
        if not is_own(source, known):
            return {"status": "failed", "reason": "the ncheck on this node does not know this question", "seconds": 0.0}
        return respond(_with_own_programs(_bounded(source)), own_text)

    return answer


def own_text(name: str, timeout: float = 0.0) -> str | None:  # noqa: ARG001  as the agent's loop has it
    """Return the text of a module by this machine's own ncheck; None where it has none."""
    from ncheck.fleet.bootstrap import module_text

    return module_text(name)


def own_questions() -> dict[str, dict[str, object]]:
    """Return what the facts ask for, by key, as it is on the wire."""
    from importlib import import_module
    from pkgutil import iter_modules

    from ncheck import facts

    names = [f"{facts.__name__}.{found.name}" for found in iter_modules(facts.__path__)]
    names += ["ncheck.plan.planned_pick", "ncheck.probe.facts"]
    asked = (fact for name in names for fact in getattr(import_module(name), "FACTS", ()))
    return _by_key(source for fact in asked for source in fact.sources)


def watching_questions() -> dict[str, dict[str, object]]:
    """Return what a watch asks for."""
    from ncheck.triage.harmless import harmless

    return _by_key(harmless())


def _by_key(sources: Iterable[Source]) -> dict[str, dict[str, object]]:
    from ncheck.fleet.framing import on_the_wire

    return {source.key: dict(on_the_wire(source)) for source in sources}


NEVER = frozenset({"ssh-peers"})  # answers that are of no use inside a job
_FREE: Mapping[object, frozenset[str]] = {"answer": frozenset({"key", "timeout", "arguments", "round"})}


def is_own(source: Mapping[str, object], known: Mapping[str, Mapping[str, object]]) -> bool:
    """Tell whether a source that came is one of the known questions, word for word; those for answers have arguments,
    and those that a known question has must be the same.

    An answer that is asked in rounds has the round in its key.
    """
    if not isinstance(source, dict) or source.get("name") in NEVER:
        return False
    key = str(source.get("key"))
    own = known.get(key) or known.get(key.partition(ROUND)[0])
    if own is None or source.keys() != own.keys():
        return False
    free = _FREE.get(own["kind"], frozenset({"timeout"}))
    same = all(source[name] == own[name] for name in own if name not in free)
    return same and _has(source.get("arguments"), own.get("arguments"))


def _has(arguments: object, fixed: object) -> bool:
    if not isinstance(fixed, Mapping):
        return True
    return isinstance(arguments, Mapping) and fixed.items() <= arguments.items()


def _with_own_programs(source: Mapping[str, object]) -> Mapping[str, object]:
    """Let py-spy be looked for beside the Python of this node, wherever the examiner's is."""
    arguments = source.get("arguments")
    if not isinstance(arguments, Mapping) or "beside" not in arguments:
        return source
    return {**source, "arguments": {**arguments, "beside": os.path.dirname(sys.executable)}}  # noqa: PTH120


def _bounded(source: Mapping[str, object]) -> dict[str, object]:
    """Return the source with no more time than any of ours needs."""
    timeout = source.get("timeout")
    longest = {"timeout": _LONGEST_ANSWER} if isinstance(timeout, int | float) and timeout > _LONGEST_ANSWER else {}
    return {**source, **longest}


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
