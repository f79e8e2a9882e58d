"""Who comes last in most calls is named, and jitter names nobody: bench/last_comers.py has 1,000 seeds."""

from __future__ import annotations

from itertools import cycle

import pytest
from ncheck.triage.last_comers import FEWEST, LastComer, last_comer

from tests.ncheck.triage.arrivals import JITTERS, Jitter, calls


@pytest.mark.parametrize("jitter", JITTERS)
@pytest.mark.parametrize("ranks", [2, 16])
def test_jitter_alone_names_nobody(ranks: int, jitter: Jitter) -> None:
    for seed in range(6):
        found = calls(seed, ranks, FEWEST, jitter)
        assert last_comer(found, str) is None
        assert last_comer(found, lambda rank: f"node{rank // 8}") is None


@pytest.mark.parametrize("jitter", ["normal", "heavy", "lasting"])
def test_a_rank_that_is_slow_by_a_tenth_is_named_after_128_calls(jitter: Jitter) -> None:
    for seed in range(6):
        found = last_comer(calls(seed, 8, FEWEST, jitter, slow=(5,)), str)
        assert found
        assert (found.name, found.calls) == ("5", 128)
        assert (found.last > 100, 4_000 < found.waited < 16_000) == (True, True)


def test_a_node_of_which_any_rank_is_last_is_named_where_no_rank_is() -> None:
    found = calls(1, 32, FEWEST, slow=tuple(range(8, 16)))
    assert last_comer(found, str) is None
    by_node = last_comer(found, lambda rank: f"node{rank // 8}")
    assert by_node
    assert by_node.name == "node1"


TWO = {0: 100.0, 1: 200.0}


def test_it_is_said_how_often_and_for_how_long() -> None:
    assert last_comer([TWO] * FEWEST, str) == LastComer("0", FEWEST, FEWEST, 100.0, 200.0)


@pytest.mark.parametrize(
    "found",
    [
        [TWO] * (FEWEST - 1),
        [],
        [{0: 100.0, 1: 119.0}] * FEWEST,  # less than 20 us
        [{0: 1000.0, 1: 1049.0}] * FEWEST,  # less than 5 %: how an algorithm ends
        [{0: 100.0}] * FEWEST,
        [call for call, _ in zip(cycle([TWO, TWO, {0: 200.0, 1: 100.0}]), range(FEWEST))],  # two of three: chance
        [TWO] * 90 + [{0: 200.0, 1: 100.0}] * 38,  # for a while
    ],
)
def test_few_short_or_passing_waits_name_nobody(found: list[dict[int, float]]) -> None:
    assert last_comer(found, str) is None
