"""The command that removes or changes a variable or a limit of every login, in the file that sets it.

A line such as `unset X` or `ulimit -n 4096` changes the shell that it is typed in, and no login of a launcher.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from shlex import quote

from ncheck.facts.environment import Assignment, EnvironmentFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.mpi_settings import MpiSetting
from ncheck.model.check import Fix
from ncheck.text import sudo_for

_USUAL = (
    "~/.bashrc", "~/.bash_profile", "~/.profile", "/etc/environment", "/etc/bash.bashrc", "/etc/profile",
    "/etc/profile.d/*",
)  # fmt: skip


def to_remove(environment: EnvironmentFacts | None, *names: str) -> Fix:
    """Return the command that removes these variables from a node's logins, or that shows where they are set."""
    if environment is None:
        return where_set(*names)
    places = tuple(place for name in names for place in environment.start_up.get(name, ()))
    known = all(environment.start_up.get(name) for name in names if name in environment.variables)
    return removed(places, *names) if known else where_set(*names)


def removed(places: Collection[Assignment], *names: str) -> Fix:
    """Return the command that removes the lines at these places, all that set the variables."""
    return _edited(places, names, f"/^(export +)?{_one_of(names)}=/d")


def changed(places: Collection[Assignment], name: str, value: str) -> Fix:
    """Return the command that sets another value there. `value` has no character that sed or a shell reads."""
    return _edited(places, (name,), rf"s/^(export +)?{name}=.*/\1{name}={value}/")


def renamed(places: Collection[Assignment], name: str, wanted: str) -> Fix:
    """Return the command that gives a variable there another name."""
    return _edited(places, (name,), rf"s/^(export +)?{name}=/\1{wanted}=/")


def parameter_removed(setting: MpiSetting) -> Fix:
    """Return the command that removes a parameter of Open MPI from a node: its variable, or its line of a file."""
    if setting.variable:
        return removed(setting.start_up, setting.variable)
    edit = quote(rf"/^[[:space:]]*{setting.name}[[:space:]]*=/d")
    return Fix(f"{sudo_for(setting.file)}sed -i --follow-symlinks {edit} {_typed(setting.file)}")


_ULIMIT = {
    "memlock": "l", "nofile": "n", "nproc": "u", "as": "v", "cpu": "t", "fsize": "f", "stack": "s", "data": "d",
}  # fmt: skip


def limit_set_to(wanted: str, name: str, limits: LimitsFacts, identity: object = None, *, hard: bool = True) -> Fix:
    """Return the command that gives logins another limit, by its name in limits.conf: `ulimit`'s line is removed, and
    PAM's line changed. Where a line does more than that, it is shown. Where no file is known, PAM gets a line.

    PAM's "*" is any user but root.
    """
    places = limits.set_in.get(name, ())
    files = dict.fromkeys(place.file for place in places)
    if not all(place.sets == (name,) for place in places):
        return Fix(f"grep -nE {quote(f'ulimit|{name}')} {' '.join(map(_typed, files))}", look=True)
    if files:
        ulimit = rf"/^[[:space:]]*ulimit( +-[SH]+)* +-[SH]*{_ULIMIT[name]} +[0-9a-z]+ *(#.*)?$/d"
        pam = rf"s/^([^#]*[[:space:]]{name}[[:space:]]+)[^[:space:]#]+/\1{wanted}/"
        edits = ((file, pam if file.startswith("/etc/security/") else ulimit) for file in files)
        return Fix(
            "; ".join(
                f"{sudo_for(file)}sed -i --follow-symlinks -E {quote(edit)} {_typed(file)}" for file, edit in edits
            )
        )
    user = "root" if isinstance(identity, IdentityFacts) and identity.user_id == 0 else "*"
    lines = "".join(rf"{user} {kind} {name} {wanted}\n" for kind in ("soft", *(["hard"] if hard else [])))
    return Fix(f"printf '{lines}' | sudo tee /etc/security/limits.d/90-{name}.conf")


def set_at(places: Iterable[Assignment]) -> tuple[str, ...]:
    """Return where something is set, as evidence."""
    return tuple(f"set in {place.file}, line {place.line}" for place in places)


def where_set(*names: str) -> Fix:
    """Return the command that shows where variables are set, for a person to read."""
    return Fix(f"grep -snE {quote(f'{_one_of(names)}=')} {' '.join(_USUAL)}", look=True)


def _edited(places: Collection[Assignment], names: Collection[str], edit: str) -> Fix:
    """Return sed's command, if each of the lines does nothing else; else the command that shows these lines."""
    files = dict.fromkeys(place.file for place in places)
    if not places:
        return where_set(*names)
    if all(place.sets and set(place.sets) <= set(names) for place in places):
        return Fix("; ".join(_sed(edit, file) for file in files))
    return Fix(f"grep -nE {quote(f'{_one_of(names)}=')} {' '.join(map(_typed, files))}", look=True)


def _sed(edit: str, file: str) -> str:
    return f"{sudo_for(file)}sed -i --follow-symlinks -E {quote(edit)} {_typed(file)}"


def _one_of(names: Collection[str]) -> str:
    return "".join(names) if len(names) == 1 else f"({'|'.join(names)})"


def _typed(file: str) -> str:
    """Quote a path for a shell, which expands "~/" only outside of quotes; no path is an option."""
    return f"~/{quote(file[2:])}" if file.startswith("~/") else quote(f"./{file}" if file.startswith("-") else file)
