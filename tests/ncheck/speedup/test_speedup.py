"""ncheck speedup: the table, the line of 80 %, every format, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ncheck.cli.main import main


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the logs of jobs of 1, 2 and 4 nodes; the last one scales poorly."""
    monkeypatch.chdir(tmp_path)
    for name, rate in (("one", 100.0), ("two", 190.0), ("two-again", 170.0), ("two-third", 186.0), ("four", 280.0)):
        rows = [f"step {step} loss 2.1 {rate if step > 20 else 1.0} samples/s" for step in range(1, 140)]
        (tmp_path / f"{name}.log").write_text("\n".join(rows))
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(("speedup", *args))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("logs")
def test_the_table_has_speed_up_efficiency_and_the_line_of_80_percent(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "1=one.log", "2=two.log", "2=two-again.log", "2=two-third.log", "4=four.log")
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert [line.split("|")[0].rstrip(" #") for line in lines[:6]] == [
        "Efficiency below 80 % at size 4", "",
        "size  runs     throughput  speed-up  efficiency",
        "   1     1  100 samples/s      1.00       100 %",
        "   2     3  186 samples/s      1.86        93 %",
        "   4     1  280 samples/s      2.80        70 %",
    ]  # fmt: skip
    assert lines[5].endswith("#####################   |")  # 21 of 30 cells, and the upright at 24
    assert "next:" in lines
    assert max(map(len, lines)) <= 110
    assert told(capsys, "1=one.log", "2=two.log")[0] == 0
    assert told(capsys, "1=one.log", "4=four.log", "--minimum", "0.7")[0] == 0


def test_other_formats_say_the_same_and_load_nothing(capsys: pytest.CaptureFixture[str], logs: Path) -> None:
    both = ("1=one.log", "4=four.log")
    code, out, _ = told(capsys, *both, "-o", "json", "-o", "html=speedup.html")
    read = json.loads(out)
    assert (code, read["schema"], read["poor"], read["unit"]) == (1, "ncheck.speedup/1", [4], "samples/s")
    assert read["rows"][1] == {
        "size": 4, "runs": 1, "throughput": 280.0, "speedup": 2.8, "efficiency": pytest.approx(0.7),
    }  # fmt: skip
    page = (logs / "speedup.html").read_text(encoding="ascii")
    assert "<h1>Efficiency below 80 % at size 4</h1>" in page
    assert "src=" not in page
    assert "<script" not in page
    assert "| 4 | 1 | 280 samples/s | 2.80 | 70 % |" in told(capsys, *both, "-o", "markdown")[1]


def test_logs_that_count_steps_are_compared_by_what_is_said_of_the_batch(
    capsys: pytest.CaptureFixture[str], logs: Path
) -> None:
    for name, rate in (("a", 4.0), ("b", 3.6)):
        rows = [f" 9%|# | {step}/900 [00:30<03:00,  {rate:.2f}it/s]" for step in range(1, 140)]
        (logs / f"{name}.log").write_text("\r".join(rows))
    code, out, _ = told(capsys, "1=a.log", "2=b.log")
    assert (code, "90 %" in out, "7.2 batches/s" in out, "the batch of each GPU is the same in all sizes" in out) == (
        0,
        *[True] * 3,
    )
    code, out, _ = told(capsys, "1=a.log", "2=b.log", "--same-global-batch")
    assert (code, "45 %" in out, "assumed: all sizes have one global batch" in out) == (1, True, True)


def test_better_than_ideal_is_no_good_news(capsys: pytest.CaptureFixture[str], logs: Path) -> None:
    for name, rate in (("a", 4.0), ("b", 7.6)):
        rows = [f" 9%|# | {step}/900 [00:30<03:00,  {rate:.2f}it/s]" for step in range(1, 140)]
        (logs / f"{name}.log").write_text("\r".join(rows))
    code, out, _ = told(capsys, "1=a.log", "2=b.log")
    assert (code, out.splitlines()[0]) == (1, "Not plausible: better than ideal at size 2")
    assert "ncheck speedup --same-global-batch" in out
    code, out, _ = told(capsys, "1=a.log", "2=b.log", "--same-global-batch")
    assert (code, out.splitlines()[0]) == (0, "Efficiency of at least 80 % at every size")


def test_what_one_gpu_does_counts_for_all_that_every_log_names(capsys: pytest.CaptureFixture[str], logs: Path) -> None:
    line = "[1,{rank}]<stdout>:Iter #{n}: 100.0 img/sec per GPU"
    for name, first in (("a", "Number of GPUs: 8"), ("b", "Number of GPUs: 16"), ("c", "")):
        rows = [line.format(rank=rank, n=n) for n in range(10) for rank in range(2)]
        (logs / f"{name}.log").write_text("\n".join([first, *rows]))
    assert "1,600 images/s      2.00       100 %" in told(capsys, "1=a.log", "2=b.log")[1]
    out = told(capsys, "1=a.log", "2=c.log")[1]
    assert "200 images/s      2.00       100 %" in out
    assert "assumed: the logs say what one GPU does, and the sizes are numbers of GPUs\n" in out
    (logs / "d.log").write_text("\n".join(f"[rank{rank}]: 100 samples/s" for _ in range(130) for rank in range(2)))
    out = told(capsys, "1=one.log", "2=d.log")[1]
    assert "after the first 20; 2 ranks print it: that of the first is taken as the whole job's\n" in out


def test_bad_input_is_refused_by_the_file_that_lacks_something(capsys: pytest.CaptureFixture[str], logs: Path) -> None:
    (logs / "empty.log").write_text("")
    (logs / "zeros.bin").write_bytes(bytes(300_000))
    (logs / "packed.log.gz").write_bytes(b"\x1f\x8b\x08")
    (logs / "folder").mkdir()
    (logs / "tokens.log").write_text("\n".join("5 tokens/s" for _ in range(200)))
    wrong = {
        ("1=one.log", "2=gone.log"): "gone.log: No such file or directory",
        ("1=one.log", "2=empty.log"): "empty.log: is empty",
        ("1=one.log", "2=tokens.log"): "one.log has samples/s and tokens.log has tokens/s: they cannot be compared",
        ("1=one.log", "2=zeros.bin"): "zeros.bin: no throughput in a form that is known",
        ("1=one.log", "2=folder"): "folder: Is a directory",
        ("1=one.log", "2=/dev/zero"): "/dev/zero: is a device, not a log",
        ("1=one.log", "2=packed.log.gz"): "is compressed; in bash: ncheck speedup 2=<(zcat packed.log.gz) ...",
        ("1=one.log", "2=one.log"): "one.log is named for size 1 and for size 2: which is it?",
        ("1=one.log",): "speedup: logs of two sizes at least are needed",
        ("one.log", "two.log"): "'one.log' is not SIZE=LOG",
        ("0=one.log", "2=two.log"): "'0=one.log' is not SIZE=LOG",
        ("1=one.log", "2=two.log", "-o", "yaml"): "-o: expected one of text, html, markdown, json, not 'yaml'",
        ("1=one.log", "2=two.log", "--minimum", "2"): "Invalid value for '--minimum'",
        (): "Missing argument 'SIZE=LOG ...'",
    }
    for args, message in wrong.items():
        code, out, err = told(capsys, *args)
        assert (code, out, message in err, err.count("\n")) == (2, "", True, 1), err
