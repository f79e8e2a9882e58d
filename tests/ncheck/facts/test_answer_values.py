"""What may stand in an answer passes as it is, and nothing else does."""

from __future__ import annotations

import pytest
from ncheck.facts.definition import Fact
from ncheck.facts.environment import ENVIRONMENT, EnvironmentFacts
from ncheck.facts.gpus import NVML, GpuFacts
from ncheck.facts.infiniband import IBSTAT, SYSFS, InfinibandFacts
from ncheck.facts.interpreter import INTERPRETER, InterpreterFacts
from ncheck.facts.learning import definition_of, facts_of
from ncheck.facts.limits import LIMITS, LimitsFacts
from ncheck.facts.nics import INTERFACES, NicFacts
from ncheck.model.evidence import Answer, Evidence, JsonValue, Reply, Source, Status
from ncheck.model.fact import Unread

from tests.every_fact import every_fact
from tests.ncheck.conftest import Answered


def test_every_answer_is_read_as_a_declared_type() -> None:
    """Of a step and of a meeting point, an answer that cannot be read fails that step; the clock has no answer."""
    definitions = [one for fact in every_fact() if (one := definition_of(fact)) and one.parse]
    answers = {source for one in definitions for source in one.sources if isinstance(source, Answer)}
    assert {source.name for source in answers if source.shape is None} == {"step", "meeting", "clock"}


GPU: dict[str, JsonValue] = {"index": 0, "name": "NVIDIA H100", "uuid": "", "pci": ""}


@pytest.mark.parametrize("index", ["0", None, True, 0.0, [], 10**400])
def test_a_gpu_index_that_is_no_number_makes_the_gpus_unknown(answered: Answered, index: JsonValue) -> None:
    value: JsonValue = {"driver": "550", "cuda": "12.4", "gpus": [GPU, {**GPU, "index": index}]}
    fact = facts_of(answered({NVML: Reply(Status.OK, value=value)}), [GpuFacts])[GpuFacts]
    assert isinstance(fact, Unread)
    assert fact.reason.startswith("the agent's gpus cannot be read: gpus[1].index: ")


def test_null_is_not_the_word_none(answered: Answered) -> None:
    value: JsonValue = {"path": "/usr/bin/python3", "version": "3.10", "packages": {"torch": None}}
    fact = facts_of(answered({INTERPRETER: Reply(Status.OK, value=value)}), [InterpreterFacts])[InterpreterFacts]
    assert fact == Unread("the agent's interpreter cannot be read: packages['torch']: not text")


@pytest.mark.parametrize("error", [RuntimeError("no"), OSError("no"), RecursionError("no"), AssertionError("no")])
def test_whatever_a_reader_raises_costs_that_fact_alone(
    answered: Answered, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: Evidence) -> GpuFacts:
        raise error

    monkeypatch.setattr("ncheck.facts.gpus.FACTS", (Fact(GpuFacts, (NVML,), read),))
    names = ("memlock", "open_files", "processes", "address_space", "cpu_seconds", "file_size")
    limits = Reply(Status.OK, value={**dict.fromkeys(names), "shm": {"total": 1, "free": 1}})
    gpus = Reply(Status.OK, value={"gpus": [GPU]})
    facts = facts_of(answered({NVML: gpus, LIMITS: limits}), [GpuFacts, LimitsFacts])
    assert facts[GpuFacts] == Unread(f"could not be parsed: {type(error).__name__}: no")
    assert isinstance(facts[LimitsFacts], LimitsFacts)


IBSTAT_OUTPUT = """CA '{name}'
\tCA type: MT4129
\tNumber of ports: 1
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
"""


@pytest.mark.parametrize("name", ["--flush", "-x", "a b", "a/b", "", "a\x1b", "x" * 65])
def test_what_no_device_is_called_makes_the_devices_unknown(answered: Answered, name: str) -> None:
    """The name becomes a word of a command, where a program would take it for an option."""
    ibstat = Reply(Status.OK, exit_status=0, stdout=IBSTAT_OUTPUT.format(name=name or " "))
    link: JsonValue = {"name": name, "index": 1}
    sources: dict[type[object], dict[Source, Reply]] = {
        NicFacts: {INTERFACES: Reply(Status.OK, value={"interfaces": [link]})},
        InfinibandFacts: {IBSTAT: ibstat, SYSFS: Reply(Status.MISSING)},
    }
    for fact, replies in sources.items():
        assert isinstance(facts_of(answered(replies), [fact])[fact], Unread)


def test_a_network_device_of_an_adapter_is_held_to_the_same(answered: Answered) -> None:
    place = "/sys/class/infiniband/mlx5_0"
    port = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec", "gid_attrs/ndevs/0": "--flush"}
    tree: dict[str, JsonValue] = {f"{place}/ports/1/{name}": text for name, text in port.items()}
    replies: dict[Source, Reply] = {IBSTAT: Reply(Status.MISSING), SYSFS: Reply(Status.OK, value=tree)}
    assert isinstance(facts_of(answered(replies), [InfinibandFacts])[InfinibandFacts], Unread)


@pytest.mark.parametrize("path", ["--in-place=x", "-x", "/etc/nccl\n.conf", "/\u2028"])
def test_a_path_that_no_command_should_get_makes_the_environment_unknown(answered: Answered, path: str) -> None:
    value: JsonValue = {"variables": {}, "job_variables": {}, "missing": [], "files": {path: None}}
    facts = facts_of(answered({ENVIRONMENT: Reply(Status.OK, value=value)}), [EnvironmentFacts])
    assert isinstance(facts[EnvironmentFacts], Unread)


@pytest.mark.parametrize("name", ["--index-url=http://x/", "-r", "a b", "torch;id", ""])
def test_what_no_package_is_called_is_none(answered: Answered, name: str) -> None:
    value: JsonValue = {"path": "/usr/bin/python3", "version": "3.10", "packages": {name: "1", "torch": "2.6.0"}}
    fact = facts_of(answered({INTERPRETER: Reply(Status.OK, value=value)}), [InterpreterFacts])[InterpreterFacts]
    assert isinstance(fact, InterpreterFacts)
    assert (fact.frameworks, fact.libraries) == ({"torch": "2.6.0"}, {})


@pytest.mark.parametrize(
    "path", ["--flush", "python3", "./venv/bin/python3", "/opt/\x1b[2J", "/a\nb", "/" + "x" * 5000]
)
def test_a_path_that_no_command_should_begin_with_is_no_interpreter(answered: Answered, path: str) -> None:
    value: JsonValue = {"path": path, "version": "3.10", "packages": {}}
    fact = facts_of(answered({INTERPRETER: Reply(Status.OK, value=value)}), [InterpreterFacts])[InterpreterFacts]
    assert isinstance(fact, Unread)
    assert fact.reason.endswith("is not an absolute path")
