"""The tables of docs/api.md: records with their fields, functions with their arguments, made from the program itself.

What a field means is in the docstring of its record, in a clause that begins with its name in backquotes, or in a
comment behind the field. For example: One disk. `size` and `free` in bytes; `kind`: "ext4", None where it is not known.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import pkgutil
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from itertools import zip_longest
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from given import given_module


def facts() -> str:
    """Return each module of facts that checks read, with its facts and the records that these consist of."""
    modules = _fact_modules()
    index = ", ".join(f"[{fact.__name__}](#{fact.__name__.lower()})" for facts in modules.values() for fact in facts)
    shown: set[type] = set()
    return "\n\n".join([index, *(f"### {name}\n\n{_tables(facts, shown)}" for name, facts in modules.items())])


_OTHER_MODULES = ("ncheck.plan.planned_pick", "ncheck.probe.facts", "ncheck.probe.gpu_test")


def _fact_modules() -> dict[str, list[type]]:
    import ncheck.facts

    names = sorted(module.name for module in pkgutil.iter_modules(ncheck.facts.__path__))
    modules = [import_module(name) for name in (*(f"ncheck.facts.{name}" for name in names), *_OTHER_MODULES)]
    return {module.__name__: own for module in modules if (own := _own_facts(module))}


def _own_facts(module: ModuleType) -> list[type]:
    facts = (value for name, value in vars(module).items() if name.endswith("Facts") and _is_record(value))
    read_here = [one.record for one in getattr(module, "FACTS", ())]
    return [fact for fact in facts if fact.__module__ == module.__name__ or fact in read_here]


def _is_record(value: object) -> bool:
    return isinstance(value, type) and dataclasses.is_dataclass(value)


def records() -> str:
    """Return the records of the package that programs and checks use, and the records that these consist of."""
    return _tables(_named(), set())


def _named() -> list[type]:
    from ncheck import Absent, Inconclusive, LiveReport, NotApplicable, Problem, Report, Split, Unread

    return [Report, LiveReport, Problem, Inconclusive, NotApplicable, Unread, Absent, Split]


def public_records() -> list[type]:
    """Return every record and enumeration on the page."""
    return _with_parts([*_named(), *(fact for facts in _fact_modules().values() for fact in facts)])


def _with_parts(records: list[type]) -> list[type]:
    return list(dict.fromkeys([*records, *(part for record in records for part in _parts(record))]))


def _tables(records: list[type], shown: set[type]) -> str:
    """Return a table for each of these records, and of their parts, that was not shown before."""
    new = [record for record in _with_parts(records) if record not in shown]
    shown.update(new)
    return "\n\n".join(map(_record, new))


def _record(record: type) -> str:
    """Return the table of a record's fields, or of an enumeration's values."""
    if issubclass(record, enum.Enum):
        about, meanings = said_of(_docstring(record), [one.value for one in record])
        values = [(f"`{one.value}`", meanings.get(one.value, "")) for one in record]
        table = _table(("value", "meaning"), values) if meanings else ", ".join(value for value, _ in values)
    else:
        about, fields = described(record)
        rows = [(f"`{one.name}`", one.type, one.unit, one.meaning) for one in fields]
        table = _table(("field", "type", "unit", "meaning"), rows)
    return "\n\n".join(filter(None, (f"#### {record.__name__}", _cell(about), table)))


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table without the columns that say nothing."""
    columns = [(name, *map(_cell, cells)) for name, *cells in zip(head, *rows, strict=True) if any(cells)]
    lines = [f"| {' | '.join(line)} |" for line in zip(*columns, strict=True)]
    return "\n".join([lines[0], "|---" * len(columns) + "|", *lines[1:]])


def _cell(text: str) -> str:
    """Escape what Markdown would read in plain text, and bars, which end a cell also in code."""
    plain_and_code = re.split(r"(`[^`]*`)", text)
    plain_and_code[::2] = [re.sub(r"([*<~])", r"\\\1", plain) for plain in plain_and_code[::2]]
    return "".join(plain_and_code).replace("|", "\\|")


