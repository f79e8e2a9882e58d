"""Checks are found by one door; a broken plug-in is told, and never ends a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path

import ncheck_checks
import pytest
from ncheck.errors import SettingsError
from ncheck.facts.run import BrokenPlugIn
from ncheck.steps.judge import facts_wanted
from ncheck.steps.registry import INDEX, Registry, as_index, listed_in, load_checks

_ANY = DistributionFinder.Context()

GOOD = '''"""Paint is wet"""
from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts import IdentityFacts

@node_check("{code}", Severity.INFO, IdentityFacts)
def paint_is_wet(node: NodeView):
    yield Problem("wet", "wait")
'''


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder on the path, as site-packages is; forget what was imported from it afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("paint"):
            del sys.modules[name]


def distribution(site: Path, name: str, module: str, text: str | None) -> None:
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ncheck.checks]\n{name} = {module}\n")
    (info / "RECORD").write_text(f"{module}.py,,\n")
    if text is not None:
        (site / f"{module}.py").write_text(text)


def ours() -> tuple[str, ...]:
    return tuple(check.code for check in load_checks().checks)


def test_our_checks_are_there_in_the_order_of_their_codes() -> None:
    codes = ours()
    assert list(codes) == sorted(codes)
    assert {"NC001", "NC002", "NC003", "NC004", "NC201"} <= set(codes)


def test_a_plug_in_adds_its_checks(site: Path) -> None:
    before = ours()
    distribution(site, "paint-checks", "paint_good", GOOD.format(code="NC999"))
    registry = load_checks()
    assert tuple(check.code for check in registry.checks) == (*before, "NC999")
    assert registry.broken == ()


def test_a_plug_in_of_an_old_installer_is_found(site: Path) -> None:
    distribution(site, "paint-checks", "paint_good", GOOD.format(code="NC999"))
    info = (site / "paint-checks-1.0.dist-info").rename(site / "paint_checks.egg-info")
    (info / "METADATA").rename(info / "PKG-INFO")
    assert [check.code for check in load_checks().plugged] == ["NC999"]


def test_a_plug_in_in_a_zip_file_is_found(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = site / "parts"
    parts.mkdir()
    distribution(parts, "paint-checks", "paint_good", GOOD.format(code="NC999"))
    monkeypatch.syspath_prepend(shutil.make_archive(str(site / "paint"), "zip", parts))
    assert [check.code for check in load_checks().plugged] == ["NC999"]


def test_a_plug_in_that_only_a_finder_knows_is_found(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = site / "parts"
    parts.mkdir()
    distribution(parts, "paint-checks", "paint_good", GOOD.format(code="NC999"))

    class Finder(DistributionFinder):
        def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
            return PathFinder.find_spec(name, [str(parts)]) if name == "paint_good" else None

        def find_distributions(self, context: DistributionFinder.Context = _ANY) -> Iterator[Distribution]:
            if context.name is None:
                yield Distribution.at(parts / "paint-checks-1.0.dist-info")

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert [check.code for check in load_checks().plugged] == ["NC999"]


def test_where_no_plug_in_is_installed_importlib_metadata_is_not_imported() -> None:
    program = (
        "import sys; from ncheck.steps.registry import load_checks; load_checks(); "
        "print('importlib.metadata' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


def test_a_plug_in_that_raises_is_told_and_ours_are_all_there(site: Path) -> None:
    before = ours()
    distribution(site, "paint-broken", "paint_broken", "raise OSError('no brush')")
    registry = load_checks()
    assert tuple(check.code for check in registry.checks) == before
    fix = "python3 -m pip uninstall paint-broken"
    assert registry.broken == (BrokenPlugIn("paint-broken", "OSError: no brush", fix),)


def test_a_plug_in_that_declares_what_is_no_fact_is_broken_and_ours_are_all_there(site: Path) -> None:
    before = ours()
    wrong = GOOD.format(code="NC999").replace("IdentityFacts)\ndef", "(IdentityFacts,))\ndef")
    distribution(site, "paint-wrong", "paint_wrong", wrong)
    registry = load_checks()
    assert tuple(check.code for check in registry.checks) == before
    assert [one.name for one in registry.broken] == ["paint-wrong"]


def test_a_check_of_a_broken_plug_in_is_none_and_the_answer_says_why(site: Path) -> None:
    distribution(site, "paint-broken", "paint_broken", "raise OSError('no brush')")
    with pytest.raises(SettingsError) as caught:
        load_checks().one("NC999")
    assert str(caught.value) == (
        "no check is called 'NC999': ncheck list shows them all; those of the plug-in paint-broken could not be loaded:"
        " OSError: no brush"
    )


def test_a_plug_in_cannot_take_a_code_that_is_taken(site: Path) -> None:
    distribution(site, "paint-thief", "paint_thief", GOOD.format(code="NC201"))
    registry = load_checks()
    assert [check.name for check in registry.checks if check.code == "NC201"] == ["nccl-version-differs"]
    assert [broken.why for broken in registry.broken] == [
        "its check paint-is-wet has the code NC201, which nccl-version-differs has already"
    ]


def test_a_plug_in_whose_module_comes_from_elsewhere_is_broken(site: Path, tmp_path_factory: pytest.TempPathFactory,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    elsewhere = tmp_path_factory.mktemp("training")
    (elsewhere / "paint_shadowed.py").write_text(GOOD.format(code="NC998"))
    distribution(site, "paint-shadowed", "paint_shadowed", GOOD.format(code="NC999"))
    monkeypatch.syspath_prepend(elsewhere)
    (broken,) = load_checks().broken
    intruder = elsewhere / "paint_shadowed.py"
    assert broken.why == f"ImportError: paint_shadowed comes from {intruder}, not from the distribution paint-shadowed"


def test_the_index_says_of_each_check_what_the_check_says_itself() -> None:
    rows = json.loads(as_index())
    assert tuple(map(listed_in, sorted(rows, key=lambda row: row["code"]))) == load_checks().listed
    registry = load_checks()
    assert [check.listed for check in registry.checks] == list(registry.listed)
    assert registry.facts(registry.listed) == facts_wanted(registry.checks)


CHOOSING = """
import sys; from ncheck.steps.registry import load_checks
chosen = load_checks().select(('NC201', 'gpu-hot')); assert len(chosen) == 2
"""
RUNNING = """
import sys; from ncheck.observer import Silent; from ncheck.pipeline import examine
from ncheck.settings import Settings
class Observer(Silent):
    def stage(self, node, stage, *, slow=False):
        if stage == "connecting":
            print(*names())
