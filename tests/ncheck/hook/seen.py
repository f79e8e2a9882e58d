"""A script that prints all that it can see of the process in which it runs; test_main.py runs it with the hook and
without.
"""

import atexit
import builtins
import faulthandler
import fcntl
import gc
import json
import locale
import os
import pickle
import resource
import signal
import stat
import sys
import termios
import threading
import warnings
from pathlib import Path

PROC = Path("/proc/self")


class Item:
    """Pickled by the name of the module that defines it."""


def module() -> dict[str, object]:
    main = sys.modules["__main__"]
    return {
        "same": main.__dict__ is globals(),
        "names": sorted(vars(main)),
        "spec": repr(main.__spec__).replace(hex(id(main.__loader__)), "here"),
        "loader": type(main.__loader__).__name__,
        "builtins": type(main.__builtins__).__name__ if main.__builtins__ is not vars(builtins) else "the dict",
        **{name: repr(getattr(main, name, None)) for name in ("__name__", "__package__", "__file__", "__cached__")},
        "pickled": pickle.dumps(Item()).hex(),
    }


def interpreter() -> dict[str, object]:
    streams = [stream for stream in (sys.stdin, sys.stdout, sys.stderr) if stream]
    return {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "path": sys.path,
        "flags": repr(sys.flags),
        "x": {name: str(value) for name, value in sys._xoptions.items()},
        "warnoptions": sys.warnoptions,
        "filters": [repr(entry) for entry in warnings.filters],
        "executable": [sys.executable, sys._base_executable, sys.prefix, sys.exec_prefix, sys.base_prefix],  # type: ignore[attr-defined]
        "modules": sorted(sys.modules),
        "importers": sorted(sys.path_importer_cache),
        "hooks": [repr(hook.__name__) for hook in (sys.excepthook, sys.displayhook, sys.unraisablehook)],
        "meta_path": [str(finder).partition(" at 0x")[0] for finder in sys.meta_path],
        "streams": [
            (s.encoding, s.errors, s.line_buffering, getattr(s, "write_through", None), s.isatty()) for s in streams
        ],
        "terminals": [termios.tcgetattr(s.fileno())[:4] for s in streams if s.isatty()],
        "locale": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), sys.getdefaultencoding()],
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "threads": [thread.name for thread in threading.enumerate()],
        "at_exit": atexit._ncallbacks(),
        "faults": faulthandler.is_enabled(),
        "switch": [sys.getswitchinterval(), sys.getrecursionlimit(), sys.dont_write_bytecode],
    }


def process() -> dict[str, object]:
    status = dict(line.split(":\t", 1) for line in (PROC / "status").read_text().splitlines())
    signals = {int(number): str(signal.getsignal(number)) for number in signal.valid_signals()}
    return {
        "environ": dict(os.environ),
        "raw_environ": (PROC / "environ").read_text(errors="surrogateescape"),
        "cmdline": (PROC / "cmdline").read_text(errors="surrogateescape"),
        "status": {name: status[name] for name in ("Name", "Umask", "SigPnd", "SigBlk", "SigIgn", "SigCgt", "Threads")},
        "handlers": {number: handler.partition(" at 0x")[0] for number, handler in signals.items()},
        "limits": (PROC / "limits").read_text(),
        "groups": [os.getppid(), os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid()],
        "priority": [os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0))],
        "cwd": str(Path.cwd()),
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "children": [path.read_text() for path in PROC.glob("task/*/children")],
        "open": {number: opened(number) for number in range(256) if is_open(number)},
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "oom": (PROC / "oom_score_adj").read_text(),
    }


def is_open(number: int) -> bool:
    return os.path.lexists(PROC / "fd" / str(number))


def opened(number: int) -> tuple[int, int, int]:
    return stat.S_IFMT(os.fstat(number).st_mode), fcntl.fcntl(number, fcntl.F_GETFL), fcntl.fcntl(number, fcntl.F_GETFD)


if __name__ == "__main__":
    everything = {"module": module(), "interpreter": interpreter(), "process": process()}
    typed = "" if sys.stdin.isatty() or "-" in sys.argv[:1] else sys.stdin.read()
    sys.stdout.write(json.dumps({"pid": os.getpid(), "typed": typed, **everything}) + "\n")
