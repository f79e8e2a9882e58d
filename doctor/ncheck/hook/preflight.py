"""`ncheck.preflight()`: called by every rank of a job before it begins to communicate.

It runs in the job's own process: no thread, no module beside ncheck's own and the library's, nothing that outlives it;
but with `watch`, what watches the job, which is no child of it and ends with it.
"""

from __future__ import annotations

import json
import math
import os
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal

from ncheck.errors import NcheckError, SettingsError

if TYPE_CHECKING:
    from subprocess import Popen

    from ncheck.hook.meeting.attendance import Attendance
    from ncheck.hook.meeting.messages import Outcome, Told
    from ncheck.model.report import Report
    from ncheck.rank_variables import Rank

MODES = ("off", "warn", "on", "strict")
ON_PROBLEM = ("raise", "warn")
PROBES = ("none", "quick")
LONGEST = 3600.0  # seconds
USUAL_TIMEOUT = 30.0
PATIENCE = 600.0  # for ranks that are slow to start: as long as NCCL waits for them
MOST_LINES, LONGEST_LINE = 12, 300  # of a message: none of ours is longer
_PREFIX = "ncheck: "


class PreflightError(NcheckError):
    """The job would fail or hang. The message is the same on every rank; `report` is there if there is one."""

    exit_code = 1

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


def preflight(  # noqa: PLR0913, PLR0917  the words of one call
    on_problem: Literal["raise", "warn"] = "raise",
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    timeout: float | None = None,
    apply: bool = False,  # noqa: FBT001, FBT002
    strict: bool = False,  # noqa: FBT001, FBT002
    probe: Literal["none", "quick"] = "none",
    watch: bool = False,  # noqa: FBT001, FBT002
    history: str | os.PathLike[str] = "",
) -> Report:
    """Check the nodes of this job from inside it, and return the report: the same one on every rank.

    Every rank calls it, before `init_process_group`, `hvd.init()` or `MPI_Init`. An error stops the job: every rank
    raises PreflightError with the same words, and rank 0 prints the report on standard error.

    `on_problem`: "warn" prints the report and lets the job go on. `select` and `ignore`: names of checks, as for `run`.
    `timeout`: seconds within which every rank returns or raises, from its own call;
    None is 30, up to 90 where a rank that is missing may still start, and up to ten minutes while the process of each
    is seen to start. `apply`: sets the variables of
    the launch plan in this process, so that NCCL and gloo read them; those that are set already stay as they are. An
    error that these variables mend then stops nothing. `strict`: stops the job also for what could not be checked, and
    for trouble of ncheck itself. `probe`: "quick" measures an all-reduce for a few seconds, if no GPU is in use, and
    rank 0 prints the result; what it finds is a warning. `watch`: after that, the job is watched as long as rank 0
    runs. Where it stands still, rank 0's standard error gets the cause, and its folder the evidence. `history`: a
    file on rank 0's node; after the job it gets a note of how that ended, and of what links counted meanwhile.

    NCHECK=off, warn, on or strict in the environment wins over the arguments, NCHECK_TIMEOUT over `timeout`,
    NCHECK_WATCH=1 or 0 over `watch`.
    Raises SettingsError for arguments and variables that are wrong, and LauncherVariablesError for those of a launcher.
    """
    began = time.monotonic()
    options = _Options(
        on_problem, _words(select, "select"), _words(ignore, "ignore"), timeout, apply, strict, probe, watch,
        os.environ, _path(history),
    )  # fmt: skip
    if options.off:
        return _unchecked("NCHECK=off")
    if _imports_the_script_again():
        return _unchecked("a process that a rank started imports the script again")
    from ncheck.rank_variables import LauncherVariablesError, read_rank

    try:
        rank = read_rank(os.environ)
        secret = rank.secret or bool(os.environ.get("NCHECK_TOKEN"))
        return _checked(replace(rank, secret=secret), options, began)
    except (PreflightError, SettingsError):
        raise
    except LauncherVariablesError as error:
        if options.raises:
            raise
        return _went_wrong(str(error), options, speaks=True)
    except Exception as error:  # noqa: BLE001  whatever it is, the job is to go on
        if os.environ.get("NCHECK_DEBUG"):
            import traceback

            traceback.print_exc()
        words = f"the checks failed and were skipped: {type(error).__name__}: {error} (NCHECK_DEBUG=1 shows where)"
        return _went_wrong(words, options, speaks=_speaks_for_node(os.environ))


