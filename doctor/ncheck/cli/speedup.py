"""speedup: how well training scales, from the logs of runs of several sizes."""

from __future__ import annotations

import io
import os
import shlex
import stat
from collections.abc import Iterator

import click

from ncheck.cli.examine import print_in
from ncheck.cli.options import files
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS, NcheckError


@click.command(short_help="Compare the throughput of runs of several sizes.")
@click.argument("logs", nargs=-1, required=True, metavar="SIZE=LOG ...", shell_complete=files)
@click.option(
    "--pattern", default="", metavar="REGEX",
    help="How a throughput looks: its first group is the number; in a group called ms or s, the time of a step.",
)  # fmt: skip
@click.option("--drop", default=None, type=click.IntRange(0), metavar="N", help="Steps to leave out at first.  [20]")
@click.option("--steps", default=None, type=click.IntRange(5), metavar="N", help="Steps to take the mean of.  [100]")
@click.option(
    "--minimum", default=None, type=click.FloatRange(0, 1, min_open=True), metavar="SHARE",
    help="The efficiency that is enough.  [0.8]",
)  # fmt: skip
@click.option("--same-global-batch", is_flag=True, help="All sizes had one global batch (for logs that count steps).")
@click.option(
    "-o",
    "outputs",
    multiple=True,
    metavar="FORMAT[=FILE]",
    help="text, html, markdown or json. Can be repeated.  [text]",
)
def speedup(  # noqa: PLR0913, PLR0917  the options
    logs: tuple[str, ...], pattern: str, drop: int | None, steps: int | None, minimum: float | None,
    same_global_batch: bool, outputs: tuple[str, ...],  # noqa: FBT001
) -> int:  # fmt: skip
    """Read the throughput from the logs of one job at several sizes (GPUs or nodes), and say how well it scales.

    \b
    ncheck speedup 1=one.log 2=two.log 4=four.log
    ncheck speedup 8=a.log 8=b.log 16=c.log -o html=speedup.html

    The first 20 steps are left out, the mean of the next 100 is taken, and the median of the runs of one size. Known
    are the lines of Megatron-LM, DeepSpeed, Horovod, tf_cnn_benchmarks, PaddlePaddle, OneFlow, fairseq, torchtitan,
    NeMo, Composer, Hugging Face, Lightning, torchvision, Keras, MMEngine, Detectron2, tqdm, and any samples/s,
    images/sec or tokens/s. What is assumed of a log is said below the table.

    Exit code: 0 every size has an efficiency of 80 %, 1 some have less, or more than is plausible, 2 a log says too
    little.
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.speedup.scaling import MINIMUM, JobLog, scaling_of
    from ncheck.speedup.show import FORMS
    from ncheck.speedup.throughput import DROP, STEPS, throughput

    runs = []
    for word in logs:
        size, name = _named(word)
        try:
            found = throughput(name, _lines(size, name), pattern, DROP if drop is None else drop, steps or STEPS)
        except OSError as error:
            raise NcheckError(f"{name}: {error.strerror}") from None
        runs.append(JobLog(size, name, found))
    scaling = scaling_of(runs, MINIMUM if minimum is None else minimum, same_batch=same_global_batch)
    print_in(FORMS, outputs, scaling)
    return EXIT_FINDINGS if scaling.poor or scaling.implausible else EXIT_CLEAN


def _lines(size: int, name: str) -> Iterator[str]:
    """Yield the lines of a log, in parts if one is long. Raises NcheckError for what is none."""
    from ncheck.files import reading
    from ncheck.speedup.throughput import LONGEST_LINE

    with reading(name) as log:
        if stat.S_ISCHR(os.fstat(log.fileno()).st_mode):
            raise NcheckError(f"{name}: is a device, not a log")
        start = log.peek(2)[:2]
        if not start:
            raise NcheckError(f"{name}: is empty")
        if start == b"\x1f\x8b":
            packed = shlex.quote(name)
            raise NcheckError(f"{name}: is compressed; in bash: ncheck speedup {size}=<(zcat {packed}) ...")
        # The states of a progress bar end in a carriage return, and a binary file may have no end of a line.
        text = io.TextIOWrapper(log, encoding="utf-8", errors="replace", newline="")
        while line := text.readline(LONGEST_LINE):
            yield line


_LARGEST = 10_000_000


def _named(word: str) -> tuple[int, str]:
    """Part "2=two.log"."""
    size, equals, name = word.partition("=")
    if not (equals and name and size.isascii() and size.isdecimal() and 0 < int(size[:9]) < _LARGEST and len(size) < 9):  # noqa: PLR2004
        raise click.UsageError(f"{word!r} is not SIZE=LOG, as in: ncheck speedup 1=one.log 2=two.log")
    return int(size), name
