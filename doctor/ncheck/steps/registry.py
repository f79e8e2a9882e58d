"""The checks: which there are, and which one a word means. The wheel has an index of our own, so that choosing imports
nothing; a check is imported when it is used. Plug-ins are imported at once, and a broken one is remembered.
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ncheck.errors import SettingsError
from ncheck.expression import expression
from ncheck.facts.run import BrokenPlugIn
from ncheck.installed_packages import distributions
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Check, Listed
from ncheck.model.finding import Severity

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ncheck.model.cluster import FactType
    from ncheck.model.evidence import Evidence
    from ncheck.settings.own_checks import OwnCheck

GROUP = "ncheck.checks"
OUR_DISTRIBUTION = "cluster-ncheck"
OUR_FOLDER = "cluster_ncheck-"  # and the version: there the name ends
OURS = "ncheck_checks"
INDEX = "index.json"  # in that package, where it comes from a wheel: a record of each check
_CODE = expression(r"NC\d*|X[0-9A-Z]*")  # the start of a code of ours, or of a site's own (steps/own_checks.py)
_LIKE_A_CODE = expression(r"(?:nc|x)\d")  # no name of a site's check begins so
_TOPICS = {"ib": "infiniband", "roce": "infiniband", "rdma": "infiniband", "hosts": "host", "probe": "measured"}  # too


@dataclass(frozen=True)
class Registry:
    """Every check, by code, and the plug-ins that could not be loaded. `plugged` are the checks of the others."""

    listed: tuple[Listed, ...]
    broken: tuple[BrokenPlugIn, ...] = ()
    plugged: tuple[Check, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks, imported."""
        return self.select(())

    def find(self, word: str) -> Listed | None:
        """Return the check of this code or name."""
        return next((check for check in self.listed if word.lower() in (check.code.lower(), check.name)), None)

    def one(self, word: str) -> Listed:
        """Return the check of this code or name. Raises SettingsError for a word that means none, or several."""
        if found := self.find(word):
            return found
        several = self.meant(word)
        raise SettingsError(f"{word!r} means {len(several)} checks: name one of those that ncheck list {word} shows")

    def matching(self, word: str) -> tuple[Listed, ...]:
        """Return the checks that a word means: a name, a code, the start of a code (NC1), or a topic (versions)."""
        if found := self.find(word):
            return (found,)
        code, topic = word.upper(), _TOPICS.get(word.lower(), word.lower())
        by_code = tuple(check for check in self.listed if _CODE.fullmatch(code) and check.code.startswith(code))
        return by_code or tuple(check for check in self.listed if topic in check.module.split(".")[1:-1])

    def choose(self, words: tuple[str, ...], wanted: Callable[[Listed], bool] = lambda _: True) -> tuple[Listed, ...]:
        """Return the checks that --select names; without words all that are wanted. None is imported.

        Raises SettingsError for a word that means none.
        """
        chosen = {check.code for word in words for check in self.meant(word)}
        return tuple(check for check in self.listed if (check.code in chosen if words else wanted(check)))

    def select(self, words: tuple[str, ...], wanted: Callable[[Listed], bool] = lambda _: True) -> tuple[Check, ...]:
        """Import these checks, and return them. Raises SettingsError as `choose` does."""
        return self.imported(self.choose(words, wanted))

    def imported(self, chosen: Iterable[Listed]) -> tuple[Check, ...]:
        """Import these checks."""
        own = {check.code: check for check in self.plugged}
        return tuple(own.get(check.code) or _imported(check) for check in chosen)

    def facts(self, chosen: Iterable[Listed]) -> tuple[FactType, ...]:
        """Import all facts that these checks read, and not the checks."""
        own = {check.code: check for check in self.plugged}
        found = (own[check.code].facts if check.code in own else map(_fact, check.classes) for check in chosen)
        return tuple(dict.fromkeys(chain.from_iterable(found)))

    def meant(self, word: str) -> tuple[Listed, ...]:
        """Return the checks that a word means. Raises SettingsError, with what is near, where it means none."""
        if found := self.matching(word):
            return found
        raise SettingsError(f"no check is called {word!r}: {self._near(word) or self._where_all_are()}")

    def _near(self, word: str) -> str:
        from difflib import get_close_matches

        names = [check.name for check in self.listed]
        words = [*names, *(check.code for check in self.listed)]
        near = [one for one in words if word.lower() in one.lower()][:3] or get_close_matches(word.lower(), names, n=1)
        return f"did you mean {' or '.join(near)}?" if near else ""

    def _where_all_are(self) -> str:
        lost = "".join(f"; those of the plug-in {one.name} could not be loaded: {one.why}" for one in self.broken)
        return f"ncheck list shows them all{lost}"


def load_checks(own: Sequence[OwnCheck] = ()) -> Registry:
    """Find every check, with those of the settings. A broken plug-in is remembered, not raised."""
    ours = {check.code: check for check in _ours()}
    added: dict[str, Check] = {}
    broken: list[BrokenPlugIn] = []
    for entry in _plug_ins():
        _add_plug_in(entry, ours, added, broken)
    added |= _of_site(own, {**ours, **{code: check.listed for code, check in added.items()}})
    listed = ours | {check.code: check.listed for check in added.values()}
    return Registry(tuple(listed[code] for code in sorted(listed)), tuple(broken), tuple(added.values()))


