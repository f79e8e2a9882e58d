"""One source, one reply: the dispatch, and the one place where every error becomes a reply."""

import json
import os
import threading
import time
from functools import partial

from ncheck.agent import commands, files
from ncheck.agent.answers import ROOM_OF, MissingError, module_of
from ncheck.agent.job import JobSetup, NotEnteredError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar

    from ncheck.agent.commands import Environment, Reply

    Source = Mapping[str, Any]  # its kind, its key, and the fields of the head's record of that name
    Fetch = Callable[[str], Optional[str]]  # a module's text from the head, by its name
    Arguments = Any  # of an answer, as its own module says
    Result = TypeVar("Result")

_PATIENCE = 3.0  # seconds beyond a source's own time, which it should have kept by itself
_SMI, _OPEN_NVML = "nvidia-smi", ("gpus", "nvlinks")  # these answers open NVML in this process, which keeps GPUs awake
_ASLEEP = (
    "it did not end within {:.0f} s, and NVML did not answer: the driver wakes the GPUs, or hangs; "
    "nvidia-smi -pm 1 keeps them awake"
)


def within(
    seconds: float, work: "Callable[..., Result]", *arguments: object, more: "Callable[[], float]" = lambda: 0.0
) -> "List[Result]":
    """Return [what `work` returned], or [] where it did not come back in time; it is then left to itself.

    `more` is asked when the time is over: how many seconds it may go on.
    """
    returned = []
    thread = threading.Thread(target=lambda: returned.append(work(*arguments)), daemon=True)
    thread.start()
    thread.join(seconds)
    if not returned:
        thread.join(more())
    return list(returned)


def _no_module(_name: str) -> "Optional[str]":
    """Bring no module: what there is before the head can be asked for one."""
    return None


def _is_smi(source: "Source") -> bool:
    return [os.path.basename(str(word)) for word in list(source.get("argv") or ())[:1]] == [_SMI]


