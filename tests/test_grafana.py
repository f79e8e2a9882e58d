"""docs/examples/grafana: Grafana's own model reads the dashboard, and its queries name metrics that ncheck writes."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import promql_parser
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from ncheck import Report, replay
from ncheck.model.report import GpuAlone, GpuFigure
from ncheck.report.openmetrics import print_report
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[1]
BOARD: dict[str, Any] = json.loads((ROOT / "docs" / "examples" / "grafana" / "ncheck.json").read_text())
SCRAPED = {"instance", "job"}  # Prometheus adds them


def written(*reports: Report) -> dict[str, set[str]]:
    """Return the metrics of reports, each with the names of its labels."""
    found: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        stream = io.StringIO()
        print_report(report, stream, {})
        for family in text_string_to_metric_families(stream.getvalue()):
            found[family.name].update(*(sample.labels for sample in family.samples))
    return found


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query with the labels that its legend names."""
    for panel in BOARD["panels"]:
        yield from ((target["expr"], target["legendFormat"]) for target in panel["targets"])


def selectors(query: Any) -> Iterator[promql_parser.VectorSelector]:
    if isinstance(query, promql_parser.VectorSelector):
        yield query
    for name in ("expr", "lhs", "rhs", "vector_selector"):
        if inner := getattr(query, name, None):
            yield from selectors(inner)
    for inner in getattr(query, "args", ()):
        yield from selectors(inner)


def lost(given: Any, read: Any, path: str = "") -> Iterator[str]:
    """Yield what is not the same, or not there any more, in what Grafana's model made of it."""
    if isinstance(given, dict) and isinstance(read, dict):
        for name, value in given.items():
            yield from lost(value, read.get(name), f"{path}.{name}")
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for place, value in enumerate(given):
            yield from lost(value, read[place], f"{path}[{place}]")
    elif given != read:
        yield path


def test_the_model_of_grafana_knows_each_member_of_the_dashboard() -> None:
    register_default_plugins()
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(BOARD)))
    assert list(lost(BOARD, read)) == []


def test_every_query_is_promql_about_metrics_and_labels_that_ncheck_writes() -> None:
    measured = replay(ROOT / "fixtures" / "slow-node-and-rail")
    alone = GpuAlone("node01", "0000:5d:00.0", "GPU-1", "H100", (GpuFigure("bf16", 700.0, "TFLOP/s"),))
    known = written(replace(measured, gpus_alone=(alone,)), replay(ROOT / "fixtures" / "demo"))
    used = set()
    for expression, legend in queries():
        found = list(selectors(promql_parser.parse(expression)))
        assert found, expression
        for selector in found:
            name = selector.name or ""
            assert name in known, expression
            used.add(name)
            named = {matcher.name for matcher in selector.matchers.matchers} | set(re.findall(r"{{(\w+)}}", legend))
            assert named <= known[name] | SCRAPED, expression
    assert used >= {"ncheck_state", "ncheck_run_timestamp_seconds", "ncheck_node_good", "ncheck_finding"}
    for variable in BOARD["templating"]["list"][1:]:
        metric, label = re.findall(r"ncheck_\w+|\w+(?=\)$)", variable["query"]["query"])
        assert label in known[metric] | SCRAPED


def test_no_two_panels_lie_on_each_other() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in BOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
