"""--groups: which nodes of the list share a switch, in one option or in a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ncheck.errors import SettingsError
from ncheck.files import reading
from ncheck.hostlist import fold, quoted, unfold
from ncheck.inventory.read import LARGEST
from ncheck.text import printable

OPTION = "--groups"
_TWO = 2  # groups: fewer have nothing between them
_LONGEST_NAME = 100


def given_groups(text: str, nodes: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the groups of --groups: "leaf1=node[01-16];leaf2=node[17-32]", or of a file with one of these per line.

    Raises SettingsError for a node that is not in the run or in two groups, and for what is no group.
    """
    lines = _lines_of(text) if "=" not in text else [(OPTION, part) for part in text.split(";")]
    groups: dict[str, tuple[str, ...]] = {}
    owner: dict[str, str] = {}
    for place, line in ((place, line.partition("#")[0].strip()) for place, line in lines):
        if not line:
            continue
        name, equals, members = (part.strip() for part in line.partition("="))
        if not equals or not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise SettingsError(f"{place}: expected NAME=NODES, as in leaf1=node[01-16], not {quoted(line)}")
        try:
            listed = unfold(members)
        except ValueError as error:
            raise SettingsError(f"{place}: {error}") from None
        if unknown := [node for node in listed if node not in nodes]:
            raise SettingsError(f"{place}: {fold(unknown)} of {quoted(name)} is not among the nodes of this run")
        for node in listed:
            if owner.setdefault(node, name) != name:
                raise SettingsError(f"{place}: {node} is in two groups, {quoted(owner[node])} and {quoted(name)}")
        groups[name] = tuple(dict.fromkeys((*groups.get(name, ()), *listed)))
    if len(groups) < _TWO:
        raise SettingsError(f"{OPTION}: {len(groups)} group; there is nothing between fewer than two")
    return groups


def _lines_of(path: str) -> Iterable[tuple[str, str]]:
    name = f"{OPTION} {printable(path)}"
    try:
        with reading(path) as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise SettingsError(f"{name}: is larger than {LARGEST // 2**20} MiB, so not a list of groups")
        text = data.decode()
    except FileNotFoundError:
        raise SettingsError(f"{name}: no such file; or write the groups: {OPTION} 'leaf1=a,b;leaf2=c,d'") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{name}: {printable(getattr(error, 'strerror', None) or str(error))}") from None
    return [(f"{name}:{number}", line) for number, line in enumerate(text.splitlines(), 1)]
