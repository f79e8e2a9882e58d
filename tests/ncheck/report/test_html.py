"""The report as a page: whole against golden files, by itself, safe with hostile text, and fit for a screen reader."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import jinja2
import pytest
from ncheck.model.board import Board, Domain
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import Pair, Report, Traffic
from ncheck.model.system import System
from ncheck.report import show
from ncheck.report.html import as_html, curve_of
from ncheck.report.language import tr

from .measurements import MEASURED, everywhere, probe, slow_node

GOLDEN = Path(__file__).parent / "golden"
VOID = {"meta", "line", "path", "rect", "br", "input"}
HOSTILE = "</style></svg></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e"


class Page(HTMLParser):
    """Every tag with its attributes, and all text; what is opened must be closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


EVIL_BOARD = Board(
    (Domain(HOSTILE, (((HOSTILE,), (HOSTILE, HOSTILE)),), (HOSTILE,)),), (HOSTILE,), (HOSTILE,), (HOSTILE,), HOSTILE,
    (HOSTILE,), HOSTILE,
)  # fmt: skip
BOARD = Board(
    (
        Domain("NUMA node 0: CPUs 0-31", ((("GPU0", "GPU1", "NIC0 (mlx5_0)"),), (("GPU2",), ("NIC1 (mlx5_1)",)))),
        Domain("NUMA node 1: CPUs 32-63", (), ("GPU3",)),
    ),
    (), ("NVLink NV4: GPU0-GPU1",), ("GPU0 -> NIC0 (mlx5_0) (PIX)",), "SYS (the link between the CPUs)",
    ("node01", "node02"), "nvidia-smi",
)  # fmt: skip


def every_page(reports: dict[str, Report]) -> dict[str, str]:
    measured = {f"measured_{name}": made(reports["mixed_nccl"]) for name, made in MEASURED.items()}
    return {name: as_html(report) for name, report in {**reports, **measured, "evil": evil(reports["healthy"])}.items()}


def evil(report: Report) -> Report:
    """Return a report in which every word of a node would like to be a part of the page."""
    finding = Finding(
        "NC201", "nccl-version-differs", Severity.ERROR, ("node01",), HOSTILE, (HOSTILE,) * 5, f"echo {HOSTILE}"
    )
    unknown = Verdict("gpu-count-differs", "NC501", ("node02",), Outcome.UNKNOWN, HOSTILE)
    nodes = tuple(
        replace(node, interpreter=HOSTILE, detail=HOSTILE, host_name=HOSTILE, addresses={HOSTILE: (HOSTILE,)})
        for node in report.nodes
    )
    systems = (System(nodes=("node01",), mpi=HOSTILE, mpi_version=HOSTILE, unknown={"gpus": HOSTILE}),)
    one = everywhere(by=HOSTILE, limited_by=HOSTILE, lowered_by=(HOSTILE,))
    lost = everywhere(measured=None, curve=(), stage="pair", failed=HOSTILE)
    ran = probe((Pair(("node01", "node02"), 1.0), Pair(("node01", "node03"), None)),
                (Traffic("node01", HOSTILE, 10**10, 0, planned=True),))  # fmt: skip
    plan = LaunchPlan({HOSTILE: Setting(HOSTILE, HOSTILE)}, {"mpirun": HOSTILE}, (HOSTILE,), {"mpirun": (HOSTILE,)})
    return replace(
        report, nodes=nodes, systems=systems, findings=(finding,), verdicts=(*report.verdicts, unknown),
        measurements=(one, lost), probe=replace(ran, reason=HOSTILE), plan=plan, boards=(EVIL_BOARD,),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["healthy", "slow_node"])
def test_each_page_is_as_its_golden_file_says(name: str, reports: dict[str, Report]) -> None:
    """But for page.css, and for the script with its hash, which a test of their own holds."""
    style = files("ncheck.report").joinpath("page.css").read_text()
    page = as_html(MEASURED[name](reports["healthy"])).replace(style, "...")
    page = re.sub(r"(?s)(?<=<script>).*(?=</script>)|(?<=script-src ')[^']*", "...", page)
    golden = GOLDEN / f"{name}.html"
    if os.environ.get("NCHECK_GOLDEN") == "write":
        golden.write_text(page, encoding="ascii")
    assert page == golden.read_text(encoding="ascii")


