"""The second look at error counters on real hosts: after the measurement, and whatever happens between the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.facts.definition import LOOKING_AGAIN
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import examine, replay
from ncheck.settings import JobEnvironment, Settings

from tests.skips import cannot

from .conftest import why_not
from .wires import BareHost, BareHosts, bare_hosts

COUNTER = "/mnt/class/infiniband/mlx5_0/ports/1/counters/link_downed"
LOST = f"echo 5 > {COUNTER}"
_HCA = """
mount -t tmpfs hca /mnt && mkdir -p /mnt/class/infiniband/mlx5_0/ports/1/counters && cd /mnt/class/infiniband/mlx5_0
echo MT4129 > hca_type; echo 28.39.1002 > fw_ver; echo 0c42:a103:00aa:0001 > node_guid; echo '1: CA' > node_type
cd ports/1; echo '4: ACTIVE' > state; echo '5: LinkUp' > phys_state; echo '400 Gb/sec (4X NDR)' > rate
echo InfiniBand > link_layer; echo 0x1 > lid; echo 0x1 > sm_lid; echo 3 > counters/link_downed
mkdir /mnt/class/infiniband_mad; echo 5 > /mnt/class/infiniband_mad/abi_version
mount -t overlay -o lowerdir=/mnt/class:/sys/class hca /sys/class
"""


class Between(Silent):
    """Does something when the second look begins, and notes the stages in their order."""

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.act, self.stages = act, list[str]()

    def stage(self, node: str, stage: str, *, slow: bool = False) -> None:  # noqa: ARG002  of no interest
        if stage not in self.stages:
            self.stages.append(stage)
            if stage == LOOKING_AGAIN:
                self.act()


@pytest.fixture
def hosts() -> Iterator[BareHosts]:
    """Two hosts, each with an HCA that lost its link three times before."""
    if why := why_not():
        cannot(why)
    with bare_hosts(2) as made:
        for host in made.hosts:
            host.sh(_HCA)
        yield made


def settings(made: BareHosts, **more: object) -> Settings:
    return Settings(
        hosts=",".join(host.name for host in made.hosts), environment=JobEnvironment(rsh=made.rsh),
        select=("NC425",), connect_timeout=60.0, command_timeout=60.0, deadline=240.0, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def outcomes(report: Report) -> dict[str, str]:
    verdicts = [verdict for verdict in report.verdicts if verdict.code == "NC425"]
    return {node: verdict.outcome.value for verdict in verdicts for node in verdict.nodes}


def lose_link(host: BareHost) -> Callable[[], object]:
    return lambda: host.sh(LOST)


def test_only_what_is_counted_between_the_looks_is_found_and_a_recording_says_the_same(
    hosts: BareHosts, tmp_path: Path
) -> None:
    recording = str(tmp_path / "recording")
    live = examine(settings(hosts, record=recording), Between(lose_link(hosts.hosts[1])))
    again = replay(recording, Settings(), Silent())

    (found,) = live.findings
    assert (found.code, found.nodes) == ("NC425", ("host002",))
    assert found.message.startswith("mlx5_0:1 lost its link during the run: link_downed +2 in ")
    assert outcomes(live) == outcomes(again) == {"host001": "passed", "host002": "failed"}
    assert again.findings == live.findings
    assert (live.exit_code, again.exit_code) == (1, 1)


def test_the_second_look_comes_after_the_bandwidth_test(hosts: BareHosts) -> None:
    between = Between(lose_link(hosts.hosts[0]))
    measuring = replace(settings(hosts), probe="tcp", probe_time=20.0, select=("NC425", "NC7"))

    report = examine(measuring, between)

    assert outcomes(report) == {"host001": "failed", "host002": "passed"}
    stages = [stage for stage in between.stages if stage.startswith("measuring") or stage == LOOKING_AGAIN]
    assert len(stages) > 1, between.stages
    assert stages[-1] == LOOKING_AGAIN


def test_a_node_that_does_not_answer_the_second_time_is_unknown(hosts: BareHosts) -> None:
    report = examine(settings(hosts), Between(lambda: hosts.hosts[0].sh("kill -9 -1")))
    assert outcomes(report) == {"host001": "unknown", "host002": "passed"}
    assert report.exit_code == 1


def test_a_node_that_is_busy_until_the_deadline_keeps_no_other_from_its_second_look(hosts: BareHosts) -> None:
    hanging = "printf '#!/bin/sh\\nexec sleep 600\\n' > /mnt/ibstat && chmod 755 /mnt/ibstat"
    hosts.hosts[0].sh(f"{hanging} && mount --bind /mnt/ibstat $(which ibstat)")
    report = examine(replace(settings(hosts), deadline=10.0), Silent())
    assert outcomes(report) == {"host001": "unknown", "host002": "passed"}


def test_an_interruption_before_the_second_look_leaves_both_unknown(hosts: BareHosts) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    report = examine(settings(hosts), Between(interrupt))
    assert outcomes(report) == {"host001": "unknown", "host002": "unknown"}
    assert report.exit_code == 130
