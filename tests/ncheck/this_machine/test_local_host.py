"""What ncheck knows of the machine that it runs on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from ncheck.settings import JobEnvironment, RunContext, Settings
from ncheck.this_machine.local_host import read_local_host


@pytest.mark.skipif(not shutil.which("ip"), reason="there is no ip program here")
@pytest.mark.parametrize("missing", [(), ("netifaces",)])  # the single file has no netifaces
def test_this_machines_addresses_are_those_that_ip_shows(
    missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    links = json.loads(subprocess.run(["ip", "-j", "addr"], capture_output=True, check=True).stdout)
    local_host = read_local_host(Settings(), {"LD_LIBRARY_PATH": "/opt/lib"})
    assert local_host is not None
    assert local_host.interfaces == {
        one["local"]: one.get("label", link["ifname"]) for link in links for one in link["addr_info"]
    }
    assert (local_host.variables, local_host.root) == (frozenset({"LD_LIBRARY_PATH"}), os.geteuid() == 0)


RUN = """
import sys
from ncheck.cli.main import main
main([*sys.argv[1:], "--select", "NC1", "--probe", "none", "--config", "none"])
print(*(name for name in ("netifaces", "psutil") if name in sys.modules))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "packages"), [
    (("local",), "netifaces psutil"),  # its addresses, and the end of what it started here
    (("-H", "127.0.0.1", "-p", "1"), "netifaces"),  # nothing listens there
])  # fmt: skip
def test_an_ordinary_run_imports_what_it_uses_of_this_machine(nodes: tuple[str, ...], packages: str) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", RUN, *nodes], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == packages


@pytest.mark.parametrize("settings", [
    Settings(run=RunContext(rehearsal=True)),
    Settings(environment=JobEnvironment(enter="docker exec -i train")),
    Settings(environment=JobEnvironment(rsh="kubectl exec -i {node} --")),
])  # fmt: skip
def test_nothing_is_known_of_the_machine_where_a_line_is_typed_elsewhere(settings: Settings) -> None:
    assert read_local_host(settings, {}) is None
