"""What ends a launch on one node blocks the plan: seen to end real launches, and to be named beforehand."""

from __future__ import annotations

import re
import shutil

from tests.skips import cannot

from . import faults
from .command import Run
from .hosts import Lab
from .launching import Launched, Watch, launched
from .layers import ADA, ROOT, User
from .promises import plan

PROGRAM = "/usr/local/bin/allreduce"
SUMMED = "8388608 bytes over"
LINE = "mpirun --allow-run-as-root -np 1 -H {}:1 --mca btl '^openib' --mca oob_tcp_if_include 10.77.0.0/24 {}"


def blocked(lab: Lab, user: User = ROOT, nodes: tuple[str, ...] = ()) -> dict[str, str]:
    """Map each code that blocks the plan for these nodes, or for all, to the nodes that it names."""
    run: Run = plan(lab, "--for", "mpirun", "--", PROGRAM, user=user, nodes=nodes)
    assert (run.exit_code, run.stdout) == (1, ""), run.stderr
    return dict(re.findall(r"(NC\d{3}) [\w-]+ on ([\w\[\],-]+):", run.stderr))


def launched_on(lab: Lab, node: str, user: User = ROOT) -> Launched:
    """Launch one rank there, as the plan's line does; a shell that reads nothing of it hangs mpirun."""
    return launched(lab, LINE.format(node, PROGRAM), Watch(limit=30, enough="fish: "), user=user)


def test_what_a_node_lacks_for_the_launch_is_named_and_really_ends_it(lab: Lab) -> None:
    one, two, three, four = lab.nodes
    one.sh("cp -r /root /etc/root; rm -r /root; sed -i 's#^AuthorizedKeysFile.*#AuthorizedKeysFile "
           "/etc/root/.ssh/authorized_keys#' /etc/ssh/sshd_config")  # fmt: skip
    faults.restart_sshd(one)
    faults.start_up_file(two, "export OMPI_MCA_plm_rsh_agent=/opt/gone/rsh")
    three.sh("sysctl -qw net.ipv4.ip_local_reserved_ports=1024-65535")
    faults.hide_program(four, PROGRAM)

    found = blocked(lab)
    ended = {name: launched_on(lab, name) for name in lab.names}

    named = {"NC611": one.name, "NC228": two.name, "NC355": three.name, "NC227": four.name}
    assert named.items() <= found.items(), found
    assert "NC312" not in found, found
    assert not [name for name, run in ended.items() if SUMMED in run.said], ended


def test_what_the_login_of_an_ordinary_user_meets_is_named_and_really_ends_the_launch(lab: Lab) -> None:
    if not shutil.which("fish"):
        cannot("the lab needs packages: apt-get install fish")
    foreign, strange = lab.nodes[1:3]
    foreign.sh("mkdir -m 755 /tmp/ompi.node02.4242")
    strange.sh("sed -i '/^ada:/s#/bin/bash#/usr/bin/fish#' /etc/passwd")
    strange.sh("su ada -c true")  # what fish writes at its first start is not ncheck's

    here = (lab.root / "etc/passwd").read_text()
    with lab.file_on_head("etc/passwd", re.sub(r"(?m)^(ada:.*):/bin/bash$", r"\1:/bin/dash", here)):
        found = blocked(lab, ADA, lab.names[:3])
        ended = {node.name: launched_on(lab, node.name, ADA) for node in (lab.nodes[0], foreign, strange)}

    assert found == {"NC607": foreign.name, "NC229": strange.name}
    assert [name for name, run in ended.items() if SUMMED in run.said] == [lab.names[0]], ended
    assert "fish: " in ended[strange.name].said


def test_a_second_address_on_the_jobs_interface_is_named_and_really_stops_the_ranks(lab: Lab) -> None:
    names, last = lab.names[:3], lab.nodes[2]
    last.sh("ip address add 10.77.0.250/32 dev eth0")
    hosts = ",".join(f"{name}:1" for name in names)
    line = LINE.format(hosts, f"--mca btl_tcp_if_include 10.77.0.0/24 {PROGRAM}").replace("-np 1", "-np 3")

    found = blocked(lab, nodes=names)
    tried = launched(lab, line.replace(f"{hosts}:1", hosts), Watch(limit=60, enough="dropped inbound", then=2))

    assert found == {"NC237": last.name}
    assert "10.77.0.250" in tried.said, tried
    assert SUMMED not in tried.said, tried
