"""The report that every rank gets: packed once, and unpacked only where somebody looks."""

from __future__ import annotations

import base64
import pickle
import re
import zlib

import pytest
from ncheck.hook.late_report import unpacked
from ncheck.hook.meeting.wire import LARGEST_FROM_HUB, MOST_VALUES
from ncheck.hook.verdict import packed
from ncheck.model.report import Report, State

from tests.recorded.replayed import CLUSTERS, replayed


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_report_comes_back_as_it_was(cluster: str) -> None:
    report = replayed(cluster)
    late = unpacked(packed(report))
    assert late.exit_code == report.exit_code
    assert type(late) is Report
    assert late == report


def test_nothing_is_unpacked_before_somebody_looks() -> None:
    late = unpacked("no report at all")
    assert isinstance(late, Report)
    assert object.__getattribute__(late, "__dict__").keys() == {"_packed"}
    assert re.fullmatch(r"the report of rank 0 cannot be read: .*(base64|padding|header).*", late.probe.reason)
    assert (late.findings, late.nodes, late.state) == ((), (), State.NOT_VERIFIED)


def test_a_report_of_another_ncheck_that_lacks_what_this_one_needs_raises_nothing_in_the_job() -> None:
    late = unpacked(base64.b64encode(zlib.compress(b'{"exit_code": 0}')).decode())
    assert re.fullmatch(r"the report of rank 0 cannot be read: Report without .*findings.*", late.probe.reason)


def test_a_report_that_nobody_has_looked_at_compares_prints_and_pickles_like_any_other() -> None:
    report = replayed("healthy-4x8-h100")
    text = packed(report)
    assert unpacked(text) == report
    assert report == unpacked(text)
    assert repr(unpacked(text)).startswith("Report(exit_code=0, nodes=(NodeSummary(name=")
    assert pickle.loads(pickle.dumps(unpacked(text))) == report  # noqa: S301  our own


@pytest.mark.parametrize("text", [b"[" + b"[]," * MOST_VALUES + b"[]]", b" " * (LARGEST_FROM_HUB + 1), b"[" * 100_000])
def test_a_report_that_is_small_on_the_wire_and_huge_in_memory_is_refused(text: bytes) -> None:
    late = unpacked(base64.b64encode(zlib.compress(text)).decode())
    assert re.fullmatch(r"the report of rank 0 cannot be read: .*too (large|many values|deep).*", late.probe.reason)
