"""How often a node is waited for: the flights of one connection, counted by a proxy through which it is far away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from . import layers
from .command import begin, on_head
from .hosts import Lab, lab
from .layers import CHECKOUT

ROUND_TRIP = 0.3  # seconds: the flights must be apart on a busy machine, too

# The identification, the algorithms, the key exchange, the service, the key, the channel, the command with the shell's
# greeting, and the end, for which nobody waits. TCP's own handshake comes before.
LOGIN = 8
# The agent with the first questions, the clock once python3 runs, and the ports of the job.
COLLECTION = LOGIN + 3


@pytest.fixture(scope="module")
def one_host() -> Iterator[Lab]:
    with lab(1) as made:
        yield made


@contextmanager
def far(made: Lab) -> Iterator[subprocess.Popen[str]]:
    """Lead to the host through the proxy, by the configuration in the file `far` on the head."""
    (name,) = made.names
    proxy = [sys.executable, str(CHECKOUT / "bench/delay_proxy.py"), made.addresses[name], "22", str(ROUND_TRIP)]
    with subprocess.Popen(on_head(made, proxy), stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout
            port = int(running.stdout.readline())
            layers.write(made.root / "root/known", f"[127.0.0.1]:{port} {made.host_keys[name].public}")
            config = f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  UserKnownHostsFile ~/known\n"
            layers.write(made.root / "root/far", config)
            layers.write(made.root / "root/nodes.txt", f"{name}\n")
            yield running
        finally:
            running.terminate()


@pytest.mark.parametrize(("options", "flights"), [(("--select", "NC1"), LOGIN), ((), COLLECTION)])
def test_a_run_waits_for_a_node_no_more_often_than_it_must(
    one_host: Lab, options: tuple[str, ...], flights: int
) -> None:
    with far(one_host) as proxy:
        run = begin(one_host, "nodes.txt", "-F", "far", "-o", "json", *options).wait(60)
        assert run.exit_code == 0
        assert proxy.stdout
        ended = dict(proxy.stdout.readline().strip().split(": ") for _ in range(2))  # ncheck's own, and that of ssh
    assert int(ended["1"]) <= flights
