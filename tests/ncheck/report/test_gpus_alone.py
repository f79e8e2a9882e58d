"""The GPUs that were tested alone, as a table."""

from __future__ import annotations

import io
from dataclasses import replace

from ncheck.model.report import GpuAlone, GpuFigure, Report, Standing
from ncheck.report.gpus_alone import SHOWN, gpu_table, print_gpus
from ncheck.report.html import as_html
from ncheck.report.page import Page


class Utf8(io.StringIO):
    encoding = "utf-8"


def gpu(index: int, fp32: float = 18.0, standing: Standing = Standing.OK, failed: str = "") -> GpuAlone:
    figures = (
        GpuFigure("FP32", fp32, "TFLOPS", 18.0, standing),
        GpuFigure("launch", 3.1, "us"),
    )
    return GpuAlone(
        "gpu01",
        f"0000:{index:02x}:00.0",
        f"GPU-{index}",
        "NVIDIA A100",
        figures,
        1395,
        391.0,
        61,
        failed,
        ("no cuBLAS",),
    )


def test_the_worst_gpu_comes_first_with_a_bar_for_each_and_fits_a_terminal(reports: dict[str, Report]) -> None:
    alone = (gpu(0), gpu(1, 9.0, Standing.FAR_TOO_LOW), gpu(2, failed="cuInit: no device <b>"))
    stream = Utf8()
    print_gpus(Page(stream, {}), replace(reports["healthy"], gpus_alone=alone))
    assert stream.getvalue() == (
        "  GPUs alone\n"
        "                          FP32  launch  heat\n"
        "                        TFLOPS      us    °C\n"
        "    gpu01 0000:02:00.0      18     3.1    61  ██████████\n"
        "      cuInit: no device <b>\n"
        "    gpu01 0000:01:00.0       9     3.1    61  █████\n"
        "    gpu01 0000:00:00.0      18     3.1    61  ██████████\n"
        "    no cuBLAS\n"
    )


def test_the_page_shows_them_and_reads_no_text_of_a_node_as_markup(reports: dict[str, Report]) -> None:
    page = as_html(replace(reports["healthy"], gpus_alone=(gpu(0, 9.0, Standing.FAR_TOO_LOW), gpu(1, failed="no <b>"))))
    assert '<meter min="0" max="1" low="0.8" high="0.92" optimum="1" value="0.50"></meter> 0.50' in page
    assert "no &lt;b&gt;" in page


def test_of_many_only_the_worst_are_shown(reports: dict[str, Report]) -> None:
    table = gpu_table(replace(reports["healthy"], gpus_alone=tuple(gpu(index) for index in range(SHOWN + 3))))
    assert table is not None
    assert (len(table.rows), table.left_out) == (SHOWN, 3)
    assert gpu_table(reports["healthy"]) is None
