"""The job's environment on this node: what --setup leaves behind, and the interpreter that the job would use."""

import json
import os
import re
import shutil
import sys
import threading

from ncheck.agent.answers.interpreter import ask, has_framework, printed, run_in
from ncheck.agent.commands import run

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


class Job:
    """`asked` holds python, setup, program (the interpreter that the job's command names), active (the head's
    VIRTUAL_ENV and CONDA_PREFIX, and as "python" the one on its PATH) and avoid (ncheck's own prefix).
    """

    def __init__(self, asked, environment):
        self.asked = asked
        self.login_environment = dict(environment)
        self.environment = dict(environment)
        self.path, self.how = None, "the search for python3 on PATH does not end"
        self.looking = True
        self.said, self.asking = None, threading.Lock()  # the interpreter's own answer, asked for once
        self.broken = None  # {"variables", "error"} where variables of the job keep the interpreter from working
        self.start_seconds = 0.0  # what the interpreter needs before it does anything, once that is known

    def enter(self, timeout):
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

    def end(self):
        """End the interpreter that waits for what else it is asked."""
        if self.said:
            self.said["standing"].end()

    def _mend(self, timeout):
        """Take out of the environment what keeps the interpreter from working, and note it: the rest can be asked."""
        culprits = [name for name in _CULPRITS if self.environment.get(name)]
        if not culprits:
            return
        printed(self, "ncheck:", timeout)
        said = run_in(self, _IMPORTS, (), timeout, self.environment, flags=("-B",))
        if said.get("exit_status") in (0, None):  # None: it did not end, whyever
            return
        for names in [*([name] for name in culprits), culprits]:
            without = {name: value for name, value in self.environment.items() if name not in names}
            if self._tried(without, timeout).get("exit_status") == 0:
                words = re.findall(_LAST_WORDS, said.get("stderr", "")) or ["it ends with an error"]
                self.broken = {"variables": {name: self.environment[name] for name in names}, "error": words[-1]}
                self.environment, self.said = without, None
                return

    def _tried(self, environment, timeout):
        return run([self.path, "-B", "-c", _IMPORTS], timeout, environment)

    def _after_setup(self, setup, timeout):
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
        said = reply.get("stderr", "").rpartition(_BEGINS)[2].strip()
        if not text or any(words in said for words in _MODULE_ERRORS):
            raise NotEnteredError(_why(setup, reply, said))
        return {name: value for name, value in json.loads(text).items() if name not in _OURS}

    def _interpreter(self, timeout):
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

    def _with_framework(self, timeout):
        """Choose the first that has a framework here: what is active on the head, then python3 on PATH.

        If none has one, it is the active environment, else python3 on PATH. What is only on the head's PATH, and the
        environment that ncheck alone was installed into, count with a framework only.
        """
        active, places = self.asked.get("active") or {}, {}
        for variable, how in _ACTIVE:
            places.setdefault(self._python_of(active.get(variable)), how)
        places.setdefault(active.get("python") and self._found(active["python"]), _ON_HEADS_PATH)
        places.setdefault(self._first_on_path(), _ON_PATH)
        places = {path: how for path, how in places.items() if path}
        usual = [path for path, how in places.items() if how != _ON_HEADS_PATH and not self._is_own(path)]
        replies = {}
        for path, how in places.items() if list(places) != usual[:1] else ():
            environment = self._environment_of(path)
            replies[path] = self.said = ask(path, timeout, environment)
            works = has_framework(self.said)
            if works is None and any(map(environment.get, _CULPRITS)):
                works = has_framework(ask(path, timeout, dict(environment, **dict.fromkeys(_CULPRITS, ""))))
            if works or (works is None and path in usual and how != _ON_PATH):
                return path, how  # one that does not run is the job's all the same
        self.said = replies.get(usual[0]) if usual else None
        return (usual[0], places[usual[0]]) if usual else (None, _ON_PATH)

    def _environment_of(self, path):
        """Return the job's environment with the folder of its interpreter first on PATH."""
        folder, before = os.path.dirname(path), self.environment.get("PATH", "")
        if before.partition(":")[0] == folder:
            return self.environment
        return dict(self.environment, PATH=folder + (":" + before if before else ""))

    def _python_of(self, prefix):
        return prefix and self._found(os.path.join(prefix, "bin", "python3"))

    def _is_own(self, path):
        """Tell whether this is the interpreter that ncheck alone was installed into."""
        avoid = self.asked.get("avoid")
        return bool(avoid) and os.path.dirname(path) == os.path.join(avoid, "bin")

    def _own_active(self, variable):
        """Return what the set-up itself activated on this node: it outweighs what is active on the head."""
        return self.environment.get(variable) if self.asked.get("setup") else None

    def _found(self, program):
        found = shutil.which(os.path.expanduser(program), path=self.environment.get("PATH", os.defpath))
        return found and os.path.abspath(found)

    def _first_on_path(self):
        """Find python3 as a shell would, past the one that ncheck alone was installed into."""
        for folder in self.environment.get("PATH", os.defpath).split(":"):
            path = shutil.which("python3", path=folder or ".")
            if path and not self._is_own(path):
                return os.path.abspath(path)
        return None


class _Collected:
    """Reads a pipe to its end in a thread, so that what writes there is never held up."""

    def __init__(self, number):
        self.number = number
        self.parts = []
        self.thread = threading.Thread(target=self._read, daemon=True)

    def _read(self):
        data = os.read(self.number, 65536)
        while data:
            self.parts.append(data)
            data = os.read(self.number, 65536)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *ignored):
        self.thread.join(1.0)

    def text(self):
        self.thread.join(1.0)
        return b"".join(self.parts).decode("utf-8", "surrogateescape")


def _why(setup, reply, said):
    last = said.splitlines()[-1] if said else ""
    if reply["status"] == "timeout":
        return "--setup '{}' did not end in {:.0f} s{}".format(setup, reply["seconds"], ": " + last if last else "")
    ending = reply.get("exit_status")
    known = "" if ending in (None, 0, 97) else " (exit status {})".format(ending)
    return "--setup '{}' failed{}{}".format(setup, known, ": " + last if last else reply.get("reason", ""))
