"""What a run may cost, in counts that a busy machine does not change. Who needs more writes the new number, and why."""

from __future__ import annotations

import cProfile
from collections.abc import Callable

from ncheck.fleet.recording import encode, loaded, trusted
from ncheck.model.evidence import Evidence
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.settings import Settings

from tests.recorded.clusters import cluster
from tests.recorded.make import evidence

NODES = 16
HOSTS = cluster(*(f"gpu{number:02}" for number in range(1, NODES + 1)))
MORE = 1.05  # what a count may grow by unnoticed

# Python function calls a node with 8 GPUs and 8 HCAs (Python 3.11; newer ones make fewer)
READING, JUDGING = 6_800, 61_600


def calls(work: Callable[[], object]) -> float:
    """Return the Python function calls a node, once everything was imported and compiled."""
    work()
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats()) / NODES


def test_reading_and_judging_a_recorded_node_costs_no_more_calls_than_before() -> None:
    files = [(host.name, encode(evidence(host, at + 1), at, NODES).encode()) for at, host in enumerate(HOSTS)]

    def read() -> tuple[Evidence, ...]:
        return trusted("recording", loaded(files))

    nodes = read()
    assert judge_again(nodes, Settings(), Silent()).exit_code == 0
    assert calls(read) <= READING * MORE
    assert calls(lambda: judge_again(nodes, Settings(), Silent())) <= JUDGING * MORE
