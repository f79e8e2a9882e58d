"""What limits a launched job on one node, or is missing there: named, and the others untouched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from . import faults
from .command import Run
from .fixes import type_fixes, typed_in
from .hosts import Lab
from .layers import write
from .node import Node
from .ward import BETWEEN_NODES, Row, Ward, bashrc, hold, hold_whole, on, selected, sh, ward


@contextmanager
def few_processes(_lab: Lab, node: Node) -> Iterator[None]:
    """Let a login of the node have only 300 processes and threads, by a control group of version 1."""
    made = Path(f"/sys/fs/cgroup/pids/ncheck-lab-{node.pid}")
    made.mkdir()
    seen = "/sys/fs/cgroup"
    node.sh(f"mount -t tmpfs cgroup {seen}; mkdir {seen}/pids; mount -t cgroup -o pids pids {seen}/pids")
    try:
        (made / "pids.max").write_text("300")
        faults.start_up_file(node, f"echo $$ > {made}/cgroup.procs")
        yield
    finally:
        while (made / "cgroup.procs").read_text():  # the last to end takes a moment
            time.sleep(0.05)
        made.rmdir()


def dead_name_server(_lab: Lab, node: Node) -> None:
    """Ask a name server first, from which nothing comes: no refusal either."""
    node.write("/etc/resolv.conf", "nameserver 10.77.0.254\noptions attempts:1\n")
    node.sh("sed -i 's/^hosts:.*/hosts: dns files/' /etc/nsswitch.conf")
    faults.firewall(node, "ip saddr 10.77.0.254 icmp type destination-unreachable drop")


ROWS = (
    Row("64 open files", "NC605", bashrc("ulimit -S -n 64")),
    Row("TMPDIR where nothing can be written", "NC607", bashrc("export TMPDIR=/proc/sys/tmp"), beside="64 open files"),
    Row("another NCCL", "NC201", on(faults.nccl, "2.21.5"), beside="64 open files"),
    Row("an hour of CPU time", "NC605", bashrc("ulimit -S -t 3600")),
    Row("TMPDIR that is not there", "NC608", bashrc("export TMPDIR=/nowhere/tmp"), beside="an hour of CPU time"),
    Row("no NCCL", "NC201", on(faults.remove_nccl), beside="an hour of CPU time"),
    Row("4 GB of address space", "NC605", bashrc("ulimit -S -v 4000000")),
    Row(
        "btl_tcp_if_exclude without lo", "NC212",
        bashrc("export OMPI_MCA_btl_tcp_if_exclude=docker0"), beside="4 GB of address space",
    ),
    Row("128 KiB of stack", "NC605", bashrc("ulimit -s 128"), "the stack of each thread (stack) limited to 128 KiB"),
    Row("TMPDIR that is a link to nowhere", "NC608", sh("ln -s /scratch/tmp /var/scratch; "
        "echo export TMPDIR=/var/scratch >> /root/.bashrc"),
        "/var/scratch (TMPDIR) is a link to /scratch/tmp, which does not exist", beside="128 KiB of stack"),
    Row("btl_tcp_if_include=lo", "NC213", bashrc("export OMPI_MCA_btl_tcp_if_include=lo"), beside="128 KiB of stack"),
    Row("2000 open files", "NC615", bashrc("ulimit -S -n 2000"), "open files (nofile) limited to 2000 on "),
    Row("an unlimited stack", "NC616", bashrc("ulimit -S -s unlimited"), beside="2000 open files"),
    Row("an NCCL_ALGO that was left behind", "NC333 NC335", bashrc("export NCCL_ALGO=Tree"), beside="2000 open files"),
    Row("a UCX_TLS of one node", "NC219", bashrc("export UCX_TLS=tcp"), beside="2000 open files"),
    Row(
        "300 processes in a control group", "NC619", few_processes,
        "a control group allows 300 processes and threads; a job here needs 1024",
    ),
    Row(
        "an rsh agent that is gone", "NC228 NC219", bashrc("export OMPI_MCA_plm_rsh_agent=/opt/gone/rsh"),
        beside="300 processes in a control group",
    ),
    Row(
        "an OPAL_PREFIX that is gone", "NC238 NC002", bashrc("export OPAL_PREFIX=/opt/openmpi-5"),
        "OPAL_PREFIX=/opt/openmpi-5: there is no such folder", unknown="NC203 NC212 NC213 NC237",
    ),
    Row(
        "a GPU hidden by a start-up file", "NC211", bashrc("export CUDA_VISIBLE_DEVICES=0"),
        beside="an OPAL_PREFIX that is gone",
    ),
    Row("a name server that does not answer", "NC340", dead_name_server, "the lookup of ", unknown="NC360"),
    Row(
        "temporary files without execution", "NC632", sh("mount -o remount,noexec /tmp"), " is mounted noexec",
        beside="a name server that does not answer",
    ),
    Row(
        "a shutdown in two days", "NC659", on(faults.schedule_shutdown, 48 * 3600), " UTC, in 48 h",
        beside="a name server that does not answer",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def limited() -> Iterator[Ward]:
    with ward(ROWS) as made:
        yield made


@pytest.fixture(scope="module")
def run(limited: Ward, healthy: Run) -> Run:
    return limited.examined(*selected(healthy, *BETWEEN_NODES))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_what_limits_a_launched_job_on_one_node_is_named(limited: Ward, run: Run, row: Row) -> None:
    assert run.unknown(hold(limited, run, row)) == limited.unknown_beside(row)


def test_the_others_are_whole(limited: Ward, run: Run, healthy: Run) -> None:
    hold_whole(limited, run, healthy)
    assert run.failed() == limited.failing


def test_each_fix_that_is_typed_makes_its_check_green_and_its_problem_gone(limited: Ward, run: Run) -> None:
    codes = typed_in("test_limits.py")
    write(limited.lab.root / "root" / "first.json", run.stdout)
    type_fixes(limited.lab, run, codes)

    again = limited.examined("--failed-of", "first.json", "--select", ",".join(sorted(codes)))

    mended = {(code, name) for code in codes for name in run.failed()[code]}
    unknown = {pair for pair, outcome in run.verdicts().items() if outcome == "unknown" and pair[0] in codes}
    problems = again.report["again"]["problems"]
    assert {(one["code"], name) for one in problems for name in one["gone"]} == mended | unknown
    assert [one for one in problems if one["remains"] or one["unknown"] or one["unlisted"]] == []
    assert {again.verdicts()[one] for one in mended} == {"passed"}
    assert again.failed() == {}


def test_what_may_do_no_harm_is_no_error(run: Run) -> None:
    milder = {one["code"] for one in run.report["findings"] if one["severity"] != "error"}
    assert milder == {
        "NC002", "NC211", "NC219", "NC333", "NC335", "NC340", "NC608", "NC615", "NC616", "NC619", "NC632",
        "NC659",
    }  # fmt: skip