def _imports_the_script_again() -> bool:
    """Whether this is a child by multiprocessing's spawn, such as a data loader's worker, that runs the script's top
    level once more. Afterwards `__main__` is `__mp_main__` there.
    """
    again = sys.modules.get("__mp_main__")
    return again is not None and sys.modules.get("__main__") is not again


class _Options:
    """The arguments, with what the environment says. Raises SettingsError."""

    def __init__(  # noqa: PLR0913, PLR0917  the words of one call
        self,
        on_problem: str,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        timeout: float | None,
        apply: bool,  # noqa: FBT001
        strict: bool,  # noqa: FBT001
        probe: str,
        watch: bool,  # noqa: FBT001
        environ: Mapping[str, str],
        history: str = "",
    ) -> None:
        mode = environ.get("NCHECK", "").strip().lower()
        if mode and mode not in MODES:
            raise SettingsError(f"NCHECK={_shown(mode)} is not one of {', '.join(MODES)}")
        self.off = mode == "off"
        if on_problem not in ON_PROBLEM:
            raise SettingsError(f"on_problem={on_problem!r} is not one of {', '.join(ON_PROBLEM)}")
        if probe not in PROBES:
            raise SettingsError(f"probe={probe!r} is not one of {', '.join(PROBES)}")
        for name, value in (("apply", apply), ("strict", strict), ("watch", watch)):
            if not isinstance(value, bool):  # "no" is true
                raise SettingsError(f"{name}={value!r} is not True or False")
        self.raises = mode in ("on", "strict") or (mode != "warn" and on_problem == "raise")
        self.strict = mode == "strict" or (mode != "warn" and strict)
        self.select, self.ignore, self.apply, self.probe = select, ignore, apply, probe
        self.watch = _switch(environ, "NCHECK_WATCH", watch)
        self.history = history
        self.stays = self.watch or bool(history)  # as long as the job
        self.stalled = None
        if stalled := environ.get("NCHECK_STALLED", "").strip():
            from ncheck.model.job import LEAST_STALLED

            self.stalled = _seconds(stalled, "NCHECK_STALLED", LEAST_STALLED)
        given = environ.get("NCHECK_TIMEOUT", "").strip()
        self.patience = 0.0 if given or timeout is not None else PATIENCE
        wanted = USUAL_TIMEOUT if timeout is None else timeout
        self.timeout = _seconds(given or wanted, "NCHECK_TIMEOUT" if given else "timeout")

    @property
    def unwatched(self) -> str:
        """What is not done where the process has ended that stays."""
        return "the job is not watched" if self.watch else "how the job ends is not noted"

    def forbid(self, result: Told) -> bool:
        """Whether a verdict is a reason to stop the job, whatever is done about that."""
        verdict = result.verdict
        late = bool(verdict.get("late")) and verdict.get("ranks") is True
        return bool(result.ended) or late or verdict["stop"] or (self.strict and verdict["unsure"])


def _seconds(value: object, name: str, least: float = 0.0) -> float:
    try:
        seconds = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except ValueError:
        seconds = math.nan
    if not least <= seconds <= LONGEST or not seconds:
        expected = f"{least:.0f} to {LONGEST:.0f} seconds" if least else f"seconds above 0, at most {LONGEST:.0f}"
        raise SettingsError(f"{name}={_shown(str(value))}: expected {expected}")
    return seconds


_SWITCH = {"1": True, "on": True, "true": True, "0": False, "off": False, "false": False}


def _switch(environ: Mapping[str, str], name: str, otherwise: bool) -> bool:  # noqa: FBT001
    """Return what a variable says, which wins if it is set."""
    word = environ.get(name, "").strip().lower()
    if word and word not in _SWITCH:
        raise SettingsError(f"{name}={_shown(word)} is not one of {', '.join(_SWITCH)}")
    return _SWITCH[word] if word else otherwise


