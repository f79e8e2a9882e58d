from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import ncheck
import pytest
from ncheck.agent.answers.interfaces import ethtool

HOME = str(Path(ncheck.__file__).parents[1])
SHOW = "import sys; from ncheck.agent.answers.interfaces import ethtool; print(*[ethtool(n)[0] for n in sys.argv[1:]])"


def test_loopback_and_what_is_not_there_have_no_driver() -> None:
    assert {ethtool("lo"), ethtool("no-such-nic"), ethtool("a" * 40)} == {(None, None)}


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None,
    reason="needs root, ip and unshare: interfaces are made in a network namespace of their own",
)
def test_interfaces_without_a_device_are_named_by_the_kernel() -> None:
    made = "ip link add one type veth peer name two && ip link add tap7 type bridge && "
    ran = subprocess.run(
        ["unshare", "-n", "sh", "-c", made + 'exec "$0" -c "$@"', sys.executable, SHOW, "one", "two", "tap7"],
        capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "PYTHONPATH": HOME},
    )  # fmt: skip
    assert ran.stdout.split() == ["veth", "veth", "bridge"]
