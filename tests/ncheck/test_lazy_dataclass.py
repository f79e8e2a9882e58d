"""A record is a dataclass as the standard library makes it, only later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import ncheck
import ncheck_checks
import pytest
from ncheck.lazy_dataclass import dataclass

ALL = """
import dataclasses, inspect, pkgutil, sys
from importlib import import_module

import ncheck, ncheck.lazy_dataclass, ncheck_checks

MADE = "__replace__", "__annotations__"  # later, or where they are first read
if sys.argv[1] == "standard":
    ncheck.lazy_dataclass.dataclass = dataclasses.dataclass
for package in (ncheck, ncheck_checks):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not {"agent", "__main__", "fixtures"} & set(found.name.split(".")):
            import_module(found.name)
for name, module in sorted(sys.modules.items()):
    for cls in vars(module).values() if name.startswith("ncheck") else ():
        if isinstance(cls, type) and cls.__module__ == name and dataclasses.is_dataclass(cls):
            fields = [(one, getattr(cls, one.name, None)) for one in dataclasses.fields(cls)]
            options = cls.__match_args__, cls.__hash__ is None, cls.__dataclass_params__
            print(name, cls, cls.__doc__, inspect.signature(cls), options, sorted({*vars(cls), *MADE}), fields)
"""


def shown(by: str) -> list[str]:
    told = subprocess.check_output([sys.executable, "-c", ALL, by], text=True, env={"PYTHONHASHSEED": "0"})
    return re.sub(r" at 0x\w+", "", told).splitlines()


@pytest.mark.slow
def test_each_record_is_what_the_standard_library_makes_of_it() -> None:
    ours = shown("ours")
    assert len(ours) > 500
    assert ours == shown("standard")


def test_every_record_is_made_at_its_first_use() -> None:
    assert [
        path.name
        for package in (ncheck, ncheck_checks)
        for path in Path(package.__file__ or "").parent.rglob("*.py")
        if path.name != "lazy_dataclass.py"
        and re.search(
            r"^\s*(import dataclasses\b|from dataclasses import .*\bdataclass\b)", path.read_text(), re.MULTILINE
        )
    ] == []


@dataclass(frozen=True)
class Port:
    name: str
    speed: float = 1.5
    kinds: ClassVar = ("ib", "roce")
    lanes: list[int] = dataclasses.field(default_factory=list, compare=False)


@dataclass(frozen=True, kw_only=True)
class Named(Port):
    name: str = "eth0"
    note: str = dataclasses.field(default="", repr=False)


@dataclass
class Count:
    of: int

    def __post_init__(self) -> None:
        self.twice = 2 * self.of


T = TypeVar("T")


@dataclass(frozen=True)
class Holder(Generic[T]):
    held: T


class Kept(Port):
    """No record itself: it may have attributes of its own."""


@dataclasses.dataclass(frozen=True)
class OfAPlugIn(Port):
    slot: int = 0


def test_each_method_is_made_when_it_is_first_used() -> None:
    @dataclass(frozen=True)
    class Fresh:
        name: str

    def unmade() -> list[str]:
        return sorted(name for name, value in vars(Fresh).items() if type(value).__name__ == "_AtFirstUse")

    methods = ["__doc__", "__eq__", "__hash__", "__init__", "__match_args__", "__repr__"]
    assert unmade() == ["__dataclass_fields__", "__dataclass_params__", *methods]
    fresh = Fresh("a")
    assert unmade() == ["__dataclass_params__", "__doc__", "__eq__", "__hash__", "__match_args__", "__repr__"]
    assert fresh == Fresh("a")
    assert unmade() == ["__dataclass_params__", "__doc__", "__hash__", "__match_args__", "__repr__"]


def test_a_record_behaves_as_a_standard_dataclass() -> None:
    port, named = Port("mlx5_0", lanes=[4]), Named(note="x")
    assert repr(port) == "Port(name='mlx5_0', speed=1.5, lanes=[4])"
    assert repr(named) == "Named(name='eth0', speed=1.5, lanes=[])"
    assert (port == Port("mlx5_0"), port == Port("mlx5_1"), port == Named(name="mlx5_0")) == (True, False, False)
    assert len({port, Port("mlx5_0"), named}) == 2
    assert dataclasses.replace(port, speed=2) == Port("mlx5_0", 2)
    assert dataclasses.asdict(named) == {"name": "eth0", "speed": 1.5, "lanes": [], "note": "x"}
    assert (Port.speed, Named.name, hasattr(Port, "lanes"), Port.kinds) == (1.5, "eth0", False, ("ib", "roce"))
    assert Port("a").lanes is not Port("a").lanes
    assert (Count(2).twice, Holder[int](3) == Holder(3)) == (4, True)
    match port:
        case Port(name, speed):
            assert (name, speed) == ("mlx5_0", 1.5)


def test_a_frozen_record_stays_as_it_is() -> None:
    port: object = Port("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"^cannot assign to field 'name'$"):
        setattr(port, "name", "b")  # noqa: B010  mypy would see it
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"^cannot delete field 'other'$"):
        delattr(port, "other")
    kept = Kept("a")
    kept.own = 1  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"^cannot assign to field 'name'$"):
        kept.name = "b"  # type: ignore[misc]


def test_a_wrong_call_is_named_as_python_names_it() -> None:
    message = r"^Port\.__init__\(\) missing 1 required positional argument: 'name'$"
    with pytest.raises(TypeError, match=message):
        Port()  # type: ignore[call-arg]


def test_a_standard_dataclass_may_inherit_from_a_record() -> None:
    assert repr(OfAPlugIn("a", slot=2)) == "OfAPlugIn(name='a', speed=1.5, lanes=[], slot=2)"
    assert str(inspect.signature(OfAPlugIn)).startswith("(name: 'str', speed: 'float' = 1.5, lanes: 'list[int]' = ")
    with pytest.raises(TypeError, match=r"^cannot inherit non-frozen dataclass from a frozen one$"):
        dataclasses.dataclass(type("Loose", (Port,), {}))


UNPICKLED = "import pickle, sys; read = pickle.load(sys.stdin.buffer); print(hash(read) == hash(read), read)"


def test_a_record_is_copied_and_pickled_also_to_a_process_that_has_made_none() -> None:
    unread = ncheck.Unread("no such file")
    assert copy.deepcopy(unread) == unread
    read = subprocess.check_output([sys.executable, "-c", UNPICKLED], input=pickle.dumps(unread))
    assert read.decode() == f"True {unread!r}\n"


def test_many_threads_may_use_a_record_for_the_first_time_at_once() -> None:
    made = []
    for _ in range(50):
        fresh: type = dataclass(frozen=True)(type("Fresh", (), {"__annotations__": {"name": "str"}, "name": "a"}))
        start = threading.Barrier(4)

        def use(cls: type = fresh, start: threading.Barrier = start) -> None:
            start.wait()
            made.append((cls() == cls(), hash(cls()) == hash(cls()), repr(cls())))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(made) == {(True, True, "Fresh(name='a')")}
    assert len(made) == 200
