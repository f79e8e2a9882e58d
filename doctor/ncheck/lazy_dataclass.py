"""`dataclass` as in the standard library, but each method is made when it is first used.

Making them all at import took more than half of a start, and a run uses few. Not offered, as no record
needs them: order, slots, unsafe_hash, InitVar, and a factory for a field that is no argument.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache, partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
    ) -> type | Callable[[type], type]:
        """Make a class a dataclass at its first use."""
        decorate = partial(_decorated, frozen=frozen, eq=eq, kw_only=kw_only)
        return decorate(cls) if cls else decorate


class _AtFirstUse:
    """An attribute of a class that is made when it is first looked up, and then takes the place of this object.

    Two threads may both make it; both results are equal.
    """

    __slots__ = ("cls", "make", "name")

    def __init__(self, cls: type, name: str, make: Callable[[type], Any]) -> None:
        self.cls, self.name, self.make = cls, name, make

    def __get__(self, instance: object, owner: type) -> Any:  # noqa: ANN401  any attribute of a class
        made = self.make(self.cls)
        setattr(self.cls, self.name, made)
        return made.__get__(instance, owner) if callable(made) else made


class _Factory:
    """The default of an argument whose field has a factory, as a signature shows it."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _decorated(cls: type, *, frozen: bool, eq: bool, kw_only: bool) -> type:
    own = dict(vars(cls))
    given: dict[str, Any] = {name: value for name, value in own.items() if type(value) is Field}
    for name, value in given.items():
        if value.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, value.default)
    made: dict[str, Any] = {"__replace__": dataclasses.replace}
    later: dict[str, Callable[[type], Any]] = {
        "__dataclass_fields__": partial(_fields, given=given, kw_only=kw_only),
        "__dataclass_params__": lambda _: _parameters(frozen=frozen, eq=eq, kw_only=kw_only),
        "__match_args__": _match_args,
        "__init__": partial(_init, frozen=frozen),
        "__repr__": _repr,
    }
    if frozen:
        made |= {"__setattr__": _setattr, "__delattr__": _delattr}
    if eq:
        later["__eq__"] = _eq
        if "__eq__" in own and own["__hash__"] is None:
            del own["__hash__"]  # from Python, for a class that says what is equal
        if frozen:
            later["__hash__"] = _hash
        else:
            made["__hash__"] = None
    if not own.pop("__doc__", None):
        later["__doc__"] = _doc
    made |= {name: _AtFirstUse(cls, name, make) for name, make in later.items()}
    for name, value in made.items():
        if name not in own:
            setattr(cls, name, value)
    return cls


def _fields(cls: type, given: dict[str, Any], *, kw_only: bool) -> dict[str, Field[Any]]:
    """Return the fields of the bases, and those of the class, which the standard library makes for a twin of it."""
    body = {name: getattr(cls, name) for name in cls.__annotations__ if hasattr(cls, name)} | given
    body |= {"__module__": cls.__module__, "__doc__": cls.__name__, "__annotations__": cls.__annotations__}
    twin: type = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=kw_only)(
        type(cls.__name__, (), body)
    )
    found: dict[str, Field[Any]] = {}
    for base in (*reversed(cls.__mro__[1:]), twin):
        found |= getattr(base, "__dataclass_fields__", {})
    return found


@cache
def _parameters(**options: bool) -> object:
    """Return what a standard dataclass that inherits from one of ours reads of it."""
    return vars(dataclasses.dataclass(**options)(type("_", (), {})))["__dataclass_params__"]


def _match_args(cls: type) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(cls) if one.init and not one.kw_only)


def _init(cls: type, *, frozen: bool) -> Callable[..., None]:
    fields = sorted((one for one in dataclasses.fields(cls) if one.init), key=lambda one: bool(one.kw_only))
    scope: dict[str, object] = {"_set": object.__setattr__, "_factory": _FACTORY}
    arguments, lines = ["self"], []
    for one in fields:
        name = value = one.name
        if one.kw_only and "*" not in arguments:
            arguments.append("*")
        if one.default is not MISSING:
            scope[f"_default_{name}"] = one.default
            arguments.append(f"{name}=_default_{name}")
        elif one.default_factory is not MISSING:
            scope[f"_make_{name}"] = one.default_factory
            arguments.append(f"{name}=_factory")
            value = f"_make_{name}() if {name} is _factory else {name}"
        else:
            arguments.append(name)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    made = _compiled(cls, "__init__", arguments, lines or ["pass"], scope)
    made.__annotations__ = {**{one.name: one.type for one in fields}, "return": None}
    return made


def _repr(cls: type) -> Callable[..., Any]:
    shown = ", ".join(f"{one.name}={{self.{one.name}!r}}" for one in dataclasses.fields(cls) if one.repr)
    lines = [f'return self.__class__.__qualname__ + f"({shown})"']
    return recursive_repr()(_compiled(cls, "__repr__", ["self"], lines, {}))


def _eq(cls: type) -> Callable[..., Any]:
    names = [one.name for one in dataclasses.fields(cls) if one.compare]
    same = f"{_values('self', names)} == {_values('other', names)}"
    lines = [f"return {same} if other.__class__ is self.__class__ else NotImplemented"]
    return _compiled(cls, "__eq__", ["self", "other"], lines, {})


def _hash(cls: type) -> Callable[..., Any]:
    names = [one.name for one in dataclasses.fields(cls) if (one.compare if one.hash is None else one.hash)]
    return _compiled(cls, "__hash__", ["self"], [f"return hash({_values('self', names)})"], {})


def _values(of: str, names: Iterable[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _doc(cls: type) -> str:
    return cls.__name__ + str(inspect.signature(cls)).replace(" -> None", "")


def _compiled(
    cls: type, name: str, arguments: Iterable[str], lines: Iterable[str], scope: Mapping[str, object]
) -> Callable[..., Any]:
    body = "".join(f"\n  {line}" for line in lines)
    text = f"def make({', '.join(scope)}):\n def {name}({', '.join(arguments)}):{body}\n return {name}"
    made: dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), made)  # noqa: S102  as the standard library makes it
    function: Callable[..., Any] = made["make"](**scope)
    function.__qualname__ = f"{cls.__qualname__}.{name}"
    return function


def _setattr(self: Any, name: str, value: object) -> None:  # noqa: ANN401  any record
    _refuse_to("assign to", self, name)
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:  # noqa: ANN401  the same
    _refuse_to("delete", self, name)
    object.__delattr__(self, name)


def _refuse_to(change: str, record: Any, name: str) -> None:  # noqa: ANN401  the same
    """Raise, but where a class that is no record, and inherits from one, has attributes of its own."""
    if "__dataclass_fields__" in vars(type(record)) or name in record.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {change} field {name!r}")
