"""`python -m ncheck.hook train.py ARGS`: the ranks check the cluster, then each becomes `python train.py ARGS`.

"Becomes" is literal. After the check, this process executes the interpreter again with the options, argv[0] and
environment that it was started with; its pid and its open files stay. So the script runs in the process in which it
would have run without the hook, and nothing of ncheck is in it.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import ncheck
from ncheck.errors import EXIT_BUG, EXIT_CLEAN, EXIT_INTERRUPTED, NcheckError

HOOK = "ncheck.hook"
USAGE = f"""\
usage: python -m {HOOK} [OPTIONS] SCRIPT [ARGS]
       python -m {HOOK} [OPTIONS] -m MODULE [ARGS]
       python -m {HOOK} [OPTIONS] -- COMMAND [ARGS]

Check the cluster together with the other ranks of the job, then run the script, module or command.
If the check finds an error, no rank runs it.

  --apply          set the variables of the launch plan for the job
  --probe quick    run an all-reduce for a few seconds, and compare it with what the links should give
  --watch          watch the job while it runs, and say why where it stands still
  --history FILE   note in it how the job ended, and what links counted meanwhile
  --select CHECK   run only these checks: a code, a prefix (NC1), a name or a topic. Can be repeated, or a,b
  --ignore CHECK   do not stop the job because of these checks. Can be repeated, or a,b

Variables: NCHECK=off|warn|on|strict, NCHECK_TIMEOUT=SECONDS, NCHECK_RENDEZVOUS=HOST[:PORT], NCHECK_TOKEN,
NCHECK_WATCH=1|0, NCHECK_STALLED=SECONDS.
"""
EXIT_CANNOT_RUN, EXIT_NOT_FOUND = 126, 127  # as a shell has them

# -um ncheck.hook, -Wignore: several letters in one word, and the value of the last in the same word or in the next.
_VALUED = re.compile(r"(-[^-mcWX]*)([mcWX])(.*)", re.DOTALL)

# What torch.distributed.launch puts before the script's name, although it is the script's: --local_rank=0, in torch 2
# --local-rank=0.
_OF_LAUNCH = re.compile(r"--local[-_]rank=\d+", re.ASCII)

Environment = dict[bytes, bytes]


class UsageError(NcheckError):
    """The hook's own command line is wrong."""


class CrashError(NcheckError):
    """The check itself failed, and NCHECK=strict asks that this stops the job."""

    exit_code = EXIT_BUG


class JobCommand(NamedTuple):
    """What runs after the check: `words` for the interpreter, or a command; `settings` are those of the check."""

    words: list[str]
    is_command: bool
    settings: dict[str, Any]


