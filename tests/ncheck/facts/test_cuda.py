"""The toolkit and cuDNN that a node answers, and versions that say more or less."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.cuda import CUDA, CudaToolkitFacts, CudnnFacts, alike
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, Reply, Source, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Source, Reply]], Evidence]
TOOLKIT = {"path": "/usr/local/cuda-12.4", "version": None}
COPY = {"path": "/opt/cudnn/lib/libcudnn.so.9", "version": "9.1.0"}


@pytest.fixture
def read(answered: Answered) -> Callable[..., tuple[object, ...]]:
    def facts(toolkit: Any = None, cudnn: Any = None, copies: Any = ()) -> tuple[object, ...]:
        value: Any = {"toolkit": toolkit, "cudnn": cudnn, "copies": list(copies)}
        known = facts_of(answered({CUDA: Reply(Status.OK, value=value)}), [CudaToolkitFacts, CudnnFacts])
        return known[CudaToolkitFacts], known[CudnnFacts]

    return facts


def test_what_is_there_and_what_is_not(read: Callable[..., tuple[object, ...]]) -> None:
    assert read() == (Absent("no nvcc"), Absent("no libcudnn"))
    assert read(TOOLKIT, COPY, ["8.9.7"]) == (
        CudaToolkitFacts("/usr/local/cuda-12.4", ""),
        CudnnFacts("/opt/cudnn/lib/libcudnn.so.9", "9.1.0", ("8.9.7",)),
    )
    assert read(copies=["8.9.7"])[1] == CudnnFacts("", "", ("8.9.7",))


def test_a_loader_that_finds_none_is_unread_and_so_is_nonsense(read: Callable[..., tuple[object, ...]]) -> None:
    assert read(TOOLKIT, {"error": "torch needs libcudnn.so.9"}) == (
        CudaToolkitFacts("/usr/local/cuda-12.4", ""),
        Unread("the cuDNN that the job loads: torch needs libcudnn.so.9", fix="ncheck explain NC231"),
    )
    hung = {"path": "/usr/local/cuda-12.4", "error": "nvcc --version: ended because of its time limit"}
    assert read(hung)[0] == Unread("/usr/local/cuda-12.4: nvcc --version: ended because of its time limit")
    assert read({**TOOLKIT, "version": "12.4; reboot"})[0] == CudaToolkitFacts("/usr/local/cuda-12.4", "")
    for wrong in ({**TOOLKIT, "path": "--version"}, "12.4"):
        assert isinstance(read(wrong)[0], Unread)


def test_versions_are_cut_to_what_all_of_them_say() -> None:
    assert alike({"a": "9.1.0.70", "b": "9.1.0", "c": ""}) == {"a": "9.1.0", "b": "9.1.0"}
    assert alike({}) == {}


def test_a_version_that_may_be_either_of_two_hides_no_difference_between_them() -> None:
    assert alike({"a": "12.4.1", "b": "12.4.0", "c": "12.4"}) == {"a": "12.4.1", "b": "12.4.0"}
    assert alike({"a": "9.1.0.70", "b": "8.9.7", "c": "9.1.0"}) == {"a": "9.1.0", "b": "8.9.7", "c": "9.1.0"}
    assert alike({"a": "12.10.0", "b": "12.1"}) == {"a": "12.10.0", "b": "12.1"}
