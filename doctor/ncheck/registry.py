"""All checks: the built-in ones and those of plug-ins, found through the entry point group `ncheck.checks`."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from ncheck.errors import SettingsError
from ncheck.facts.run import BrokenPlugIn
from ncheck.model.check import Check

GROUP = "ncheck.checks"


OUR_DISTRIBUTION = "cluster-ncheck"
OURS = "ncheck_checks"


# Where our checks of each hundred lie; a test holds every code to its folder.
TOPICS = {
    "NC0": "ncheck", "NC1": "ssh", "NC2": "versions", "NC3": "network", "NC4": "infiniband", "NC5": "gpus",
    "NC6": "host", "NC7": "measured", "NC8": "ranks", "NC9": "expected",
}  # fmt: skip


@dataclass(frozen=True)
class Registry:
    """Every check, by code, and the plug-ins that could not be loaded."""

    checks: tuple[Check, ...]
    broken: tuple[BrokenPlugIn, ...] = ()

    def find(self, word: str) -> Check | None:
        """Return the check of this code or name."""
        return next((check for check in self.checks if word.lower() in (check.code.lower(), check.name)), None)

    def one(self, word: str) -> Check:
        """Return the check of this code or name. Raises SettingsError for a word that means none, or several."""
        if found := self.find(word):
            return found
        several = self.meant(word)
        raise SettingsError(f"{word!r} means {len(several)} checks, such as {several[0].code}: name one")

    def matching(self, word: str) -> tuple[Check, ...]:
        """Return the checks that a word means: a name, a code, the start of a code (NC1), or a topic (versions)."""
        if found := self.find(word):
            return (found,)
        code = word.upper()
        by_code = tuple(check for check in self.checks if code.startswith("NC") and check.code.startswith(code))
        return by_code or tuple(check for check in self.checks if word.lower() in check.module.split(".")[1:-1])

    def select(self, words: tuple[str, ...]) -> tuple[Check, ...]:
        """Return the checks that --select names, all without words. Raises SettingsError for a word that means none."""
        if not words:
            return self.checks
        chosen = {check.code for word in words for check in self.meant(word)}
        return tuple(check for check in self.checks if check.code in chosen)

    def meant(self, word: str) -> tuple[Check, ...]:
        """Return the checks that a word means. Raises SettingsError, with what is near, where it means none."""
        if found := self.matching(word):
            return found
        raise SettingsError(f"no check is called {word!r}: {self._near(word) or self._where_all_are()}")

    def _near(self, word: str) -> str:
        names = [check.name for check in self.checks]
        words = [*names, *(check.code for check in self.checks)]
        near = [one for one in words if word.lower() in one.lower()][:3] or get_close_matches(word.lower(), names, n=1)
        return f"did you mean {' or '.join(near)}?" if near else ""

    def _where_all_are(self) -> str:
        lost = "".join(f"; those of the plug-in {one.name} could not be loaded: {one.why}" for one in self.broken)
        return f"ncheck list shows them all{lost}"


def load_checks(selected: tuple[str, ...] = ()) -> Registry:
    """Load every check. A broken plug-in is remembered, not raised; our own checks must load.

    With words of --select, topics of ours that no word can mean are left out: they cost a quarter of a start. Not so
    where there are plug-ins, whose codes are held against all of ours.
    """
    plug_ins = [one for one in entry_points(group=GROUP) if one.dist is None or one.dist.name != OUR_DISTRIBUTION]
    checks = {check.code: check for check in _our_checks(() if plug_ins else _topics(selected))}
    broken: list[BrokenPlugIn] = []
    for entry in plug_ins:
        _add_plug_in(entry, checks, broken)
    return Registry(tuple(checks[code] for code in sorted(checks)), tuple(broken))


def _topics(selected: tuple[str, ...]) -> tuple[str, ...]:
    """Return the topics that the words mean; none where a word is no topic and no start of a code, such as a name."""
    meant = {TOPICS.get(word[:3].upper(), word.lower()) for word in selected}
    return tuple(meant) if meant <= set(TOPICS.values()) else ()


def checks_of(module: ModuleType) -> tuple[Check, ...]:
    """Return the checks that a module defines itself."""
    return tuple(v for v in vars(module).values() if isinstance(v, Check) and v.module == module.__name__)


@cache  # a program may examine many times, and our own checks stay the same
def _our_checks(topics: tuple[str, ...]) -> tuple[Check, ...]:
    """Return our checks of these topics; without any, all."""
    packages = [import_module(f"{OURS}.{topic}") for topic in topics] or [import_module(OURS)]
    return tuple(check for package in packages for module in _modules(package) for check in checks_of(module))


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yield a package's modules; a plug-in may also be one module."""
    yield package
    for info in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + "."):
        yield import_module(info.name)


def _add_plug_in(entry: EntryPoint, checks: dict[str, Check], broken: list[BrokenPlugIn]) -> None:
    name = entry.dist.name if entry.dist else entry.value
    fix = f"python3 -m pip uninstall {name}"
    try:
        package = import_module(entry.value)
        if why := _foreign(entry, package):
            raise ImportError(why)  # noqa: TRY301  the same answer as for any other plug-in that cannot be had
        found = [check for module in _modules(package) for check in checks_of(module)]
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a plug-in does at import, the run goes on
        broken.append(BrokenPlugIn(name, f"{type(error).__name__}: {error}", fix))
        return
    for check in found:
        if taken := checks.get(check.code):
            why = f"its check {check.name} has the code {check.code}, which {taken.name} has already"
            broken.append(BrokenPlugIn(name, why, fix))
        else:
            checks[check.code] = check


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