def main(argv: Sequence[str]) -> int:
    """Check, then become the job. `argv` is the interpreter's own; returns the exit code if the job must not run."""
    warnings.simplefilter("ignore")  # -W error is meant for the script: nothing of the check may fail by it
    started, before = environment_at_start(), dict(os.environb)
    try:
        options, words = split_command_line(argv)
        if words[:1] in (["-h"], ["--help"]):
            sys.stdout.write(USAGE)
            return EXIT_CLEAN
        job = read_job(words)
        check(job.settings)
        applied = {name: value for name, value in os.environb.items() if before.get(name) != value}
        if job.is_command:
            return become(job.words[0], job.words, {**started, **applied})
        return become(interpreter(), [argv[0], *options, *job.words], {**started, **applied})
    except ncheck.PreflightError as error:
        _say(str(error))
        return error.exit_code
    except NcheckError as error:
        _say(f"ncheck: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)  # whoever waits for this process reads why it ended
        return EXIT_INTERRUPTED


def split_command_line(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the interpreter's options, and the words after `-m ncheck.hook`.

    python -u -X dev -m ncheck.hook train.py 1: (-u -X dev) and (train.py 1).
    """
    words, options = iter(argv[1:]), list[str]()
    for word in words:
        found = _VALUED.fullmatch(word)
        if found and found[2] in "WX":
            options += [word] if found[3] else [word, next(words, "")]
        elif found and found[2] + (found[3] or next(words, "")) == f"m{HOOK}":
            return [*options, *([found[1]] if found[1] != "-" else [])], list(words)
        elif found or not word.startswith("-"):
            break
        else:
            options += [word, next(words, "")] if word.startswith("--") else [word]  # --check-hash-based-pycs VALUE
    raise UsageError(f"another program runs {HOOK}; put the hook in front of it: python -m {HOOK} -m PROGRAM train.py")


def read_job(words: Sequence[str]) -> JobCommand:
    """Read the hook's own words, up to the script; what comes after it belongs to the script."""
    settings: dict[str, Any] = {}
    rest, of_launch = list(words), list[str]()
    while rest:
        word = rest.pop(0)
        if _OF_LAUNCH.fullmatch(word):
            of_launch.append(word)
            continue
        name, equals, value = word.partition("=")
        if word in ("--", "-m") and not rest:
            raise UsageError(f"nothing to run after {word}")
        if word == "--":
            return JobCommand([*rest, *of_launch], is_command=True, settings=settings)
        if word in ("-", "-m") or not word.startswith("-"):
            program = [word, *rest[: word == "-m"]]
            return JobCommand([*program, *of_launch, *rest[len(program) - 1 :]], is_command=False, settings=settings)
        if word in ("--apply", "--watch"):
            settings[word[2:]] = True
            continue
        if name not in ("--probe", "--history", "--select", "--ignore"):
            raise UsageError(f"no such option: {word}. The script's own options follow the script; python -m {HOOK} -h")
        if not equals and not rest:
            raise UsageError(f"{name} needs a value")
        value = value if equals else rest.pop(0)
        settings[name[2:]] = value if name in ("--probe", "--history") else (*settings.get(name[2:], ()), value)
    raise UsageError(f"no script to run. Usage: python -m {HOOK} train.py ARGS; python -m {HOOK} -h")


def check(settings: Mapping[str, Any]) -> None:
    """Run the check; a failure of the check itself is no failure of the job."""
    try:
        ncheck.preflight(**settings)
    except NcheckError:
        raise
    except Exception as error:  # whatever it is, it is not the job's
        words = f"the check of the cluster failed: {type(error).__name__}: {error}"
        if os.environ.get("NCHECK", "").strip().lower() == "strict":
            raise CrashError(words) from error
        _say(f"ncheck: warning: {words}; the job goes on")


def environment_at_start() -> Environment:
    """Return the environment that this process was started with.

    Start-up files can change it, and Python does: it sets LC_CTYPE in the C locale, and when it starts again with that,
    it does not turn on its UTF-8 mode.
    """
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  pathlib is dear
            entries = file.read().removesuffix(b"\0").split(b"\0")
    except OSError:
        return dict(os.environb)
    if not all(entry.find(b"=") > 0 for entry in entries):  # a program has written its title there
        return dict(os.environb)
    started: Environment = {}
    for name, value in (entry.split(b"=", 1) for entry in entries):
        started.setdefault(name, value)
    return started


def interpreter() -> str:
    """Return the path of the running interpreter: sys.executable, unless a wrong argv[0] has misled it."""
    running = os.path.realpath("/proc/self/exe")
    try:
        return sys.executable if os.path.samefile(sys.executable, running) else running  # noqa: PTH121
    except OSError:
        return sys.executable or running


def become(file: str, argv: list[str], environment: Environment) -> int:
    """Run this program in the place of this process; return the exit code if that cannot be done."""
    with suppress(OSError, ValueError, AttributeError):  # closed, or nobody reads it: the job will see
        sys.stderr.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what it executes would too
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(file, argv, environment)  # noqa: S606  this is what the hook is for
    except OSError as error:
        _say(f"ncheck: cannot run {file}: {error.strerror}")
        return EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_CANNOT_RUN


def _say(words: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{words}\n")
