"""What `ncheck predict` says of hosts with slow links, beside what gloo, by a real torch, then measures on them."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from ncheck.cli.main import main

from tests.skips import cannot

from .conftest import why_not
from .wires import BareHosts, bare_hosts

MBPS = 100  # so slow that two busy cores do not show
WITHIN = 0.15


def ran(made: BareHosts, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the JSON of a command of ncheck about the hosts, which are entered by their namespaces."""
    hosts = ",".join(host.name for host in made.hosts)
    main((*words, "-H", hosts, "--rsh", made.rsh, "--python", sys.executable, "-o", "json", "--deadline", "240"))
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_predicted_is_what_is_measured_by_two_and_by_four_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    if why := why_not():
        cannot(why)
    if not find_spec("torch"):
        cannot("torch is not installed beside the tests: make test TORCH=1")
    with bare_hosts(4) as made:
        for host in made.hosts:
            host.sh(f"tc qdisc add dev eth0 root tbf rate {MBPS}mbit burst 64kb latency 300ms")
        ops = ("--op", "all-reduce,all-to-all", "--sizes", "4M")
        predicted = ran(made, capsys, "predict", "--link-speed", f"{MBPS / 1000}", *ops)
        measured = ran(made, capsys, "probe", "--probe", "gloo", "--mesh", "none", "--repeats", "3", *ops)
    assert (predicted["library"], {*map(tuple, predicted["nics"].values())}) == ("gloo", {("eth0",)})
    expected = {one["op"]: one["rows"][0]["busbw"] for one in predicted["ops"]}
    found = {
        (row["op"], len(row["nodes"])): row["measured"] / expected[row["op"]]
        for row in measured["measurements"]
        if row["stage"] == "all" or (row["stage"], row["op"]) == ("scaling", "all-reduce")
    }
    assert set(found) == {("all-reduce", 2), ("all-reduce", 4), ("all-to-all", 4)}, measured["probe"]
    assert {what: share for what, share in found.items() if abs(share - 1) > WITHIN} == {}