def selected_by(evidence: Sequence[Evidence], registry: Registry) -> tuple[str, ...]:
    """Return the --select of the recorded run, as far as there are such checks still; nothing where it ran all.

    A run of some checks, such as `ncheck probe`, asked no more than these need: the others would all be unknown.
    """
    words = {word for one in evidence for word in one.select}
    known = tuple(sorted(word for word in words if registry.matching(word)))
    return known if all(one.select for one in evidence) else ()


def _of_site(own: Sequence[OwnCheck], known: Mapping[str, Listed]) -> dict[str, Check]:
    """Return the checks of ncheck.toml. Raises SettingsError where a code or a name has a meaning already."""
    if not own:
        return {}
    from ncheck.steps.own_checks import made

    registry = Registry(tuple(known.values()))
    for one in own:
        for word in (one.code, one.name):
            if registry.matching(word) or _LIKE_A_CODE.match(word):
                raise SettingsError(f"ncheck.toml: check {one.code} {one.name}: {word} means other checks already")
    return {check.code: check for check in made(own)}


def _plug_ins() -> list[EntryPoint]:
    if not _may_be_some():
        return []
    from importlib.metadata import entry_points

    return [one for one in entry_points(group=GROUP) if one.dist is None or one.dist.name != OUR_DISTRIBUTION]


def _may_be_some() -> bool:
    """Return whether a plug-in may be installed: one is described as such, or something is found by other means."""
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in others) or any(map(os.path.isfile, sys.path)):
        return True
    return any(_has_group(folder) for folder in distributions() if not folder.name.startswith(OUR_FOLDER))


def _has_group(folder: Path) -> bool:
    with suppress(OSError):
        return GROUP in (folder / "entry_points.txt").read_text("utf-8", "replace")
    return False


@cache  # a program may examine many times, and our own checks stay the same
def _ours() -> tuple[Listed, ...]:
    """Return what the wheel's index says of our checks; from a source tree, which has none, import them all."""
    try:
        index = pkgutil.get_data(OURS, INDEX)
    except FileNotFoundError:
        index = None
    return tuple(map(listed_in, json.loads(index)) if index else (check.listed for check in every_check()))


def every_check() -> tuple[Check, ...]:
    """Import our own checks, every one."""
    return tuple(check for module in _modules(import_module(OURS)) for check in checks_of(module))


def as_index() -> str:
    """Return the index of our checks, for the wheel: a record per line."""
    return "[\n" + ",\n".join(json.dumps(asdict(check.listed), default=sorted) for check in every_check()) + "\n]\n"


def listed_in(row: Mapping[str, Any]) -> Listed:
    """Return what a row of the index says."""
    reads, also = frozenset(row["reads"]), frozenset(row["also"])
    known = {"severity": Severity(row["severity"]), "reads": reads, "also": also, "classes": tuple(row["classes"])}
    return Listed(**{**row, **known})


@cache
def _fact(name: str) -> FactType:
    module, _, of_class = name.rpartition(".")
    found: FactType = getattr(import_module(module), of_class)
    return found


def _imported(listed: Listed) -> Check:
    return next(check for check in checks_of(import_module(listed.module)) if check.code == listed.code)


def checks_of(module: ModuleType) -> tuple[Check, ...]:
    """Return the checks that a module defines itself."""
    return tuple(v for v in vars(module).values() if isinstance(v, Check) and v.module == module.__name__)


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yield a package's modules; a plug-in may also be one module."""
    yield package
    for info in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + "."):
        yield import_module(info.name)


def _add_plug_in(
    entry: EntryPoint, ours: Mapping[str, Listed], added: dict[str, Check], broken: list[BrokenPlugIn]
) -> None:
    name = entry.dist.name if entry.dist else entry.value
    fix = f"python3 -m pip uninstall {name}"
    try:
        package = import_module(entry.value)
        if why := _foreign(entry, package):
            raise ImportError(why)  # noqa: TRY301  the same answer as for any other plug-in that cannot be had
        found = [check for module in _modules(package) for check in checks_of(module)]
        for check in found:
            _ = check.listed  # a wrong declaration raises here, where it is the plug-in's fault
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a plug-in does at import, the run goes on
        broken.append(BrokenPlugIn(name, f"{type(error).__name__}: {error}", fix))
        return
    for check in found:
        if taken := ours.get(check.code) or added.get(check.code):
            why = f"its check {check.name} has the code {check.code}, which {taken.name} has already"
            broken.append(BrokenPlugIn(name, why, fix))
        else:
            added[check.code] = check


def _foreign(entry: EntryPoint, package: ModuleType) -> str:
    """Say so where a plug-in's module does not come from its own distribution: something shadows it."""
    if entry.dist is None or not package.__file__ or entry.dist.files is None:
        return ""
    own = {Path(str(entry.dist.locate_file(file))).resolve() for file in entry.dist.files}
    here = Path(package.__file__).resolve()
    editable = any(file.name.endswith(".pth") or file.name.startswith("__editable__") for file in entry.dist.files)
    if here in own or editable:
        return ""
    return f"{entry.value} comes from {here}, not from the distribution {entry.dist.name}"
