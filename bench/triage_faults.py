"""How many faults of running jobs `ncheck triage` names, with each kind of evidence alone and with all of them.

--make NAME... (or "all") makes faults on lab hosts, as root: real jobs of torch and Open MPI that hang. What triage
saved of each is kept in tests/recorded/triage, without the paths of this machine. Without it, those are judged again.
--nodes 64 looks at a job on so many hosts of which one is dead. With --write the figures go to docs/measured.md.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from fanout import ROOT, write

if TYPE_CHECKING:
    from tests.lab.hosts import Lab
    from tests.lab.job_faults import Truth

KEPT = ROOT / "tests/recorded/triage"
MARK = ("<!-- triage of jobs: written by bench/triage_faults.py --write -->", "<!-- end of triage of jobs -->")
WIDE_MARK = ("<!-- wide triage: written by bench/triage_faults.py --write -->", "<!-- end of wide triage -->")
DEADLINE = 30.0  # seconds
SOURCES = ("processes", "stacks", "sockets", "counters", "ras", "flight-recorder", "logs", "kernel", "gpus")


def make(names: Iterable[str]) -> int:
    """Make these faults, keep what triage saved of them, and return how many it did not name."""
    from tests.lab import hosts, job_faults
    from tests.lab.conftest import this_interpreter
    from tests.lab.running_jobs import prepare, triaged

    KEPT.mkdir(exist_ok=True)
    missed = 0
    with hosts.lab(3) as lab:
        for name in names:
            prepare(lab, this_interpreter())
            fault = job_faults.FAULTS[name]
            try:
                with fault.job(lab):
                    run = triaged(lab, "--save", "/root/saved.zip")
                saved = lab.root / "root/saved.zip"
                (KEPT / f"{name}.zip").write_bytes(without_paths(saved.read_bytes()))
                wrong = fault.truth.wrong(run.report["diagnoses"])
                seconds = f"{run.seconds:.1f} s"
            except (AssertionError, OSError, RuntimeError) as error:
                wrong, seconds = f"not made: {str(error)[:1000]}", ""
            missed += bool(wrong)
            print(f"{'MISSED' if wrong else 'named '} {name} {seconds} {wrong}", flush=True)
    return missed


def without_paths(archive: bytes) -> bytes:
    """Return an archive with other folders in the place of this machine's, and without the time of its making."""
    base = Path(sys.base_prefix).resolve()
    folders = dict.fromkeys(map(str, _sites()), "/opt/venv/lib/python3/site-packages")
    folders |= {sys.prefix: "/opt/venv", str(ROOT): "/opt/ncheck", str(base): "/opt/python"}
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        for member in old.infolist():
            text = old.read(member).decode()
            for folder in sorted(folders, key=len, reverse=True):
                text = text.replace(folder, folders[folder])
            new.writestr(zipfile.ZipInfo(member.filename), text, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _sites() -> Iterator[Path]:
    return (Path(folder) for folder in sys.path if folder.endswith("site-packages"))


def judged(archive: Path, truth: Truth, sources: Iterable[str] | None = None) -> str:
    """Return what is wrong in what triage says of a saved job; nothing if it is right."""
    from ncheck.fleet.archive import load_archive
    from ncheck.triage.join import examine_job
    from ncheck.triage.live import cluster_of

    evidence, target = load_archive(str(archive))
    report = examine_job(cluster_of(evidence), target, None if sources is None else tuple(sources))
    return truth.wrong([asdict(one) for one in report.diagnoses])


def ablation() -> tuple[str, list[str]]:
    """Return the table, and what is not named with all evidence together."""
    from tests.lab.job_faults import FAULTS

    kept = {name: KEPT / f"{name}.zip" for name in FAULTS if (KEPT / f"{name}.zip").exists()}
    sick = [name for name in kept if FAULTS[name].truth.causes]
    well = [name for name in kept if not FAULTS[name].truth.causes]
    rows = ["| evidence | faults named | of healthy jobs accused |", "|---|--:|--:|"]
    missed: list[str] = []
    for title, sources in (*((name, (name,)) for name in SOURCES), ("all together", None)):
        wrong = {name: judged(kept[name], FAULTS[name].truth, sources) for name in kept}
        named = [name for name in sick if not wrong[name]]
        accused = [name for name in well if wrong[name]]
        share = f"{len(named)} of {len(sick)} ({len(named) / max(len(sick), 1):.0%})"
        rows.append(f"| {title} | {share} | {len(accused)} of {len(well)} |")
        missed = [f"{name}: {said}" for name, said in wrong.items() if said]
    return "\n".join(rows) + "\n", missed


def wide(size: int) -> list[tuple[str, float]]:
    """Return how long triage takes over so many hosts with a rank on each, and with one of them dead."""
    from tests.lab import hosts
    from tests.lab.command import begin, listing

    found = []
    with hosts.lab(size) as lab, _sleeping(lab):
        listing(lab, lab.names)
        for title in ("all nodes answer", "one node is dead"):
            if title == "one node is dead":
                lab.nodes[size // 2].sh("ip link set eth0 down")
            run = begin(lab, "triage", "nodes.txt", "-o", "json").wait(300)
            found.append((title, run.seconds))
            print(f"{size} nodes, {title}: {run.seconds:.1f} s, {len(run.report['ranks'])} ranks", flush=True)
    return found


@contextmanager
def _sleeping(lab: Lab) -> Iterator[None]:
    """Run a rank on each node that only waits."""
    for rank, node in enumerate(lab.nodes):
        variables = f"RANK={rank} WORLD_SIZE={len(lab.nodes)} LOCAL_RANK=0 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500"
        node.sh(f"(env {variables} /usr/bin/python3 -c 'import time; time.sleep(1000)' </dev/null >/dev/null 2>&1 &)")
    yield


def main() -> int:
    """Make, judge or measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", nargs="+", metavar="NAME", help='make these faults on lab hosts; "all" makes all')
    parser.add_argument("--nodes", type=int, help="look at a job on so many hosts instead")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.lab.job_faults import FAULTS

    if asked.make:
        return int(make(FAULTS if asked.make == ["all"] else asked.make) > 0)
    if asked.nodes:
        figures = wide(asked.nodes)
        if asked.write:
            write(_wide(asked.nodes, figures), ROOT / "docs/measured.md", WIDE_MARK)
        return int(max(seconds for _, seconds in figures) > DEADLINE)
    table, missed = ablation()
    listed = "All faults are named with all evidence together."
    if missed:
        listed = "\n".join(("Not named with all evidence together:\n", *(f"- {one}" for one in missed)))
    print(table, listed, sep="\n")
    if asked.write:
        section = f"{_HEAD}{table}\n{listed}\n"
        write(section, ROOT / "docs/measured.md", MARK)
    return int(bool(missed))


def _wide(size: int, figures: list[tuple[str, float]]) -> str:
    rows = "".join(f"| {title} | {seconds:.1f} |\n" for title, seconds in figures)
    return (
        f"## Triage of {size} nodes\n\n{size} hosts made of namespaces, one rank on each, the deadline {DEADLINE:.0f}"
        f" s, two cores for all of them.\n\n| nodes | wall, s |\n|---|--:|\n{rows}"
    )


_HEAD = """## Triage of running jobs

Real jobs of three ranks on lab hosts, torch over gloo and Open MPI, with real faults. Each was looked at once by
`ncheck triage --save`; what it saved is judged again with one kind of evidence alone, and with all together. A fault
is named if the first diagnosis has the right cause, the rank and the node. These jobs have no GPU and no NCCL: NCCL's
RAS has nothing to say there.

"""


if __name__ == "__main__":
    sys.exit(main())