class Described(NamedTuple):
    """A field, argument or property, with what its docstring says of it. `unit` is that of its numbers."""

    name: str
    type: str
    unit: str
    meaning: str


def described(record: type) -> tuple[str, list[Described]]:
    """Return what a record is, and each of its fields and properties.

    What a field means is said by the docstring, by a comment behind the field, or by the schema of the report.
    """
    from ncheck.report import schema

    hints = get_type_hints(record)
    types = {field.name: _shown(hints[field.name]) for field in dataclasses.fields(record)}
    about = ""
    meanings: dict[str, str] = {}
    for one in filter(dataclasses.is_dataclass, reversed(record.__mro__)):
        about, said = said_of(_docstring(one), types)
        meanings |= {**dict(_COMMENT.findall(inspect.getsource(one))), **said}
    if record in schema.RECORDS:
        about, members = schema.described(record)
        meanings = {name: text.replace("null", "None") for name, text in members.items()}
    fields = [_measured(name, f"`{declared}`", meanings.get(name, "")) for name, declared in types.items()]
    return about, [*fields, *_properties(record)]


# A field with a comment behind it, which is no order to a tool.
_COMMENT = re.compile(r"^    (\w+): [^#\n]*  # (?!noqa|type:)(.+)$", re.MULTILINE)


def _properties(record: type) -> Iterator[Described]:
    for name, value in vars(record).items():
        get = getattr(value, "fget", None) or getattr(value, "func", None)  # of a property, or one that is kept
        if get and not name.startswith("_"):
            declared = f"`{inspect.signature(get).return_annotation}` (property)"
            yield _measured(name, declared, _docstring(get).removeprefix("Return "))


def _docstring(documented: object) -> str:
    doc = inspect.getdoc(documented) or ""
    written = doc.startswith(f"{getattr(documented, '__name__', '')}(")  # dataclass writes one where there is none
    return "" if written else doc


_NUMBER = re.compile(r"\b(int|float)\b")
# The unit of a number, where a docstring has it: "bytes that are free", "Duration of the run in seconds"
_UNIT = re.compile(
    r"(?:^|^in |(?<= in ))([Bb]ytes per (?:rank|second)|[Bb]ytes|[Ss]econds since 1970|[Ss]econds|files per second|"
    r"entries per second|[GM]b/s|GB/s|GT/s|kHz|degrees Celsius|0 to 1)(?![\w/])"
)


def _measured(name: str, declared: str, meaning: str) -> Described:
    unit = _UNIT.search(meaning) if _NUMBER.search(declared) else None
    if unit is None:
        return Described(name, declared, "", meaning.rstrip("."))
    rest = meaning[unit.end() :].lstrip(",;: ") if unit.start() == 0 else meaning
    return Described(name, declared, unit[1].replace("By", "by").replace("Se", "se"), rest.rstrip("."))