class Sources:
    """This node's answers. `start` is told first how: {"command_timeout", "sudo", "environment"}."""

    waking = 30.0  # seconds: without persistence mode, the driver needs 10 to 25 for eight GPUs

    def __init__(self, environ: "Optional[Environment]" = None) -> None:
        self.timeout = 10.0
        self.sudo = False
        self.job = JobSetup({}, os.environ if environ is None else environ)
        self.fetch: "Fetch" = _no_module
        self.bringing = threading.Lock()
        self.kept: "Dict[str, Any]" = {}  # what answers keep for later ones until the agent ends
        self.asks_nvml, self.awake, self.awake_since = False, threading.Event(), 0.0
        self.endings: "List[Callable[[], object]]" = []  # what is to be done where the agent ends amid an answer

    def start(self, message: "Dict[str, Any]") -> "Dict[str, str]":
        """Enter the job's environment. Return what to add to the "started" message: why it was not entered, if so."""
        self.timeout = message.get("command_timeout") or self.timeout
        self.sudo = bool(message.get("sudo"))
        self.job = JobSetup(message.get("environment") or {}, self.job.login_environment)
        limit = message.get("setup_timeout") or 30.0
        results = within(limit + _PATIENCE, self.entered, limit)
        return results[0] if results else {}

    def entered(self, limit: float) -> "Dict[str, str]":
        """Enter the job's environment, and return what is to be said of that."""
        try:
            self.job.enter(limit)
        except NotEnteredError as error:
            return {"not_entered": str(error)}
        return {}

    def end(self) -> None:
        """Undo what answers that still run have begun, and end the job's interpreter that was kept."""
        self.job.end()
        for ending in list(self.endings):
            within(_PATIENCE, ending)

    def respond(self, source: "Source", fetch: "Optional[Fetch]" = None) -> "Reply":
        """Return one source's reply. Nothing is raised, whatever the node is like.

        Each is read in a thread of its own: what sleeps in the kernel (a file system that hangs) is left there. What
        starts the job's interpreter, twice at most, gets the time that this one needs to start.
        """
        self.fetch = fetch or self.fetch
        limit = (source.get("timeout") or self.timeout) + _PATIENCE
        wakes = self.waking + limit if _is_smi(source) else 0.0
        replies = within(limit, self.read, source, more=lambda: 2 * self.job.start_seconds + wakes)
        why = "no answer within {:.0f} s: a file system or a driver hangs".format(limit)
        return replies[0] if replies else {"status": "timeout", "reason": why, "seconds": round(limit, 4)}

    def read(self, source: "Source") -> "Reply":
        """Read one source, however long that takes, and turn whatever goes wrong into a reply."""
        started = time.monotonic()
        try:
            reply: "Reply" = getattr(self, "read_" + str(source.get("kind")))(source)
        except MissingError as error:
            reply = {"status": "missing", "reason": str(error)}
        except OSError as error:
            reply = files.failed(error)
        except Exception as error:  # noqa: BLE001  one answer that breaks must not cost the others
            reply = {"status": "failed", "reason": "{}: {}".format(type(error).__name__, error)}
        reply.setdefault("seconds", round(time.monotonic() - started, 4))
        return reply

    def read_command(self, source: "Source") -> "Reply":
        argv, timeout = list(source["argv"]), source.get("timeout") or self.timeout
        environment = self.job.environment if source.get("job") else self.job.login_environment
        run = self.as_root if source.get("root") else commands.run
        reply = run(argv, timeout, environment, tail=bool(source.get("tail")))
        if reply["status"] == "timeout" and _is_smi(source):
            reply = self.tried_again(partial(run, argv, timeout, environment, tail=False), timeout, reply)
        if source.get("holding"):
            reply["stdout"] = commands.thinned(reply.get("stdout", ""), source["holding"])
        return reply

    def tried_again(self, run: "Callable[[], Reply]", timeout: float, reply: "Reply") -> "Reply":
        """Return the reply of nvidia-smi, which was ended at its time limit, once it is known that no GPU slept.

        The driver wakes them for the first program that opens them, NVML in this process or nvidia-smi, and both wait.
        """
        if self.awake.is_set() and time.monotonic() - self.awake_since >= timeout / 2:
            return reply
        if self.asks_nvml and self.awake.wait(max(0.0, self.waking - timeout)):
            return run()
        reply.update({"status": "unanswered", "reason": _ASLEEP.format(timeout)})
        return reply

    def as_root(self, argv: "Sequence[str]", timeout: float, environment: "Environment", *, tail: bool) -> "Reply":
        """Run it through sudo where that was asked for. A refusal, sudo's or the program's own, is "denied".

        The reason of sudo's own begins with "sudo: ".
        """
        by_sudo = self.sudo and os.geteuid() != 0
        if by_sudo:
            # What sudo started belongs to root and cannot be ended by us: timeout, as root, does it.
            argv = ["sudo", "-n", "timeout", "-s", "KILL", str(int(timeout) + 1), *argv]
        reply = commands.run(argv, timeout, environment, tail=tail)
        lines = reply.get("stderr", "").strip().splitlines()
        if by_sudo and reply["status"] == "missing":
            reply.update({"status": "denied", "reason": "sudo: it is not installed"})
        elif reply.get("exit_status") and by_sudo and lines and any(words in lines[-1] for words in _REFUSALS_OF_SUDO):
            reply.update({"status": "denied", "reason": "sudo: " + lines[-1].replace("sudo: ", "", 1)})
        elif reply.get("exit_status") and any(words in reply["stderr"] for words in _REFUSALS):
            reply.update({"status": "denied", "reason": lines[-1]})
        return reply

    def read_file(self, source: "Source") -> "Reply":
        return files.read_file(source["path"])

    def read_tree(self, source: "Source") -> "Reply":
        return files.read_tree(source["patterns"])

    def read_answer(self, source: "Source") -> "Reply":
        timeout = source.get("timeout") or self.timeout
        self.asks_nvml = self.asks_nvml or source["name"] in _OPEN_NVML
        try:
            module = self.module_of(source["name"])
            return {"status": "ok", "value": module.answer(self, source.get("arguments"), timeout)}
        finally:
            if source["name"] in _OPEN_NVML and not self.awake.is_set():
                self.awake_since = time.monotonic()
                self.awake.set()

    def module_of(self, name: str) -> "ModuleType":
        """Return the module that answers to a name. Those of a room that is not here yet come from the head at once."""
        with self.bringing:
            try:
                return module_of(name)
            except ImportError as error:
                texts = self.fetch(ROOM_OF + name) if error.name == name else None
                if texts is None:
                    raise
                importer: "Any" = __spec__.loader  # boot.MemoryImporter
                importer.add(json.loads(texts))
                return module_of(name)


# sudo: a password is required     |     ann is not in the sudoers file.
# Sorry, user ann is not allowed to execute '/usr/bin/timeout ...' as root on gpu01.
_REFUSALS_OF_SUDO = ("sudo: ", "not in the sudoers", "not allowed to execute", "may not run sudo")

# dmesg: read kernel buffer failed: Operation not permitted
_REFUSALS = ("not permitted", "ermission denied")
