"""The job's environment on this node: what --setup leaves behind, and the interpreter that the job would use."""

import json
import os
import re
import shutil
import sys
import threading

from ncheck.agent.commands import run
from ncheck.agent.warm_interpreter import SERVE, WarmInterpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    from ncheck.agent.commands import Environment, Reply

# The user's line runs in a login bash, where `module` and `conda` are functions; without bash in a login sh. What it
# prints goes to stderr. Its own exit status decides, as in a script without `set -e`; `exit` in it counts as failure.
_AFTER_SETUP = (
    'echo ncheck-setup >&2; eval "$NCHECK_SETUP" 1>&2 || exit 97; unset NCHECK_SETUP; '
    'exec "$NCHECK_PYTHON" -I -S -c "$NCHECK_DUMP"'
)
_BEGINS = "ncheck-setup\n"  # what stands above it on stderr was said by start-up files
_DUMP = "import json,os,sys;os.write(int(os.environ['NCHECK_FD']),json.dumps(dict(os.environ)).encode())"
_OURS = ("NCHECK_SETUP", "NCHECK_PYTHON", "NCHECK_DUMP", "NCHECK_FD", "SHLVL", "_")
# ERROR: Unable to locate a modulefile for 'nccl'     |     Lmod has detected the following error: ... unknown: "nccl"
_MODULE_ERRORS = ("Unable to locate a modulefile", "Lmod has detected the following error", "command not found")
_ACTIVE = (("VIRTUAL_ENV", "active venv"), ("CONDA_PREFIX", "active conda"))
_ON_PATH, _ON_HEADS_PATH = "python3 on PATH", "active python on PATH"

PACKAGES = (
    "torch", "tensorflow", "tensorflow-gpu", "horovod", "jax", "jaxlib", "oneflow", "paddlepaddle", "paddlepaddle-gpu",
    "deepspeed", "mpi4py", "accelerate", "lightning", "pytorch-lightning", "transformers", "megatron-core",
    "vllm", "sglang", "ray",
    "mxnet", "mxnet-cu*", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "jax-cuda*-plugin", "jax-rocm*-plugin",
    "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-cudnn-cu*", "nvidia-cublas",
    "nvidia-cublas-cu*", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu*", "nvidia-dali-cuda*", "apex", "flash-attn",
    "transformer-engine", "transformer-engine-*", "torchvision", "torchaudio",
)  # fmt: skip

# What a job trains with; their packages may be called tensorflow-gpu, paddlepaddle, mxnet-cu112.
FRAMEWORKS = ("torch", "tensorflow", "jax", "paddle", "oneflow", "mxnet")

# Runs in the job's interpreter, which may be old: 2.7 answers too. The folder that it starts in is no part of its path.
# Whatever fails in its second half ends it: an interpreter that cannot look for torch is not one without torch.
_ASK = r"""
import sys, os, json, re
sys.path = [p for p in sys.path if p]
names = [name.partition("*") for name in sys.argv[1:]]
def like(name, first, star, last): return name.startswith(first) and name.endswith(last) and (star or name == first)
def plain(name): return re.sub(r"[-_.]+", "-", name).lower()
found = {}
for folder in sys.path:
    try: entries = os.listdir(folder)
    except OSError: continue
    for entry in entries:
        # torch-2.3.0+cu121.dist-info   mpi4py-3.1.4.egg-info   horovod-0.28.1-py3.10.egg-info
        m = re.match(r"(.+?)-(\d[^-]*)(-py[\d.]+)?\.(dist-info|egg-info)$", entry)
        if m: found.setdefault(plain(m.group(1)), m.group(2))
wanted = dict((n, found[n]) for n in found if any(like(n, *pattern) for pattern in names))
print("ncheck:" + json.dumps({"version": ".".join(map(str, sys.version_info[:3])), "packages": wanted}))
sys.stdout.flush()
import importlib.util
spec = importlib.util.find_spec("torch")
torch = list(spec.submodule_search_locations)[0] if spec and spec.submodule_search_locations else None
print("ncheck-layout:" + json.dumps({"path": sys.path, "prefix": sys.prefix, "torch": torch}))
"""

# Variables of Python's own that can keep it from starting, or lead `import socket` to another file. Many clusters set
# the second, rightly. What nearly every job imports of the standard library shows it.
_CULPRITS = ("PYTHONHOME", "PYTHONPATH")
_IMPORTS = (
    "import collections, contextlib, copy, ctypes, datetime, functools, inspect, io, json, logging, multiprocessing, "
    "os, pickle, platform, random, re, signal, socket, string, subprocess, tempfile, threading, time, traceback, "
    "types, uuid, warnings, weakref; socket.socket; random.Random"
)
# ModuleNotFoundError: No module named 'encodings'     |     AttributeError: module 'socket' has no attribute 'AF_INET'
_LAST_WORDS = r"(?m)^[\w.]*(?:Error|Exception|Exit)\b.*"


class NotEnteredError(Exception):
    """The set-up failed, or the interpreter that was named is not there; its words say how."""


