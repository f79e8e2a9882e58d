"""Which nodes of many dial which others: few each, both ways, and every rack every other."""

from __future__ import annotations

from itertools import combinations

import pytest
from ncheck.network.peers import ALL_UP_TO, RACK, some_of

SIZES = (ALL_UP_TO + 1, 512, 1000, 1024, 4096)


@pytest.mark.parametrize("count", SIZES)
def test_each_dials_a_few_others_and_whoever_dials_it(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    dialled = some_of(names)
    assert list(dialled) == names
    assert all(name not in others for name, others in dialled.items())
    assert all(name in dialled[other] for name, others in dialled.items() for other in others)
    assert 30 <= min(map(len, dialled.values())) <= max(map(len, dialled.values())) <= 45


@pytest.mark.parametrize("count", SIZES)
def test_each_dials_its_own_rack_and_others_elsewhere(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    for number, others in enumerate(some_of(names).values()):
        rack = {*names[number - number % RACK :][:RACK]} - {names[number]}
        assert rack <= others
        assert len(others - rack) >= RACK - 1


@pytest.mark.slow
@pytest.mark.parametrize("count", [512, 1024, 4096])
def test_every_two_racks_try_each_other(count: int) -> None:
    dialled = some_of([str(number) for number in range(count)])
    tried = {frozenset((int(one) // RACK, int(to) // RACK)) for one, others in dialled.items() for to in others}
    assert tried >= set(map(frozenset, combinations(range(count // RACK), 2)))
