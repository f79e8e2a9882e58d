"""One frozen Settings, from options, environment variables and ncheck.toml, in this order of precedence.

The command line uses `make_settings`; ncheck.toml is described in doctor/ncheck/settings/file.py.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

from ncheck.errors import SettingsError
from ncheck.files import reading
from ncheck.settings.file import LARGEST, FileSettings, anchored, read_settings_file
from ncheck.settings.options import (
    ENVIRONMENT,
    LEVELS,
    MOST_AT_ONCE,
    OPTIONS,
    SSH,
    VARIABLES,
    HostOverride,
    Ignore,
    JobEnvironment,
    RunContext,
    Settings,
)
from ncheck.settings.values import FORMATS, Output
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.facts.expected import ExpectedFacts

__all__ = [
    "FORMATS", "VARIABLES", "HostOverride", "Ignore", "JobEnvironment", "Output", "RunContext", "Settings",
    "make_settings",
]  # fmt: skip

_OF_LONGEST = 2  # deadlines of the longest check in ncheck.toml: the nodes have 0.6 of a run for their own questions
_SOURCES = ("nodes_file", "hosts", "slurm", "local")


def make_settings(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    warn: Callable[[str], None] = lambda _: None,
    *,
    named: Callable[[str], str] = lambda name: OPTIONS[name].flag,
) -> Settings:
    """Make the settings of one run. Precedence: options, environment variables, ncheck.toml, the level, defaults.

    `flags` maps fields of Settings and of JobEnvironment, and `config`, to text or to what click made of it;
    None and () mean: not given. `ignore` and `select` are tuples of text, `fail_on` is text. `warn` gets a line
    about keys of ncheck.toml that are ignored. `named` is what messages call one of the flags: the option, or in Python
    the parameter.
    Raises SettingsError: one line that names the option, the variable or the file and key, and a valid value.
    """
    given = {name: value for name, value in flags.items() if value is not None and value != ()}
    config = given.pop("config", None)
    file = read_settings_file(str(config) if config else None, environ, cwd)
    if file.ignored:
        keys = ", ".join(file.ignored)
        warn(f"{file.name}: ignored: {keys} (in a file that was only found they count after: ncheck allow)")
    if unknown := [name for name in given if name not in OPTIONS]:
        raise TypeError(f"{unknown[0]} is not a setting; settings are {', '.join(sorted(OPTIONS))}")
    variable = {name: key for key, name in VARIABLES.items() if environ.get(key)}
    sources = {**file.sources, **variable, **{name: named(name) for name in given}}
    typed = {name: _read(name, value, sources[name]) for name, value in given.items()}
    if "workdir" in typed:
        typed["workdir"] = anchored(cwd, str(typed["workdir"]))
    if len(rivals := [sources[name] for name in _SOURCES if typed.get(name)]) > 1:
        raise SettingsError(f"{' and '.join(rivals)} both select the nodes: use only one of them")
    variables = {name: _read(name, environ[key], key) for key, name in VARIABLES.items() if environ.get(key)}
    values = {**_without_rivals(file.values, typed), **variables, **typed}
    overrides = _overrides(file, typed)
    if values.get("via") == "srun" and not values.get("local"):
        _refuse_ssh(typed, values, overrides, sources)
        values.setdefault("width", MOST_AT_ONCE)  # all tasks start at once
        values.setdefault("launcher", "srun")  # such nodes often allow no ssh, which mpirun may need
    longest = max((check.timeout or 0.0 for check in file.checks), default=0.0)
    of_level = LEVELS[str(values.get("level", Settings.level))]
    if "deadline" not in values and longest:
        values["deadline"] = max(cast("float", of_level.get("deadline", Settings.deadline)), _OF_LONGEST * longest)
    by_level = of_level.get("probe") == "none" and "probe" not in values
    if by_level and values.get("gpu_test", "none") != "none":
        unmeasured = f"{sources['level']} {values['level']} measures nothing, and no GPU"
        raise SettingsError(f"{unmeasured} as {sources['gpu_test']} asks: add --probe auto, or --gpu-test none")
    settings = _settings({**of_level, **values}, overrides, sources)
    run = replace(
        settings.run,
        own_checks=file.checks,
        milder=_milder(file, {*typed, *variables}),
        sources={name: source for name, source in sources.items() if source != OPTIONS[name].flag},
    )
    return replace(settings, run=run)


def _milder(file: FileSettings, others: Collection[str]) -> tuple[str, ...]:
    """Return the settings of a found file that may hide what is wrong, as "fail-on never"; `others` are overridden."""
    names = [name for name in file.values if file.found and OPTIONS[name].milder and name not in others]
    rows = ((OPTIONS[name].key, cast("Sequence[object]", file.values[name])) for name in names)
    return tuple(f"{key} {','.join(_word(one) for one in value) or 'never'}" for key, value in rows)


def _word(value: object) -> str:
    """Return a check, or NC305=node07."""
    return "=".join(filter(None, value)) if isinstance(value, tuple) else str(value)


def _settings(values: Mapping[str, Any], overrides: tuple[HostOverride, ...], sources: Mapping[str, str]) -> Settings:
    environment = JobEnvironment(**{name: values[name] or None for name in ENVIRONMENT if name in values})
    own = {name: value for name, value in values.items() if name not in ENVIRONMENT}
    if "ignore" in own:
        own["ignore"] = tuple(Ignore(check, nodes) for check, nodes in own["ignore"])
    expected: ExpectedFacts | None = None
    if "expect" in own:
        own["expect"], expected = own["expect"]
    if own.get("requirements"):
        expected = _with_requirements(expected, str(own["requirements"]), sources["requirements"])
    settings = Settings(**own, environment=environment, overrides=overrides, run=RunContext(expected))
    _require_identity(settings.identity, sources.get("identity", ""))
    _require_ssh_config(settings.ssh_config, sources.get("ssh_config", ""))
    _refuse_mpirun_without_nccl(settings, sources)
    if settings.notify and not settings.history and sources["notify"] not in VARIABLES:
        raise SettingsError(f"{sources['notify']} compares with the history: add --history FILE")
    if sources.get("columns") == OPTIONS["columns"].flag and all(one.form != "table" for one in settings.output):
        raise SettingsError("--columns are those of -o table: add it")
    return settings


def _with_requirements(expected: ExpectedFacts | None, path: str, source: str) -> ExpectedFacts:
    """Return what is expected together with the requirements in this file. Raises SettingsError."""
    from ncheck.facts.expected import ExpectedFacts
    from ncheck.facts.requirements import read_requirements

    try:
        with reading(Path(path).expanduser()) as file:
            requirements = read_requirements(file.read(LARGEST).decode("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{source}: {printable(path)}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{source}: {printable(path)}: {printable(str(error), 400)}") from None
    return replace(expected or ExpectedFacts(), requirements=requirements)


def _read(name: str, value: object, source: str) -> object:
    try:
        return OPTIONS[name].read(value)
    except ValueError as error:
        raise SettingsError(f"{source}: {error}") from None


def _without_rivals(values: Mapping[str, object], typed: Mapping[str, object]) -> dict[str, object]:
    """Drop the nodes of the file if the command line selects nodes."""
    rivals = _SOURCES if any(map(typed.get, _SOURCES)) else ()
    return {name: value for name, value in values.items() if name not in rivals}


def _refuse_ssh(
    typed: Mapping[str, object],
    values: Mapping[str, object],
    overrides: Iterable[HostOverride],
    sources: Mapping[str, str],
) -> None:
    """Refuse what contradicts --via srun: options of an ssh login, and a command in place of ssh."""
    via = "--via srun" if sources["via"] == OPTIONS["via"].flag else f"{sources['via']}=srun"
    if named := [sources[name] for name, row in OPTIONS.items() if typed.get(name) and row.group is SSH]:
        raise SettingsError(f"{via} uses no ssh login: remove {' and '.join(named)}, or log in by ssh with --via ssh")
    if values.get("rsh") or any(override.environment.rsh for override in overrides):
        rsh = sources.get("rsh", "rsh of a [host] table")
        raise SettingsError(f"{via} and {rsh} exclude each other: remove one of them (--via ssh, --rsh '')")


def _overrides(file: FileSettings, typed: Iterable[str]) -> tuple[HostOverride, ...]:
    """Make the overrides, without the values that an option sets for all nodes."""
    kept = [(nodes, {name: rows[name] for name in rows if name not in typed}) for nodes, rows in file.hosts]
    return tuple(HostOverride(nodes, JobEnvironment(**rows)) for nodes, rows in kept)


def _require_identity(identity: str | None, source: str) -> None:
    """Refuse a key file that is missing or unreadable: ssh would only print a warning and try other keys."""
    if identity:
        mode = _mode(source, identity)
        if mode is None or not stat.S_ISREG(mode):
            raise SettingsError(f"{source}: {printable(identity)} is not a file; to list your keys: ls ~/.ssh")


def _require_ssh_config(config: str | None, source: str) -> None:
    """Refuse a missing or unreadable file before any node is asked; /dev/null and a pipe are allowed."""
    if config not in (None, "none"):
        mode = _mode(source, str(config))
        if mode is None or stat.S_ISDIR(mode):
            raise SettingsError(f"{source}: {printable(str(config))} is not a file; to list the files: ls ~/.ssh")


def _mode(source: str, path: str) -> int | None:
    """Return the mode of a file that this user can read; None if there is none. Raises SettingsError."""
    try:
        file = Path(path).expanduser()
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: ~nobody/key, and there is no such user
        raise SettingsError(f"{source}: {printable(path)}: {getattr(error, 'strerror', None) or error}") from None
    if not os.access(file, os.R_OK, effective_ids=True):
        raise SettingsError(f"{source}: {printable(path)}: permission denied; see: ls -l {quote(printable(path))}")
    return mode


def _refuse_mpirun_without_nccl(settings: Settings, sources: Mapping[str, str]) -> None:
    """Refuse --probe-launcher mpirun with a method that starts no ranks of NCCL."""
    if settings.probe_launcher == "mpirun" and settings.probe in ("gloo", "tcp"):
        raise SettingsError(
            f"{sources['probe_launcher']} mpirun starts NCCL ranks, but {sources['probe']} {settings.probe} has none: "
            "remove one of the two"
        )