examine(Settings(hosts="localhost", local=True, select=("clock-differs",), probe="none"), Observer())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asking", "checks"),
    [
        (CHOOSING, [["ncheck_checks.versions.nccl_version_differs", "ncheck_checks.gpus.gpu_hot"]]),
        (RUNNING, [[], ["ncheck_checks.host.clock_differs"]]),
    ],
)
def test_with_an_index_a_selection_imports_no_other_check_and_a_run_asks_before_it_imports_one(
    tmp_path: Path, asking: str, checks: list[list[str]]
) -> None:
    shutil.copytree(Path(ncheck_checks.__file__).parent, tmp_path / "ncheck_checks")
    (tmp_path / "ncheck_checks" / INDEX).write_text(as_index())
    names = "[name for name in sys.modules if name.startswith('ncheck_checks.') and name.count('.') == 2]"
    asking = f"def names(): return {names}\n{asking}\nprint(*names())"
    path = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-c", asking],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert [line.split() for line in done.stdout.splitlines()] == checks


def test_the_codes_of_a_plug_in_are_held_against_all_of_ours(site: Path) -> None:
    distribution(site, "paint-thief", "paint_thief", GOOD.format(code="NC201"))
    registry = load_checks()
    assert [check.name for check in registry.select(("NC201",))] == ["nccl-version-differs"]
    assert [broken.name for broken in registry.broken] == ["paint-thief"]


@pytest.mark.parametrize("word", ["NC201", "nc201", "nccl-version-differs"])
def test_a_check_is_meant_by_code_or_name(word: str) -> None:
    assert [check.code for check in load_checks().meant(word)] == ["NC201"]


def test_checks_are_meant_by_the_start_of_a_code_or_by_topic() -> None:
    registry = load_checks()
    assert {check.code[:3] for check in registry.meant("NC2")} == {"NC2"}
    assert registry.meant("versions") == registry.meant("NC2")


def test_a_word_that_means_no_check_is_an_error_that_says_what_is_near() -> None:
    with pytest.raises(SettingsError, match="did you mean nccl-version-differs"):
        load_checks().select(("nccl-version-difers",))
    with pytest.raises(SettingsError, match="mean nccl-version-differs or nccl-copies-differ or horovod-lacks-nccl"):
        load_checks().select(("NCCL",))
    with pytest.raises(SettingsError, match="'201': did you mean NC201"):
        load_checks().one("201")
    with pytest.raises(SettingsError, match="'NC999': ncheck list shows them all"):
        load_checks().select(("NC999",))
    with pytest.raises(SettingsError, match="ncheck list shows them all"):
        Registry(()).select(("anything",))
