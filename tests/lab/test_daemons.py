"""The shell that mpirun's ssh gets finds no orted: the cause is named, and --prefix is the way out. Debian's Open MPI.

Every test shows both: the line as it was printed, which runs, and the trap that it goes round.
"""

from __future__ import annotations

import re

from . import command, faults
from .hosts import Lab
from .launching import Launched, launched
from .layers import ROOT
from .node import Node
from .promises import HANGS, PATIENT, examined, plan_from, planned

PROGRAM = ("--for", "mpirun", "--", "hostname")
OF_THE_PLAN = ("--select", "NC11,NC2,NC3")  # what a plan for hosts without InfiniBand is made of
EXPORT = "export PATH=/opt/openmpi/bin:$PATH\n"
# Ubuntu's and Debian's own, as every new home has it.
RETURNS = """# ~/.bashrc: executed by bash(1) for non-login shells.
case $- in
    *i*) ;;
      *) return;;
esac
"""


def move_open_mpi(node: Node, bashrc: str) -> None:
    """Let Open MPI lie in /opt/openmpi, as one that somebody built does, and only this start-up file lead to it."""
    own = "/opt/openmpi/bin"
    node.sh(
        f"mkdir -p {own} && cd /usr/bin && mv orted orterun {own}/ && cp ompi_info {own}/ && ln -s orterun {own}/mpirun"
        " && rm -f mpirun mpirun.openmpi mpiexec mpiexec.openmpi ompi_info"
    )
    node.write("/root/.bashrc", bashrc)


def ran_on(run: Launched) -> list[str]:
    """Return the hosts that said their names; mpirun's own warnings stand beside them."""
    return sorted(re.findall(r"^node0\d$", run.said, re.MULTILINE))


def test_a_bashrc_that_returns_before_its_export_is_named_with_the_line_that_mends_it(lab: Lab) -> None:
    names = lab.names[:2]
    for node in lab.nodes[:2]:
        move_open_mpi(node, (RETURNS if node.name == "node02" else "") + EXPORT)

    run = examined(lab, "--record", "recording/returns", nodes=names)
    found = run.finding("NC209")
    assert run.failed() == {"NC209": {"node02"}}, run.not_passed("node02")
    assert found["message"] == (
        "mpirun of node01 (Open MPI 4.1.4) cannot start orted over ssh: ~/.bashrc line 4 (*) return;;) returns "
        "before the exports in non-interactive shells; an interactive shell finds /opt/openmpi/bin/orted"
    )

    line = plan_from(lab, "recording/returns", *PROGRAM).stdout
    assert "mpirun --allow-run-as-root --prefix /opt/openmpi -np 4 " in line
    done = launched(lab, line)
    assert (done.exit_code, ran_on(done)) == (0, sorted(2 * names)), done

    trapped = launched(lab, line.replace("--prefix /opt/openmpi ", ""))
    assert "orted: command not found" in trapped.said, trapped
    assert trapped.exit_code not in (0, None)

    assert (found["where"], found["kind"]) == ("", "fix")
    assert lab.nodes[1].sh(f"HOME=/root; {found['fix']}").returncode == 0
    assert examined(lab, "--select", "NC209", nodes=names).failed() == {}


def test_what_only_a_login_shell_loads_on_every_node_still_gets_a_line_that_runs(lab: Lab) -> None:
    names = lab.names[:2]
    for node in lab.nodes[:2]:
        move_open_mpi(node, "")
        node.write("/etc/profile.d/openmpi.sh", EXPORT)

    run = examined(lab, *OF_THE_PLAN, "--record", "recording/login-shell", nodes=names)
    assert run.failed() == {"NC209": set(names)}
    (message,) = {f["message"].partition(": ")[2] for f in run.report["findings"] if f["code"] == "NC209"}
    assert message == "only a login shell finds /opt/openmpi/bin/orted (a module or a profile sets its PATH)"

    done = launched(lab, plan_from(lab, "recording/login-shell", *PROGRAM).stdout)
    assert (done.exit_code, ran_on(done)) == (0, sorted(2 * names)), done


