"""Every signature matches the log line above it in the source, names known causes, and needs a keyword in the line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from ncheck.triage.causes import CAUSES, SYMPTOM, KnownCause, filled
from ncheck.triage.certainty import Grade
from ncheck.triage.literals import WordIndex, literals
from ncheck.triage.signature import LineClue
from ncheck.triage.signatures import MODULES, SIGNATURES

# "    # NCCL WARN Duplicate GPU detected : rank 2 and rank 3 both on CUDA device 3b000" and the signature below it
_ROW = re.compile(r"((?:^    # .*\n)+)^    (?:row|Signature)\(", re.MULTILINE)


def examples(module: ModuleType) -> list[list[str]]:
    """Return the comment lines above each signature, in order."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    table = source[source.index("SIGNATURES") :]
    return [[line.removeprefix("    # ") for line in found[1].splitlines()] for found in _ROW.finditer(table)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_each_signature_matches_the_line_above_it(module: ModuleType) -> None:
    shown = examples(module)
    assert len(shown) == len(module.SIGNATURES)
    unread = [
        lines
        for lines, signature in zip(shown, module.SIGNATURES, strict=True)
        if not any(signature.pattern.search(line) for line in lines)
    ]
    assert unread == []


def line_clues() -> list[LineClue]:
    """Return the clue of every signature for its own example lines."""
    found = []
    for module in MODULES:
        for lines, signature in zip(examples(module), module.SIGNATURES, strict=True):
            found += [clue for line in lines if (clue := signature.read(line))]
    return found


# What only a running job shows, by its processes, sockets and counters.
OF_A_RUNNING_JOB = {
    "rank_stopped", "rank_missing", "host_memory", "data_loader", "checkpoint_write", "deadlock", "slow_rank",
    "gpu_idle", "network_stalled",
}  # fmt: skip


def test_every_cause_is_in_the_closed_list() -> None:
    named = {name for clue in line_clues() for name in (clue.cause, *clue.others)} - {""}
    assert named - set(CAUSES) == set()
    unread = set(CAUSES) - {clue.cause for clue in line_clues()} - OF_A_RUNNING_JOB
    assert unread <= {"same_hostname", "algorithm_differs", "healthy"}  # of several lines together
    assert all(clue.cause not in clue.others for clue in line_clues())


def test_every_cause_is_explained_and_has_a_command_that_shows_it() -> None:
    assert [name for name, cause in CAUSES.items() if not (cause.about and cause.look)] == []
    assert [name for name, cause in CAUSES.items() if not cause.about] == []


def test_a_possible_cause_names_other_causes() -> None:
    alone = [clue for clue in line_clues() if clue.grade is Grade.POSSIBLE and not clue.others]
    assert {clue.cause for clue in alone} <= {"port_in_use", "rank_crashed", "gpudirect_rdma"}


# How a command begins that changes something; one that makes the next run say more has DEBUG in it.
_CHANGES = (
    "export ", "unset ", "ulimit ", "sudo modprobe ", "sudo systemctl restart ", "sudo apt-get install ",
    'eval "$(ncheck',
    "sudo timedatectl set-ntp", "sudo sysctl ", "make ", "ray stop", "kill -CONT ", "HOROVOD_WITH_",
    "find /usr /opt -name ",
)  # fmt: skip
_PLACEHOLDER = re.compile(
    r"(?<![$A-Z_{])\b(?:NODE|JOBID|ADDRESS|POD|HOST|PATH|USER|FILE|IMAGE|PORT|LOGS|hostfile)\b(?![=_])"
)


def test_every_fix_changes_something_and_no_command_has_a_placeholder() -> None:
    known: list[KnownCause | LineClue] = [*CAUSES.values(), SYMPTOM, *line_clues()]
    fixes = {one.fix for one in known if one.fix}
    looks = {one.look for one in known if one.look}
    assert {fix for fix in fixes if not fix.startswith(_CHANGES) or "DEBUG" in fix} == set()
    assert {command for command in fixes | looks if _PLACEHOLDER.search(command)} == set()
    assert {name for name, cause in CAUSES.items() if filled(cause.look) != cause.look} <= OF_A_RUNNING_JOB
    assert (filled("kill -CONT PID", 7), filled("kill -CONT PID"), filled("ibstat")) == ("kill -CONT 7", "", "ibstat")


def test_every_command_is_one_valid_shell_command() -> None:
    known: list[KnownCause | LineClue] = [*CAUSES.values(), SYMPTOM, *line_clues()]
    typed = sorted({command for one in known for command in (one.fix, one.look)} - {""})
    assert [command for command in typed if "\n" in command or "{" in command] == []
    script = "\n".join(f"one() {{\n{command}\n}}" for command in typed)
    read = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False, timeout=60)
    assert (read.returncode, read.stderr) == (0, ""), typed


def test_all_signatures_are_used() -> None:
    assert len(SIGNATURES) == sum(len(module.SIGNATURES) for module in MODULES)


def test_every_alternative_of_a_signature_requires_a_word() -> None:
    assert [signature.pattern.pattern for signature in SIGNATURES if () in literals(signature.pattern)] == []


def test_the_words_of_a_pattern_are_those_of_each_alternative() -> None:
    found = literals(re.compile(r"Xid \(\d+\): 79|(?:GPU|[Bb]us).*(?:error|is lost)+"))
    assert found == {("xid (", "): "), ("error", "gpu"), ("is lost", "gpu"), ("error", "bus"), ("is lost", "bus")}
    assert literals(re.compile(r"\w+ab|x+")) == {()}
    assert literals(re.compile(r"EI00(?:04|14): ")) == {("ei: ",)}


def test_an_index_finds_the_entries_whose_words_a_line_has() -> None:
    index = WordIndex([([("refused", "con")], "a"), ([("connection refused",), ("reset",)], "b"), ([("con",)], "c")])
    assert index.candidates(b"a connection refused") == ["a", "b", "c"]
    assert index.candidates(b"refused") == []
    assert index.candidates(b"reset") == ["b"]
    assert WordIndex([([()], "always"), ([("x",)], "x")]).candidates(b"nothing") == ["always"]