def _words(value: object, name: str) -> tuple[str, ...]:
    words = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(word, str) for word in words):
        raise SettingsError(f"{name} expects names of checks, such as {name}=('NC3', 'mtu-differs')")
    return words


def _path(value: object) -> str:
    """Return the whole path of a file; "" for none."""
    if not value:
        return ""
    if not isinstance(value, str | os.PathLike):
        raise SettingsError(f"history={value!r} is not the path of a file")
    return os.path.join(_folder(), os.path.expanduser(os.fspath(value)))  # noqa: PTH111, PTH118  pathlib costs a start


def _shown(text: str) -> str:
    from ncheck.text import printable

    return printable(text, 60)


class _Last:
    """The outcome of this process's last meeting: a script that calls preflight again, or that `python -m ncheck.hook`
    runs, meets nobody a second time.
    """

    rank: Rank | None = None
    outcome: Outcome | None = None


def _checked(rank: Rank, options: _Options, began: float) -> Report:
    from ncheck.hook.meeting.messages import NotMet

    first = rank != _Last.rank or _Last.outcome is None
    if first:
        _Last.outcome = _met(rank, options, options.timeout - (time.monotonic() - began))
        _Last.rank = rank
    outcome = _Last.outcome
    assert outcome  # noqa: S101  it was set above
    speaks = first and (rank.rank == 0 or rank.local_rank in (None, 0))
    if not isinstance(outcome, NotMet):
        return _decided(rank, options, outcome, speaks=first and rank.rank == 0)
    heir = _heir(rank)
    absent = outcome.kind in ("refused", "ranks", "ended") and heir  # the others have met, with the rank
    counts = outcome.kind != "ranks" or missing_ranks_stop(options.select, options.ignore)
    if outcome.is_error and not absent and counts:
        return _stopped(f"{STOPPED}: {outcome.text}{heir}", None, options, speaks=speaks)
    return _went_wrong(f"the nodes of this job were not checked: {outcome.text}{heir}", options, speaks=speaks)


# What a verdict means for this rank


STOPPED = "ncheck stopped this job before it started"


def _decided(rank: Rank, options: _Options, result: Told, *, speaks: bool) -> Report:
    verdict: dict[str, Any] = result.verdict
    if "refused" in verdict:
        raise SettingsError(_clean(verdict["refused"]))
    from ncheck.hook.late_report import unpacked

    packed = str(verdict["report"])
    report = unpacked(packed) if packed else _unchecked("the report is too large to be sent to every rank")
    if options.apply:
        apply_plan(rank, verdict)
    if result.ended:
        ended = ", ".join(member.shown for member in result.ended)
        words = f"{STOPPED}: {ended} ended before the verdict\n  more: ncheck explain NC803"
        return _stopped(words, report, options, speaks=speaks)
    if verdict.get("late") and options.forbid(result) and not verdict["stop"]:
        words = _clean(f"{STOPPED}: {verdict['late']}\n  more: ncheck explain NC805")
        return _stopped(words, report, options, speaks=speaks)
    heir = _heir(rank) if verdict.get("missing") else ""
    if options.forbid(result):
        return _stopped(_clean(verdict["short"]) + heir, report, options, speaks=False)
    if heir and speaks:
        _say(heir.strip())
    return report


def _clean(words: object) -> str:
    """Return the lines of a message that came from another process, as a terminal may have them."""
    from ncheck.text import printable

    return "\n".join(printable(line, LONGEST_LINE) for line in str(words).split("\n")[:MOST_LINES])


# All that a plan sets: a verdict is another process's word, and LD_PRELOAD would be another program.
APPLIED = frozenset((
    "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD", "NCCL_IB_HCA",
    "NCCL_IB_GID_INDEX", "GLOO_SOCKET_IFNAME",
))  # fmt: skip


def apply_plan(rank: Rank, verdict: Mapping[str, Any]) -> None:
    """Set the plan's variables in this process: those that nobody has set."""
    own = next((node for node, ranks in verdict["nodes"].items() if rank.rank in ranks), "")
    for name, value in {**verdict["env"], **verdict["per_node"].get(own, {})}.items():
        if name in APPLIED:
            os.environ.setdefault(name, value)