class JobSetup:
    """`asked` holds python, setup, program (the interpreter that the job's command names), active (the head's
    VIRTUAL_ENV and CONDA_PREFIX, and as "python" the one on its PATH) and avoid (ncheck's own prefix).
    """

    def __init__(self, asked: "Mapping[str, Any]", environment: "Environment") -> None:
        self.asked = asked
        self.login_environment: "Environment" = dict(environment)
        self.environment: "Environment" = dict(environment)
        self.path: "Optional[str]" = None
        self.how = "the search for python3 on PATH does not end"
        self.looking = True
        self.interpreter: "Optional[WarmInterpreter]" = None  # it is started once
        self.asking = threading.Lock()
        # {"variables", "error"} where variables of the job keep the interpreter from working
        self.broken: "Optional[Dict[str, object]]" = None
        self.start_seconds = 0.0  # what the interpreter needs before it does anything, once that is known

    def enter(self, timeout: float) -> None:
        """Run the set-up and find the interpreter; NotEnteredError with the set-up's own words."""
        if self.asked.get("setup"):
            self.environment = self._after_setup(self.asked["setup"], timeout)
        self.path, self.how = self._interpreter(timeout)
        self.looking = False
        if self.asked.get("python") and not self.path:
            raise NotEnteredError("--python {}: no such program on this node".format(self.asked["python"]))
        if self.path:
            self.environment = self._environment_of(self.path)
            self._mend(timeout / 4)

    def end(self) -> None:
        """End the interpreter that waits for what else it is asked."""
        if self.interpreter:
            self.interpreter.end()

    def described(self, timeout: float) -> "Dict[str, Any]":
        """Return the interpreter's "version" and "packages" (of PACKAGES); OSError where it does not run."""
        found = self.printed("ncheck:", timeout)
        if found is None:
            reply = self.interpreter.reply if self.interpreter else {}
            words = reply.get("stderr", "").strip().splitlines()
            why = words[-1] if words else reply.get("reason") or "no answer"
            raise OSError("{} does not run: {}".format(self.path, why))
        return found

    def printed(self, mark: str, timeout: float) -> "Optional[Dict[str, Any]]":
        """Return what the interpreter prints behind a mark, or None. It is asked once, as the job would start it."""
        if not self.path:
            return None
        with self.asking:
            if self.interpreter is None:
                self.interpreter = _ask(self.path, timeout, self.environment)
            self.start_seconds = self.interpreter.reply.get("seconds", 0.0)
        return _behind(mark, self.interpreter.reply)

    def run(
        self,
        text: str,
        words: "Sequence[str]",
        timeout: float,
        environment: "Environment",
        *,
        flags: "Sequence[str]" = ("-B", "-S"),
    ) -> "Reply":
        """Let the interpreter run a program: the one that was asked before, else one that is started for it.

        Where the job has none, this one runs it.
        """
        reply = self.interpreter and self.interpreter.run(text, words, timeout, environment)
        return reply or run([self.path or sys.executable, *flags, "-c", text, *words], timeout, environment)

    def _mend(self, timeout: float) -> None:
        """Take out of the environment what keeps the interpreter from working, and note it: the rest can be asked."""
        culprits = [name for name in _CULPRITS if self.environment.get(name)]
        if not culprits:
            return
        self.printed("ncheck:", timeout)
        reply = self.run(_IMPORTS, (), timeout, self.environment, flags=("-B",))
        if reply.get("exit_status") in (0, None):  # None: it did not end, whyever
            return
        for names in [*([name] for name in culprits), culprits]:
            without = {name: value for name, value in self.environment.items() if name not in names}
            if self._tried(without, timeout).get("exit_status") == 0:
                words = re.findall(_LAST_WORDS, reply.get("stderr", "")) or ["it ends with an error"]
                self.broken = {"variables": {name: self.environment[name] for name in names}, "error": words[-1]}
                self.environment, self.interpreter = without, None
                return

    def _tried(self, environment: "Environment", timeout: float) -> "Reply":
        return run([self.path or sys.executable, "-B", "-c", _IMPORTS], timeout, environment)

    def _after_setup(self, setup: str, timeout: float) -> "Dict[str, str]":
        shell = shutil.which("bash") or "/bin/sh"
        reading, writing = os.pipe()
        own = {"NCHECK_SETUP": setup, "NCHECK_PYTHON": sys.executable, "NCHECK_DUMP": _DUMP, "NCHECK_FD": str(writing)}
        try:
            with _Collected(reading) as collected:
                reply = run([shell, "-l", "-c", _AFTER_SETUP], timeout, dict(self.login_environment, **own), (writing,))
                os.close(writing)
                text = collected.text()
        finally:
            os.close(reading)
        message = reply.get("stderr", "").rpartition(_BEGINS)[2].strip()
        if not text or any(words in message for words in _MODULE_ERRORS):
            raise NotEnteredError(_why(setup, reply, message))
        return {name: value for name, value in json.loads(text).items() if name not in _OURS}

    def _interpreter(self, timeout: float) -> "Tuple[Optional[str], str]":
        named, program = self.asked.get("python"), self.asked.get("program")
        if named:
            return self._found(named), "--python"
        if program and self._found(program):
            return self._found(program), "the job's command"
        for variable, how in _ACTIVE:
            path = self._python_of(self._own_active(variable))
            if path:
                return path, how
        return self._with_framework(timeout / 4)

    def _with_framework(self, timeout: float) -> "Tuple[Optional[str], str]":
        """Choose the first that has a framework here: what is active on the head, then python3 on PATH.

        If none has one, it is the active environment, else python3 on PATH. What is only on the head's PATH, and the
        environment that ncheck alone was installed into, count with a framework only.
        """
        active = self.asked.get("active") or {}
        found = [(self._python_of(active.get(variable)), how) for variable, how in _ACTIVE]
        found.append((self._found(active["python"]) if active.get("python") else None, _ON_HEADS_PATH))
        found.append((self._first_on_path(), _ON_PATH))
        places: "Dict[str, str]" = {}
        for path, how in found:
            if path:
                places.setdefault(path, how)
        usual = [path for path, how in places.items() if how != _ON_HEADS_PATH and not self._is_own(path)]
        replies = {}
        for path, how in places.items() if list(places) != usual[:1] else ():
            environment = self._environment_of(path)
            replies[path] = self.interpreter = _ask(path, timeout, environment)
            works = _has_framework(self.interpreter)
            if works is None and any(map(environment.get, _CULPRITS)):
                works = _has_framework(_ask(path, timeout, dict(environment, **dict.fromkeys(_CULPRITS, ""))))
            if works or (works is None and path in usual and how != _ON_PATH):
                return path, how  # one that does not run is the job's all the same
        self.interpreter = replies.get(usual[0]) if usual else None
        return (usual[0], places[usual[0]]) if usual else (None, _ON_PATH)

    def _environment_of(self, path: str) -> "Environment":
        """Return the job's environment with the folder of its interpreter first on PATH."""
        folder, before = os.path.dirname(path), self.environment.get("PATH", "")
        if before.partition(":")[0] == folder:
            return self.environment
        return dict(self.environment, PATH=folder + (":" + before if before else ""))

    def _python_of(self, prefix: "Optional[str]") -> "Optional[str]":
        return prefix and self._found(os.path.join(prefix, "bin", "python3"))

    def _is_own(self, path: str) -> bool:
        """Tell whether this is the interpreter that ncheck alone was installed into."""
        avoid = self.asked.get("avoid") or ""
        return bool(avoid) and os.path.dirname(path) == os.path.join(avoid, "bin")

    def _own_active(self, variable: str) -> "Optional[str]":
        """Return what the set-up itself activated on this node: it outweighs what is active on the head."""
        return self.environment.get(variable) if self.asked.get("setup") else None

    def _found(self, program: str) -> "Optional[str]":
        found = shutil.which(os.path.expanduser(program), path=self.environment.get("PATH", os.defpath))
        return found and os.path.abspath(found)

    def _first_on_path(self) -> "Optional[str]":
        """Find python3 as a shell would, past the one that ncheck alone was installed into."""
        for folder in self.environment.get("PATH", os.defpath).split(":"):
            path = shutil.which("python3", path=folder or ".")
            if path and not self._is_own(path):
                return os.path.abspath(path)
        return None


