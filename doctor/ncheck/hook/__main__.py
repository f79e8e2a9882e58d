"""`python -m ncheck.hook train.py ARGS`: see ncheck.hook.command_line.

A file of the current folder may have the name of a module of Python's library (typing.py, signal.py). So nothing is
imported here but what Python's own `-m` has imported already, before that folder is last.
"""

from __future__ import annotations

import os
import sys

import ncheck
from ncheck.__main__ import current_folder, current_folder_last

if __name__ == "__main__":
    current_folder_last(sys.path, current_folder(), os.path.dirname(os.path.dirname(ncheck.__file__)))  # noqa: PTH120
    from ncheck.hook.command_line import main

    sys.exit(main(sys.orig_argv))