def missing_ranks_stop(select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Whether rank-missing is judged and stops a job, by the words of --select and --ignore: no check is imported."""

    def names(words: Sequence[str]) -> bool:
        return any("NC801".startswith(word.upper()) or word.lower() in {"rank-missing", "ranks"} for word in words)

    return (not select or names(select)) and not names(ignore)


def _heir(rank: Rank) -> str:
    """Return a line where this process may be none of the job: a rank started it, and it inherited the variables."""
    from ncheck.hook.neighbours import inherited_from

    above = inherited_from(rank)
    name = rank.named.get("rank", "")
    return (
        f"\n  {above} also has {name}. If this is a helper process of that rank, set NCHECK=off here" if above else ""
    )


def _print(verdict: Mapping[str, Any]) -> None:
    if verdict.get("page"):
        _say(str(verdict["page"]).rstrip("\n"), prefix="")
    if verdict.get("note"):
        _say(str(verdict["note"]))
    if verdict.get("warning"):
        _say(f"warning: {verdict['warning']}")


def _stopped(message: str, report: Report | None, options: _Options, *, speaks: bool) -> Report:
    if options.raises:
        raise PreflightError(message, report)
    if speaks:
        _say(message, prefix="")
    return report or _unchecked(message)


def _went_wrong(message: str, options: _Options, *, speaks: bool) -> Report:
    """Note that the nodes were not checked: no reason to stop a job, unless nothing unchecked may start."""
    if options.strict and options.raises:
        raise PreflightError(f"ncheck could not check this job, and strict is set: {message}")
    if speaks:
        _say(f"warning: {message}")
    return _unchecked(message)


def _say(text: str, prefix: str = _PREFIX) -> None:
    """Print on standard error, which a job may have closed."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{prefix}{text}\n")
        sys.stderr.flush()


def _speaks_for_node(environ: Mapping[str, str]) -> bool:
    """Whether this process is the first on its node, as far as one can tell where even the launcher was not read."""
    names = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID", "HOROVOD_LOCAL_RANK")
    return next((environ[name] for name in names if environ.get(name)), "0") == "0"


def _unchecked(reason: str) -> Report:
    from ncheck.model.report import no_report

    return no_report(reason)


# The children


def _met(rank: Rank, options: _Options, left: float) -> Outcome:
    from ncheck.hook.meeting.sockets import meet
    from ncheck.hook.meeting.wire import job_token

    began = time.monotonic()
    with ExitStack() as stack:
        # The first rank of a node is nearly always asked: its child gets ready while the ranks are awaited.
        first = rank.rank == 0 or rank.local_rank == 0
        early = [_start_node_part(stack, options, left + options.patience)] if first else []
        examiner = _start_examiner(stack, options) if rank.rank == 0 else None

        def serve(connection: socket.socket) -> Popen[bytes]:
            process, control = early.pop() if early else _start_node_part(stack, options, left + options.patience)
            socket.send_fds(control, [b"."], [connection.fileno()])
            return process

        def examine(attendance: Attendance, sockets: Mapping[str, socket.socket], seconds: float) -> Popen[bytes]:
            assert examiner  # noqa: S101  rank 0 alone is asked to examine
            process, control = examiner
            now = time.monotonic()
            request = _request(rank, options, attendance, waited=now - began, until=now + seconds)
            with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: the hub says so, with its last words
                _send(control, request, sockets)
            return process

        outcome = meet(
            rank,
            job_token(rank, os.environ.get("NCHECK_TOKEN", ""), str(os.getuid())),
            timeout=left,
            start_node_part=serve,
            start_examiner=examine,
            rendezvous=os.environ.get("NCHECK_RENDEZVOUS", ""),
            show=_print,
            patience=options.patience,
        )
        if options.stays and examiner:
            _let_watch(examiner[1], options, outcome)
        return outcome


def _let_watch(control: socket.socket, options: _Options, outcome: Outcome) -> None:
    """Let the job be watched if it goes on, by the process that the examiner has started for that."""
    from ncheck.hook.meeting.messages import NotMet

    if isinstance(outcome, NotMet) or "refused" in outcome.verdict or (options.raises and options.forbid(outcome)):
        return
    try:
        control.send(b".")
    except OSError:
        _say(f"warning: {options.unwatched}: the process that should do it has ended")


