"""The cheap look at a job, at real processes of this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from ncheck.agent.sources import Sources
from ncheck.decode import decoded
from ncheck.triage.agent import pulse
from ncheck.triage.facts.pulse import PulseFacts


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that writes a mebibyte whenever it is told to, and says so."""
    loop = "for _ in sys.stdin:\n file.write(bytes(1 << 20))\n print(flush=True)"
    program = f"import sys\nfile = open('out', 'wb', buffering=0)\n{loop}"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        yield process
        process.kill()


def looked(*ranks: Mapping[str, object]) -> PulseFacts:
    answer = pulse.answer(Sources(), {"ranks": list(ranks)}, 5.0)
    found = decoded(answer, PulseFacts)
    assert isinstance(found, PulseFacts)
    return found


def rank(process: subprocess.Popen[str]) -> dict[str, object]:
    started = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
    return {"pid": process.pid, "started": started, "namespace": ""}


def written(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()


def test_what_a_rank_writes_adds_up(writer: subprocess.Popen[str]) -> None:
    written(writer)
    (first,) = looked(rank(writer)).ranks
    written(writer)
    (last,) = looked(rank(writer)).ranks
    assert first.moved is not None
    assert last.moved is not None
    assert last.moved - first.moved >= 1 << 20
    assert (last.pid, last.cpu >= first.cpu) == (writer.pid, True)


def test_a_rank_that_ended_is_left_out_also_as_a_zombie(writer: subprocess.Popen[str]) -> None:
    one = rank(writer)
    assert len(looked(one).ranks) == 1
    writer.kill()
    while Path(f"/proc/{writer.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    assert looked(one).ranks == ()
    writer.wait()
    assert looked(one).ranks == ()


def test_another_process_with_its_number_is_not_the_rank(writer: subprocess.Popen[str]) -> None:
    assert looked({**rank(writer), "started": 1}).ranks == ()


def test_a_look_reads_no_folder_of_a_process_and_starts_no_program(writer: subprocess.Popen[str]) -> None:
    """Sixteen looks at eight ranks take less than a fifth of a second of CPU: 0.06 % of a core, one in 20 seconds."""
    one = rank(writer)
    sources = Sources()
    pulse.answer(sources, {"ranks": [one]}, 5.0)
    began = time.thread_time()
    for _ in range(16):
        pulse.answer(sources, {"ranks": [one] * 8}, 5.0)
    assert time.thread_time() - began < 16 * 0.0125
