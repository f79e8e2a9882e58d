"""The libraries, from the answer to the fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.libraries import LIBRARIES, LibraryFacts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]


def read(answered: Answered, value: JsonValue) -> object:
    return facts_of(answered({LIBRARIES: Reply(Status.OK, value=value)}), [LibraryFacts])[LibraryFacts]


def test_what_nothing_needs_is_absent(answered: Answered) -> None:
    assert read(answered, {"verbs": None, "mpi": ""}) == LibraryFacts(Absent("no InfiniBand or RoCE device"), "")
    assert read(answered, {"verbs": "lost", "mpi": None}) == LibraryFacts("lost", Absent("no daemon of Open MPI"))


@pytest.mark.parametrize("value", [None, {}, {"verbs": None}, {"verbs": 7, "mpi": ""}, {"verbs": "", "mpi": []}])
def test_nonsense_is_unread(answered: Answered, value: JsonValue) -> None:
    assert isinstance(read(answered, value), Unread)


def test_the_devices_of_hcas_are_read_and_a_recording_of_an_earlier_release_has_none(answered: Answered) -> None:
    value: JsonValue = {"verbs": "", "uverbs": {"mlx5_0": "Permission denied"}, "listed": ["mlx5_0"], "mpi": ""}
    assert read(answered, value) == LibraryFacts("", "", {"mlx5_0": "Permission denied"}, ("mlx5_0",))
    assert read(answered, {"verbs": "", "mpi": ""}) == LibraryFacts("", "", Absent("no InfiniBand or RoCE device"))
    assert isinstance(read(answered, {"verbs": "", "uverbs": {"-rf": ""}, "listed": [], "mpi": ""}), Unread)
