"""The whole run, where the parts that are tested by themselves meet."""

from __future__ import annotations

import cProfile
import socket
from pathlib import Path

import pytest
from ncheck.model.evidence import Cause
from ncheck.observer import Silent
from ncheck.pipeline import examine, time_for_nodes, triage
from ncheck.settings import JobEnvironment, Settings

HANGS = "sh -c 'exec sleep 600' {node}"  # a way in on which nothing ever comes


def test_a_node_that_is_busy_beyond_the_deadline_costs_nobody_the_report() -> None:
    way = JobEnvironment(rsh=HANGS)
    settings = Settings(hosts="n1", environment=way, deadline=1.0, connect_timeout=60.0, probe_time=60.0)
    report = examine(settings, Silent())
    assert [(node.name, node.reached, node.cause) for node in report.nodes] == [("n1", False, "deadline")]
    assert report.exit_code == 1


@pytest.mark.parametrize(("running", "cpu", "left"), [
    (0.6, 0.6, 28.9),  # alone on the machine: half a second is kept to judge and print
    (2.0, 2.0, 27.5),
    (6.0, 0.6, 19.0),  # it got a tenth of a CPU: five seconds are kept
    (18.0, 0.6, 10.0),  # the nodes get a third of the time whatever happens
    (0.0, 0.0, 29.5),
])  # fmt: skip
def test_the_deadline_of_triage_counts_from_the_start_of_the_command_and_leaves_time_to_judge(
    running: float, cpu: float, left: float
) -> None:
    assert time_for_nodes(30.0, running, cpu) == pytest.approx(left)


def test_a_node_that_is_stuck_does_not_keep_triage_beyond_the_deadline() -> None:
    settings = Settings(hosts="n1", environment=JobEnvironment(rsh=HANGS), deadline=1.0, connect_timeout=60.0)
    (found,) = triage(settings, Silent(), 0.5)
    assert (found.login.reached, found.login.cause) == (False, Cause.DEADLINE)


def test_a_run_reads_the_configuration_of_ssh_once(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # it listens to nobody
        host = f"Host n1 n2\n  HostName 127.0.0.1\n  Port {closed.getsockname()[1]}\n"
        (tmp_path / "config").write_text(host)
        settings = Settings(hosts="n1,n2", ssh_config=str(tmp_path / "config"), select=("NC1",))
        profile = cProfile.Profile()
        report = profile.runcall(examine, settings, Silent())
    assert [(node.name, node.cause) for node in report.nodes] == [("n1", "refused"), ("n2", "refused")]
    read = [one for one in profile.getstats() if getattr(one.code, "co_name", "") == "read_config_file"]
    assert [one.callcount for one in read] == [1]
