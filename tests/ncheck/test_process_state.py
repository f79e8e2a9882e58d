"""The library leaves a program's process as it is; only the command changes its own."""

from __future__ import annotations

import json
import subprocess
import sys

# A program that uses the library: paramiko is imported, a refused login is tried, a node is examined.
PROGRAM = """
import gc, json, logging, resource, sys

def state():
    log = logging.getLogger("paramiko")
    return {
        "invoke": "invoke" in sys.modules and sys.modules["invoke"] is None,
        "finders": len(sys.meta_path),
        "root log": [logging.root.level, len(logging.root.handlers)],
        "paramiko log": [log.level, log.propagate, log.disabled, len(log.handlers)],
        "open files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "garbage": gc.get_threshold(),
    }

resource.setrlimit(resource.RLIMIT_NOFILE, (512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
before = state()
import ncheck
from ncheck.fleet.engine import NotConnectedError
from ncheck.fleet.engines import engines
from ncheck.model.node import Node
from ncheck.observer import Silent
from ncheck.pipeline import examine
from ncheck.settings import Settings

settings = Settings(ssh_config="none", transport="paramiko", probe="none", select=("clock-differs",))
try:
    engines(settings)(Node("127.0.0.1", port=1)).connect(Node("127.0.0.1", port=1), 5.0)
except NotConnectedError as error:
    assert error.login.transport == "paramiko", error
assert "paramiko" in sys.modules
examine(Settings(local=True, probe="none", select=("clock-differs",)), Silent())
json.dump([before, state()], sys.stdout)
"""


def test_importing_and_using_the_library_leaves_the_process_as_it_was() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert after == before


def test_the_command_hides_invoke_from_paramiko_and_from_nobody_else() -> None:
    program = (
        "import sys; from ncheck.cli.process import prepare_fan_out; prepare_fan_out(); prepare_fan_out(); "
        "import paramiko; print('invoke' in sys.modules, sum('ncheck' in repr(type(f)) for f in sys.meta_path)); "
        "import invoke"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, "No module named" in done.stderr) == ("False 1\n", not _has_invoke())


def _has_invoke() -> bool:
    from importlib.util import find_spec

    return find_spec("invoke") is not None


def test_the_command_raises_the_limit_of_open_files_and_never_lowers_it() -> None:
    program = (
        "import resource as r; from ncheck.cli.process import allow_open_files as allow\n"
        "hard = r.getrlimit(r.RLIMIT_NOFILE)[1]\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (64, min(hard, 4096) if hard > 0 else 4096))\n"
        "for wanted in (100, 50, 10**6):\n"
        "    allow(wanted); print(r.getrlimit(r.RLIMIT_NOFILE)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["100", "100", "4096"]