WATCHING = {"NCHECK_WATCHER": "1"}  # by this variable ncheck.triage.agent.processes knows what is no part of the job


def _start_node_part(stack: ExitStack, options: _Options, seconds: float) -> tuple[Popen[bytes], socket.socket]:
    from subprocess import DEVNULL

    call = "main(int(sys.argv[1]),float(sys.argv[2]),len(sys.argv)>3)"
    arguments = (str(os.getpid()), f"{seconds:.0f}", *(["watch"] if options.stays else []))
    return _started(stack, options, "ncheck.hook.node_part", call, arguments, stdout=DEVNULL, site=False)


def _start_examiner(stack: ExitStack, options: _Options) -> tuple[Popen[bytes], socket.socket]:
    from subprocess import PIPE

    call, arguments = "main(int(sys.argv[1]))", (str(os.getpid()),)
    return _started(stack, options, "ncheck.hook.examiner", call, arguments, stdout=PIPE, stderr=PIPE)


def _started(
    stack: ExitStack,
    options: _Options,
    module: str,
    call: str,
    arguments: tuple[str, ...],
    **how: Any,  # noqa: ANN401
) -> tuple[Popen[bytes], socket.socket]:
    """Start a child that is ended with the stack, and return it with a socket that is its standard input."""
    from ncheck.hook.children import start_child
    from ncheck.this_machine.process import end

    ours, its = socket.socketpair()
    with its:
        stack.enter_context(ours)
        environ = {**os.environ, **WATCHING} if options.stays else None
        process = start_child(module, call, arguments, stdin=its.fileno(), environ=environ, **how)
    for pipe in filter(None, (process.stdout, process.stderr)):
        stack.enter_context(pipe)
    stack.callback(end, process, 0.0)
    return process, ours


def _send(control: socket.socket, request: dict[str, Any], sockets: Mapping[str, socket.socket]) -> None:
    """Send the examiner its request and the sockets. Blocks until it reads, where the job has thousands of ranks."""
    text = json.dumps(request | {"sockets": list(sockets)}).encode()
    numbers = [*(one.fileno() for one in sockets.values()), *([2] if request["watch"] else [])]
    control.settimeout(max(request["until"] - time.monotonic(), 0.1))
    control.sendall(len(text).to_bytes(8, "big") + text)
    while numbers:
        socket.send_fds(control, [b"."], numbers[:_FDS])
        del numbers[:_FDS]


_FDS = 200  # file descriptors in one message: the kernel takes 253


def _request(rank: Rank, options: _Options, attendance: Attendance, *, waited: float, until: float) -> dict[str, Any]:
    """Return what the examiner is to know of the job: see there."""
    return {
        "members": [
            asdict(replace(one, node_name=one.node_name or rank.host_of(one.rank))) for one in attendance.members
        ],
        "missing": {number: attendance.host_of(rank, number) for number in attendance.missing},
        "ended": list(attendance.ended),
        "problems": [[one.kind, list(one.ranks), one.text] for one in attendance.problems],
        "could_come": attendance.missing_is_error,
        "launcher": rank.launcher,
        "packages": _packages(rank),
        "size": rank.size,
        "waited": waited,
        "until": until,
        "select": list(options.select),
        "ignore": list(options.ignore),
        "strict": options.strict,
        "apply": options.apply,
        "probe": options.probe,
        "variables": sorted(name for name in os.environ if name.startswith(("NCCL_", "GLOO_", "TP_"))),
        "argv": list(sys.argv),
        "columns": _columns(),
        "watch": options.stays and {
            "alarms": options.watch, "stalled": options.stalled, "folder": _folder(), "history": options.history,
        },
    }  # fmt: skip


def _packages(rank: Rank) -> list[str]:
    """Return the modules that the job certainly uses. With python -m ncheck.hook it has imported none yet."""
    from ncheck.launchers import RANK_VARIABLES

    of_launcher = next((one.runs for one in RANK_VARIABLES if one.name == rank.launcher), ())
    return sorted({*of_launcher, *(name for name in list(sys.modules) if "." not in name)})


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  pathlib costs a start
    except OSError:
        return ""


def _columns() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80