def said_of(doc: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Part a docstring: what it says of the whole, and what of each name.

    A clause is about the names in backquotes with which it begins ("`size` and `free` are in bytes"): at the start of a
    sentence, after a semicolon or a colon, or after the comma that ends another such clause. So is what follows it in
    the paragraph.
    """
    one = rf"`(?:{'|'.join(map(re.escape, names))})`"
    rest, meanings = [], {}
    for paragraph in re.split(r"\n\s*\n", doc):
        text = " ".join(paragraph.split())
        begun: list[re.Match[str]] = []
        for subject in re.finditer(rf"{one}(?:(?:,| and|, and| or) {one})*", text):
            before = text[: subject.start()]
            if not before or before.endswith((". ", "; ", ": ", ") ")) or (begun and before.endswith((", ", ", and "))):
                begun.append(subject)
        rest.append(text[: begun[0].start()] if begun else text)
        for subject, after in zip_longest(begun, begun[1:]):
            clause = text[subject.end() : after.start() if after else None].strip().removesuffix(" and").rstrip(".,;: ")
            for name in re.findall(r"`(\w[^`]*)`", subject[0]):
                meanings[name] = re.sub(r"^(: |is |are )", "", clause)
    about = " ".join(filter(None, map(str.strip, rest)))
    return re.sub(r"[;:,]$", ".", about), meanings


def arguments(name: str) -> str:
    """Return the arguments of a function of the package by name."""
    import ncheck

    function = getattr(ncheck, name)
    given = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
    _, meanings = said_of(_docstring(function), [one.name for one in given])
    scope = vars(sys.modules[function.__module__])
    rows = []
    for one in given:
        declared = str(one.annotation)
        alias = _shown(scope[declared]) if get_args(scope.get(declared)) else declared
        rows.append((f"`{one.name}`", f"`{alias}`", _default(one.default), meanings.get(one.name, "")))
    return _table(_ARGUMENTS, rows)


_ARGUMENTS = ("argument", "type", "default", "meaning")


def _default(default: object) -> str:
    return "" if default is inspect.Parameter.empty else f"`{getattr(default, 'value', default)!r}`"


def settings() -> str:
    """Return the settings that run, replay and diagnose take by name."""
    from ncheck.settings.options import OPTIONS, JobEnvironment, Settings

    scope: dict[str, Any] = {"__name__": "generated"}
    exec(given_module(), scope)  # noqa: S102  it may be newer than the installed one
    given = scope["GivenToRun"]
    defaults = {one.name: one.default for record in (JobEnvironment, Settings) for one in dataclasses.fields(record)}
    meanings = {name: _in_python(option.help) for name, option in OPTIONS.items()}
    meanings |= said_of(_docstring(given), ["config", "program"])[1]
    hints = get_type_hints(given, scope).items()
    rows = [(f"`{name}`", f"`{_shown(one)}`", _default(defaults.get(name)), meanings[name]) for name, one in hints]
    return _table(_ARGUMENTS, rows)


def _in_python(help: str) -> str:  # noqa: A002
    """Return the help of an option in the words of Python: setup='module load nccl', without how to repeat it."""
    text = re.sub(r" Can be repeated[^.]*\.", "", help.partition("  [")[0]).rstrip(".")
    return re.sub(
        r"--([a-z-]+)\b( '[^']*')?",
        lambda flag: f"`{flag[1].replace('-', '_')}{(flag[2] or '').replace(' ', '=', 1)}`", text,
    )  # fmt: skip


def declarations() -> str:
    """Return what a check may declare by name."""
    from ncheck.model.check import Check, Declared

    fields = {one.name: one for one in dataclasses.fields(Check)}
    _, meanings = said_of(_docstring(Check), fields)
    hints = get_type_hints(Declared).items()
    rows = [(f"`{name}`", f"`{_shown(one)}`", _default(fields[name].default), meanings[name]) for name, one in hints]
    return _table(_ARGUMENTS, rows)


def _parts(record: type) -> Iterator[type]:
    """Yield the records and enumerations that the fields of a record consist of, and theirs."""
    if dataclasses.is_dataclass(record):
        for declared in get_type_hints(record).values():
            for part in _within(declared):
                if part is not record and part.__name__ not in ("Unread", "Absent"):
                    yield part
                    yield from _parts(part)


def _within(declared: Any) -> Iterator[type]:  # noqa: ANN401  a type, or what typing has for one
    if isinstance(declared, type) and (dataclasses.is_dataclass(declared) or issubclass(declared, enum.Enum)):
        yield declared
    for inner in get_args(declared):
        yield from _within(inner)


def _shown(declared: Any) -> str:  # noqa: ANN401  a type, or what typing has for one
    origin, inner = get_origin(declared), [_shown(one) for one in get_args(declared)]
    if origin in (Union, UnionType, Literal):
        return " | ".join(inner)
    if inner:
        return f"{origin.__name__}[{', '.join(inner)}]"
    if isinstance(declared, str):
        return repr(declared)
    return {NoneType: "None", ...: "..."}.get(declared) or declared.__name__
