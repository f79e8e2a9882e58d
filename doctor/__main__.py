"""The door: answers --version before anything heavy is imported, then hands over to cli.py."""

from __future__ import annotations

import sys

import doctor


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"]:
        print(f"ncheck {doctor.__version__}")  # noqa: T201  the one answer that needs nothing else
        return 0
    from doctor.cli import main as run  # noqa: PLC0415  click and all that follows are dear

    return run(sys.argv[1:])


def leave_current_folder(path: list[str], folder: str, home: str) -> None:
    """Take the folder that `python -m` puts first off the import path, unless our own package was found there.

    A training repository often has a folder called checks, or a file json.py, and neither is ours.
    """
    if path and path[0] in ("", folder) and folder != home:
        del path[0]


def _started_by_module() -> None:
    import os  # noqa: PLC0415  loaded already by every interpreter; only this way of starting needs it

    home = os.path.dirname(os.path.dirname(os.path.abspath(doctor.__file__)))  # noqa: PTH100, PTH120  pathlib is dear
    leave_current_folder(sys.path, os.getcwd(), home)  # noqa: PTH109
    sys.exit(main())


if __name__ == "__main__":
    _started_by_module()
