"""How large the bundle of a job of 512 ranks is, and whether the diagnosis of a job is the same under other names.

64 recorded nodes (four, repeated), a saved job whose 512 ranks are on as many nodes (each with more answers than a node
of eight ranks has a rank), and 512 logs: their lines repeat, or are as random as a log can be. Then each saved job of
the tests is diagnosed from its anonymous bundle. Ends with an error beyond 20 MB, or where a diagnosis differs.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from random import Random

from fanout import ROOT

MOST = 20e6  # bytes
NODES, RANKS, LINES = 64, 512, 3_000
TIMED = re.compile(r'"(?:time|command|seconds)": ?(?:"[^"]*"|[\d.]+)')


def main() -> int:
    """Print the sizes and what differs; return the exit code."""
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_inputs(folder)
        for logs in ("alike", "random"):
            for words in ((), ("--anonymous",)):
                began = time.process_time()
                path = folder / f"{logs}{len(words)}.zip"
                answer(
                    "bundle", folder / "run", "--job", folder / "job.zip", "--logs", folder / logs, *words, "-o", path
                )
                size = path.stat().st_size
                failed |= size > MOST
                seconds = time.process_time() - began
                print(
                    f"{RANKS} ranks, logs {logs:<6} {' '.join(words):<11}",
                    f"{size / 1e6:5.1f} MB, {seconds:.0f} s of a CPU",
                )
        failed |= not all_diagnosed(folder)
    return int(failed)


def answer(*words: object) -> tuple[int, str]:
    """Return the exit code of ncheck and what it printed."""
    from ncheck.cli.main import main as ncheck

    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = ncheck([str(word) for word in words])
    return code, out.getvalue()


def make_inputs(folder: Path) -> None:
    """Write the recording, the job and the logs."""
    from ncheck.fleet.archive import load_archive, save_archive
    from ncheck.fleet.recording import load, save

    run = load(ROOT / "fixtures" / "healthy-4x8-h100")
    save(folder / "run", [replace(run[at % len(run)], node=f"gpu{at + 1:02}") for at in range(NODES)])
    job = load_archive(str(ROOT / "tests" / "recorded" / "triage" / "docker0.zip"))[0]
    ranks = [replace(job[at % len(job)], node=f"rank{at:03}") for at in range(RANKS)]
    save_archive(str(folder / "job.zip"), ranks, None)
    random = Random(1)  # noqa: S311  the same logs each time
    for logs in ("alike", "random"):
        (folder / logs).mkdir()
        for rank in range(RANKS):
            lines = (
                f"10:{at // 60 % 60:02}:{at % 60:02} gpu{rank // 8 + 1:02} step {at} loss {random.random():.6f} "
                + (f"{random.getrandbits(400):x}" if logs == "random" else "throughput 1234 tokens/s")
                for at in range(LINES)
            )
            (folder / logs / f"rank{rank}.log").write_text("\n".join(lines) + "\n")


def all_diagnosed(folder: Path) -> bool:
    """Return whether each saved job is diagnosed alike under other names."""
    from ncheck.fleet.anonymous import restored

    saved = sorted((ROOT / "tests" / "recorded").glob("triage*/*.zip"))
    differ = []
    for at, path in enumerate(saved):
        packed = folder / f"job{at}.zip"
        answer("bundle", "--job", path, "--anonymous", "-o", packed)
        names = packed.with_name(f"job{at}.names.json").read_text()
        (code, plain), (other, hidden) = (answer("triage", one, "-o", "json") for one in (path, packed))
        texts = [TIMED.sub("", text).replace(str(where), "") for text, where in
                 ((plain, path), (restored(hidden, names), packed))]  # fmt: skip
        if code != other or texts[0] != texts[1]:
            differ.append(path.name)
    print(f"{len(saved) - len(differ)} of {len(saved)} saved jobs have the same diagnosis under other names", *differ)
    return not differ


if __name__ == "__main__":
    sys.exit(main())
