"""The children of a rank: another Python with the same modules."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

# Neither the current folder nor the script's, where a json.py of the user may lie, comes before the library.
_START = "import sys;sys.path[:]=sys.argv.pop(1).split({separator!r});from {module} import main;{call}"


def start_child(  # noqa: PLR0913  words of one call
    module: str,
    call: str,
    arguments: Sequence[str],
    *,
    stdin: int,
    stdout: int,
    stderr: int = subprocess.DEVNULL,
    site: bool = True,
    environ: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a module's main in a Python like this one, in a session of its own. Raises OSError.

    `site` is for a child that must find plug-ins which are installed in some unusual way.
    """
    return subprocess.Popen(
        command_of(module, call, arguments, site=site),
        stdin=stdin, stdout=stdout, stderr=None if os.environ.get("NCHECK_DEBUG") else stderr,
        start_new_session=True, cwd="/", env=environ, pass_fds=pass_fds,
    )  # fmt: skip


def command_of(module: str, call: str, arguments: Sequence[str], *, site: bool = True) -> list[str]:
    """Return the command that runs a module's main in a Python like this one."""
    code = _START.format(separator=os.pathsep, module=module, call=call)
    alone = "-s" if os.environ.get("PYTHONHOME") else "-I"  # without that variable such a Python finds no library
    flags = [alone, "-B"] if site else [alone, "-B", "-S"]
    return [sys.executable or "python3", *flags, "-c", code, os.pathsep.join(_paths()), *arguments]


def _paths() -> list[str]:
    """Return where this process finds modules, less the folder of the script and the current one."""
    from ncheck import version

    own = os.path.dirname(os.path.dirname(os.path.abspath(version.__file__)))  # noqa: PTH100, PTH120  cheap at start
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    script = os.path.dirname(os.path.abspath(main)) if main else ""  # noqa: PTH100, PTH120
    skipped = {"", script, os.getcwd()} - {own}  # noqa: PTH109
    paths = [path for path in sys.path if os.path.isabs(path) and path not in skipped]  # noqa: PTH117
    return paths if own in paths else [*paths, own]
