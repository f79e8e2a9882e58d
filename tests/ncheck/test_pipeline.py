"""The whole run, where the parts that are tested by themselves meet."""

from __future__ import annotations

from ncheck.observer import Silent
from ncheck.pipeline import examine
from ncheck.settings import JobEnvironment, Settings

HANGS = "sh -c 'exec sleep 600' {node}"  # a way in on which nothing ever comes


def test_a_node_that_is_busy_beyond_the_deadline_costs_nobody_the_report() -> None:
    way = JobEnvironment(rsh=HANGS)
    settings = Settings(hosts="n1", environment=way, deadline=1.0, connect_timeout=60.0, probe_time=60.0)
    report = examine(settings, Silent())
    assert [(node.name, node.reached, node.cause) for node in report.nodes] == [("n1", False, "deadline")]
    assert report.exit_code == 1