class _Collected:
    """Reads a pipe to its end in a thread, so that what writes there is never held up."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.parts: "List[bytes]" = []
        self.thread = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        data = os.read(self.number, 65536)
        while data:
            self.parts.append(data)
            data = os.read(self.number, 65536)

    def __enter__(self) -> "_Collected":
        self.thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.thread.join(1.0)

    def text(self) -> str:
        self.thread.join(1.0)
        return b"".join(self.parts).decode("utf-8", "surrogateescape")


def _why(setup: str, reply: "Reply", message: str) -> str:
    last = message.splitlines()[-1] if message else ""
    if reply["status"] == "timeout":
        return "--setup '{}' did not end in {:.0f} s{}".format(setup, reply["seconds"], ": " + last if last else "")
    ending = reply.get("exit_status")
    known = "" if ending in (None, 0, 97) else " (exit status {})".format(ending)
    return "--setup '{}' failed{}{}".format(setup, known, ": " + last if last else reply.get("reason", ""))


def _ask(path: str, timeout: float, environment: "Environment") -> "WarmInterpreter":
    """Start an interpreter; its reply is what `_behind` reads."""
    return WarmInterpreter([path, "-B", "-c", _ASK + SERVE, *PACKAGES], timeout, environment)


def _has_framework(interpreter: "WarmInterpreter") -> "Optional[bool]":
    """Tell whether an interpreter that was asked has a framework; None where it does not run."""
    found = _behind("ncheck:", interpreter.reply)
    return None if found is None else any(name.startswith(FRAMEWORKS) for name in found["packages"])


def _behind(mark: str, reply: "Reply") -> "Optional[Dict[str, Any]]":
    # ncheck:{"version": "3.10.12", ...}     after whatever a sitecustomize prints
    lines = [line for line in reply.get("stdout", "").splitlines() if line.startswith(mark + "{")]
    return json.loads(lines[-1][len(mark) :]) if lines else None
