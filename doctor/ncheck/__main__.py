"""The door: answers --version before anything heavy is imported, then hands over to cli.py."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

from ncheck.version import __version__


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"]:
        try:
            print(f"ncheck {__version__}", flush=True)  # noqa: T201  the one answer that needs nothing else
        except OSError as error:
            return failed(error, "the output is incomplete")
        return 0
    try:
        return run_command_line()
    except KeyboardInterrupt:  # while the commands are imported: later they answer it
        with suppress(OSError):
            os.write(2, b"ncheck: interrupted\n")
        return 130
    except (OSError, MemoryError, SystemError) as error:
        return failed(error, "this machine lets ncheck use too little")


def run_command_line() -> int:
    """Run a command and return its exit code. Raises OSError and MemoryError where not even that can be imported."""
    current_folder_last(sys.path, current_folder(), os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120
    from ncheck.cli.process import collect_garbage_rarely

    collect_garbage_rarely()
    from ncheck.cli.main import main as run

    code = run(sys.argv[1:])
    gc.freeze()
    import threading  # not before the current folder is last: a file there may have this name

    if any(thread.daemon for thread in threading.enumerate()):
        leave(code)
    return code


def failed(error: Exception, what: str) -> int:
    """End with one line where no more can be imported or written."""
    with suppress(OSError):
        os.write(2, f"ncheck: {what}: {getattr(error, 'strerror', None) or 'out of memory'}\n".encode())
    os._exit(2)  # Python would try to write again what it could not


def leave(code: int) -> None:
    """End at once: a name that is still looked up would make Python abort where it ends its threads."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def current_folder_last(path: list[str], folder: str, home: str) -> None:
    """Put the current folder behind everything installed, unless our own package lies there (a checkout).

    `python -m` puts it first, and so does a PYTHONPATH with an empty entry; a training repository often has a folder
    called checks or a file called json.py, and neither is ours. It stays on the path for plug-ins written there.
    """
    if folder != home:
        path.sort(key=lambda entry: entry in ("", folder))


def current_folder() -> str:
    """Return the current folder; nothing if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109  pathlib is dear
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
