"""What a signal says of the process that it ended, whichever launcher names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncheck.triage.certainty import Grade
from ncheck.triage.signature import LineClue

_OOM = "sudo journalctl -k -g oom"

HANGUP = LineClue("job_ended", Grade.LIKELY, kind="hangup", meaning="the terminal or ssh session in which the job was"
                  " started was closed (SIGHUP)", look="last -5", do="start it outside of the terminal's session, with"
                  " setsid before the same command: setsid COMMAND > job.log 2>&1 < /dev/null &")  # fmt: skip
_INTERRUPTED = LineClue("job_ended", Grade.POSSIBLE, ("rank_crashed",), kind="cancelled",
                        meaning="somebody pressed ^C, or sent SIGINT")  # fmt: skip
_CRASHED = LineClue("rank_crashed", Grade.LIKELY, ("software_bug", "version_mismatch"), kind="segfault",
                    meaning="a rank crashed in native code", look="sudo journalctl -k -g segfault")  # fmt: skip
_ABORTED = LineClue("rank_crashed", Grade.ECHO, ("software_bug",), "gone", kind="abort",
                    meaning="a rank aborted itself, or its watchdog did: its message is above")  # fmt: skip
KILLED = LineClue("rank_crashed", Grade.LIKELY, ("gpu_oom",), kind="killed",
                  meaning="a rank was killed, usually because memory ran out; otherwise somebody killed it",
                  look=_OOM)  # fmt: skip

# Launchers send it to the other ranks after one has failed.
_TERMINATED = LineClue("job_ended", Grade.ECHO, ("rank_crashed", "node_failed"), "gone", kind="cancelled",
                       meaning="something sent SIGTERM: the scheduler, somebody, or the launcher after another rank"
                       " failed")  # fmt: skip

_BY_NUMBER: Mapping[int, LineClue] = {
    1: HANGUP, 2: _INTERRUPTED, 6: _ABORTED, 15: _TERMINATED, **dict.fromkeys((4, 8, 11), _CRASHED),
    7: LineClue("shm_too_small", Grade.LIKELY, ("rank_crashed",)),  # SIGBUS: the file system ran out of memory
    **dict.fromkeys((10, 12), replace(
        _INTERRUPTED, meaning="a scheduler or somebody sent SIGUSR1 or SIGUSR2, as Slurm does before a time limit")),
    13: LineClue("rank_crashed", Grade.ECHO, ("firewall",), "gone",
                 meaning="a rank wrote to a connection whose other end was gone"),
    24: LineClue("job_ended", Grade.LIKELY, kind="time-limit",
                 meaning="a rank reached its limit of CPU time (ulimit -t)"),
}  # fmt: skip

# As strsignal() and the shells name them, and as signal.h does.
_NUMBERS = {
    "hangup": 1, "interrupt": 2, "illegal instruction": 4, "aborted": 6, "bus error": 7, "floating point exception": 8,
    "killed": 9, "segmentation fault": 11, "terminated": 15,
    "sighup": 1, "sigint": 2, "sigill": 4, "sigabrt": 6, "sigbus": 7, "sigfpe": 8, "sigkill": 9, "sigusr1": 10,
    "sigsegv": 11, "sigusr2": 12, "sigpipe": 13, "sigterm": 15, "sigxcpu": 24,
}  # fmt: skip
NAMES = "|".join(name[0].upper() + name[1:] for name in _NUMBERS if not name.startswith("sig"))
_OF_SHELLS = 128  # a shell's exit code for a signal is this and its number


def of_signal(signal: str) -> LineClue:
    """Return the clue of a signal, given by its number or name: "9", "Killed", "SIGKILL", "Signals.SIGKILL"."""
    name = signal.lower().rpartition(".")[2]
    return _BY_NUMBER.get(int(name) if name.isdecimal() else _NUMBERS.get(name, 0), KILLED)


def of_exit_code(code: int) -> LineClue | None:
    """Return the clue of the signal that an exit code stands for: 137 or -9; None if for none."""
    if code < 0:
        return of_signal(str(-code))
    return of_signal(str(code - _OF_SHELLS)) if code - _OF_SHELLS in {*_BY_NUMBER, 9} else None