@pytest.mark.slow
def test_every_page_is_well_formed_and_needs_nothing_but_itself(reports: dict[str, Report]) -> None:
    for name, text in every_page(reports).items():
        page = Page(text)
        outside = {"src", "srcset", "action", "data", "poster", "xlink:href"}
        assert (name, [tag for tag, attributes in page.tags if outside & set(attributes)]) == (name, [])
        assert {"link", "iframe", "object", "img", "form", "base"} & {tag for tag, _ in page.tags} == set()
        assert "url(" not in text
        assert "@import" not in text


@pytest.mark.slow
def test_the_page_runs_our_own_script_by_its_hash_and_no_other(reports: dict[str, Report]) -> None:
    source = files("ncheck.report").joinpath("page.js").read_text()
    ours = jinja2.Template(source, keep_trailing_newline=True).render(tr=tr)
    for text in every_page(reports).values():
        (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
        assert script == ours
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = next(one["content"] for one in Page(text).named("meta") if one.get("http-equiv"))
        assert policy == (
            f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'; "
            "form-action 'none'"
        )
        assert script.isascii()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|fetch|XMLHttp|eval|import|https?:|document.write", script
        )


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_is_one_that_a_javascript_engine_reads() -> None:
    path = str(files("ncheck.report").joinpath("page.js"))
    done = subprocess.run(["node", "--check", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_link_leads_to_a_part_of_the_page(reports: dict[str, Report]) -> None:
    for text in every_page(reports).values():
        page = Page(text)
        ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
        for link in page.named("a"):
            assert (link["href"] or "")[:1] == "#"
            assert (link["href"] or "")[1:] in ids


def test_each_finding_has_an_anchor_says_where_to_type_and_stands_in_the_card_of_its_cause(
    reports: dict[str, Report],
) -> None:
    page = Page(as_html(reports["one_down"]))
    assert [one.get("id") for one in page.named("article")] == ["NC112"]
    assert "NC001" in {one.get("id") for one in page.named("li")}
    assert "so also:" in page.text
    assert "fix on node04:" in Page(as_html(reports["mixed_nccl"])).text


def test_a_second_finding_of_a_check_has_an_anchor_of_its_own(reports: dict[str, Report]) -> None:
    report = reports["mixed_nccl"]
    (first, *_) = report.findings
    page = Page(as_html(replace(report, findings=(first, replace(first, message="another", nodes=("node01",))))))
    assert [one["id"] for one in page.named("article")] == ["NC201", "NC201-2"]


def test_no_column_of_a_table_shrinks_to_one_letter(reports: dict[str, Report]) -> None:
    text = as_html(reports["one_down"])
    tables = [one.get("class") for one in Page(text).named("table")]
    assert tables == ["matrix", "details five", *["details"] * (len(tables) - 2)]
    assert re.search(r"\.details { table-layout: fixed;", text)
    assert "overflow-wrap: break-word" in next(line for line in text.splitlines() if line.startswith("th, td {"))


def test_on_a_phone_each_cell_of_a_detail_table_has_its_label(reports: dict[str, Report]) -> None:
    text = as_html(reports["one_down"])
    assert "@media (max-width: 40rem)" in text
    for table in re.findall(r'<table class="details[^>]*>.*?</table>', text, flags=re.DOTALL):
        heads = re.findall(r'<th scope="col">(.*?)</th>', table)
        cells = re.findall(r'data-label="(.*?)"', table)
        assert cells == heads * (len(cells) // len(heads))


def test_the_curve_is_logarithmic_both_ways() -> None:
    one = everywhere(400.0)
    curve = curve_of(
        replace(one, curve=tuple(replace(p, busbw=10.0 ** (i // 2 - 3)) for i, p in enumerate(one.curve))), ""
    )
    assert curve
    assert [label for _, label in curve.up] == ["0.001", "0.01", "0.1", "1", "10", "100", "1000"]
    few = curve_of(one, "")
    assert few
    assert [label for _, label in few.up] == ["1", "10", "100", "500"]
    heights = [dot.y for dot in curve.lines[0].dots]
    steps = {round(a - b, 6) for a, b in pairwise(heights)}
    assert len(steps) == 1


def test_what_a_node_wrote_is_text_wherever_it_stands(reports: dict[str, Report]) -> None:
    text = as_html(evil(reports["healthy"]))
    page = Page(text)
    assert text.count("<script") == 1
    assert "\u202e" not in text
    assert "&#8238;" not in text
    assert [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)] == []
    shown = HOSTILE.replace("\u202e", "?")
    assert page.text.count(shown) > 15
    assert f"echo {shown}" in page.text


def test_pictures_tables_and_parts_have_names_for_those_who_do_not_see_them(reports: dict[str, Report]) -> None:
    page = Page(as_html(slow_node(reports["mixed_nccl"])))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    drawings = page.named("svg")
    assert len(drawings) == 2
    for attributes in (*drawings, *page.named("section")):
        assert set((attributes["aria-labelledby"] or "").split()) <= set(ids)
    assert {attributes["role"] for attributes in drawings} == {"img"}
    assert len(page.named("caption")) == len(page.named("table"))
    assert all("scope" in attributes for attributes in page.named("th"))
    assert page.named("html") == [{"lang": "en"}]
    assert [tag for tag, _ in page.tags if tag == "h1"] == ["h1"]


def test_a_kind_of_node_is_drawn_once_with_its_nodes(reports: dict[str, Report]) -> None:
    page = Page(as_html(replace(reports["healthy"], boards=(BOARD,))))
    assert page.text.count("PCIe switch") == 1
    start = page.text.index("node[01-02] GPUs and NICs, from nvidia-smi")
    assert page.text[start:].startswith(
        "node[01-02] GPUs and NICs, from nvidia-smi NUMA node 0: CPUs 0-31 host bridge PCIe switch GPU0 GPU1"
        " NIC0 (mlx5_0) host bridge GPU2 NIC1 (mlx5_1) NUMA node 1: CPUs 32-63 no device near GPU3"
        " NVLink NV4: GPU0-GPU1 worst hop of a ring over all GPUs: SYS (the link between the CPUs)"
        " Nearest NIC of each GPU GPU0 -> NIC0 (mlx5_0) (PIX) Each node"
    )
    classes = [one.get("class") for one in page.named("span")]
    assert (classes.count("device gpu"), classes.count("device")) == (4, 2)


def test_devices_of_an_unknown_place_are_drawn_in_a_box_that_wraps(reports: dict[str, Report]) -> None:
    unplaced = tuple(f"GPU{index}" for index in range(8))
    text = as_html(replace(reports["healthy"], boards=(Board((), unplaced, (), (), "", ("node01",), "nvidia-smi"),)))
    figure = text[text.index('<figure class="board">') : text.index("</figure>")]
    assert '<div class="domain"><p>place not shown</p>\n<div class="switch"><span class="device gpu">GPU0' in figure
    assert figure.count("<div") == figure.count("</div>")
    assert "<ul>" not in figure  # there is nothing to list


def test_each_size_has_its_time_and_both_rates_as_nccl_tests_tabulates_them(reports: dict[str, Report]) -> None:
    text = as_html(slow_node(reports["healthy"]))
    # <tr><th scope="row">1048576</th><td>891.26</td><td>1.18</td><td>2.28</td><td>0</td>...
    rows = re.findall(r'<tr><th scope="row">(\d+)</th>(.*?)</tr>', text)
    assert [int(size) >> 20 for size, _ in rows] == [1, 4, 16, 64, 256, 512, 1024]
    assert re.findall(r"<td>(.*?)</td>", rows[-1][1]) == ["9813.09", "109.42", "212.00", "0"] * 2


def test_where_nothing_was_measured_the_page_says_why_and_draws_nothing(reports: dict[str, Report]) -> None:
    page = Page(as_html(reports["healthy"]))
    assert page.named("svg") == []
    assert "no bandwidth was measured: " in page.text


def test_the_page_is_the_same_whatever_the_streams_encoding(reports: dict[str, Report]) -> None:
    raw = io.BytesIO()
    report = slow_node(reports["one_down"])
    stream = io.TextIOWrapper(raw, encoding="latin-1")
    assert show(report, "html", stream, {}) == 1
    assert raw.getvalue().decode("ascii") == as_html(report)