def test_without_open_mpi_or_a_library_of_it_on_one_node_there_is_no_line_and_the_node_is_named(lab: Lab) -> None:
    faults.hide_program(lab.nodes[1], "/usr/bin/orted")
    lab.nodes[2].sh("rm /usr/lib/*/libopen-rte.so.40*")

    run = examined(lab, *OF_THE_PLAN, "--record", "recording/no-daemon")
    found = {one["nodes"][0]: one for one in run.report["findings"] if one["code"] == "NC209"}
    assert run.failed()["NC209"] == {"node02", "node03"}, (run.not_passed("node02"), run.not_passed("node03"))
    assert found["node02"]["fix"] == "sudo apt-get install openmpi-bin"
    words = "/usr/bin/orted exists but does not run: /usr/bin/orted: error while loading shared libraries: libopen-rte"
    assert words in found["node03"]["message"]

    refused = plan_from(lab, "recording/no-daemon", *PROGRAM)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert re.search(r"NC209 mpi-daemon-missing on node(02|\[02-03\])", refused.stderr), refused.stderr

    without = plan_from(lab, "recording/no-daemon", "--drop-bad", *PROGRAM)
    assert without.exit_code == 0, without
    (dropped,) = (line for line in without.stderr.splitlines() if line.startswith("ncheck: 2 of 4 nodes, without "))
    assert all(word in dropped for word in ("node02", "node03", "NC209 mpi-daemon-missing: ")), dropped
    assert " -np 4 -H node01:2,node04:2 " in without.stdout


def test_launch_checks_then_runs_the_printed_line_and_ends_as_it_does(lab: Lab) -> None:
    line = planned(lab, "--for", "mpirun", "--", "sh", "-c", "hostname; exit 3", nodes=lab.names[:2]).stdout

    argv = ("launch", "nodes.txt", *PATIENT, "--", "sh", "-c", "hostname; exit 3")
    launch = command.begin(lab, *argv, user=ROOT).wait(HANGS)

    assert launch.exit_code == 3, launch
    assert f"ncheck: starting: {line}" in launch.stderr
    assert set(re.findall(r"^node0\d$", launch.stdout, re.MULTILINE)) <= set(lab.names[:2])
    assert launch.stdout


def test_launch_refuses_an_mpirun_of_another_release_than_the_nodes(lab: Lab) -> None:
    command.listing(lab, lab.names[:2])
    with lab.file_on_head("usr/local/bin/mpirun", "#!/bin/sh\necho 'mpirun (Open MPI) 5.0.11'\n", 0o755):
        launch = command.begin(lab, "launch", "nodes.txt", *PATIENT, "--", "hostname").wait(HANGS)

    assert (launch.exit_code, launch.stdout) == (1, ""), launch
    told = (
        "ncheck: mpirun here is Open MPI 5.0.11, and the nodes have Open MPI 4.1.4; on the first node: ssh -t node01 "
    )
    assert told in launch.stderr


def test_launch_goes_on_without_the_bad_node_and_writes_the_good_ones(lab: Lab) -> None:
    faults.stop_sshd(lab.nodes[0])
    command.listing(lab, ["node01 slots=1  # the head", "node[02-03] slots=1"])

    argv = ("launch", "nodes.txt", *PATIENT, "--drop-bad", "--good-nodes", "good.txt", "--", "hostname")
    launch = command.begin(lab, *argv).wait(HANGS)

    assert (launch.exit_code, sorted(launch.stdout.splitlines())) == (0, ["node02", "node03"]), launch
    assert "ncheck: 2 of 3 nodes, without node01: not reached: refused: " in launch.stderr
    assert (lab.root / "root" / "good.txt").read_text() == "node[02-03] slots=1\n"
    (lab.root / "root" / "good.txt").unlink()
