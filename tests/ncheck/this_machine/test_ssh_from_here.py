"""The ssh program of this machine: which nodes it is tried on, with which words, and whom the result stands for."""

from __future__ import annotations

import time
from pathlib import Path
from socket import gethostname

import pytest
from ncheck.facts.learning import facts_of, learn
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.facts.ssh_peers import PeerSsh, SshFromHereFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.fact import Absent
from ncheck.model.node import Node
from ncheck.settings import RunContext, Settings
from ncheck.this_machine.local_host import LocalHost
from ncheck.this_machine.ssh_from_here import SshFromHere

HERE = LocalHost({}, machine=("boot", "net:[1]"))
WORKS = SshFromHereFacts(PeerSsh("n1", None))


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an ssh of our own first on the PATH, which notes its words."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    return tmp_path / "tried"


def ssh(tried: Path, does: str = "", config: str = "") -> None:
    path = tried.parent / "bin/ssh"
    path.write_text(f"""#!/bin/sh
[ "$1" != -G ] || exit 0
while [ "$1" != ConnectTimeout=15 ]; do shift; done; shift
echo "$@" >>{tried}
while [ "$1" != -- ]; do shift; done
{does}
eval "$3"
""")
    path.chmod(0o755)
    (tried.parent / "config").write_text(config)


def node(transport: str = "paramiko", machine: int = 2) -> Facts:
    return {
        LoginFacts: LoginFacts(Login(reached=True, transport=transport)),
        IdentityFacts: IdentityFacts("n", "boot", f"net:[{machine}]", 0),
    }


def found(
    nodes: dict[str, Facts], settings: Settings | None = None, here: LocalHost | None = HERE, seconds: float = 60.0
) -> dict[str, object]:
    cluster = Cluster(tuple(map(Node, nodes)), nodes)
    with SshFromHere(cluster.nodes, settings or Settings(), here) as ssh:
        evidence = tuple(ssh.evidence(cluster, seconds))
    return {one.node: facts_of(one, [SshFromHereFacts])[SshFromHereFacts] for one in evidence}


def test_one_login_stands_for_all_nodes_with_one_configuration(tried: Path) -> None:
    ssh(tried, config="Host n2\n  Port 22\nHost n3\n  RemoteCommand tmux\n")
    third = SshFromHereFacts(PeerSsh("n3", None))
    settings = Settings(ssh_config=str(tried.parent / "config"))
    assert found({"n1": node(), "n2": node(), "n3": node()}, settings) == {"n1": WORKS, "n2": WORKS, "n3": third}
    assert sorted(line.split()[-3] for line in tried.read_text().splitlines()) == ["n1", "n3"]


def test_the_login_begins_beside_the_first_phase_and_ends_with_the_run(tried: Path) -> None:
    ssh(tried, "echo $$ >$0.pid; exec sleep 60")
    written = tried.parent / "bin/ssh.pid"
    with SshFromHere((Node("n1"),), Settings(), HERE):
        while not (written.exists() and written.read_text().endswith("\n")):
            time.sleep(0.01)
    assert not Path("/proc", written.read_text().strip()).exists()


def test_where_the_node_that_was_tried_first_is_not_reached_another_one_is_tried(tried: Path) -> None:
    ssh(tried, '[ "$2" != n1 ] || exit 255')
    lost: Facts = {LoginFacts: LoginFacts(Login(reached=False, cause=Cause.REFUSED))}
    results = found({"n1": lost, "n2": node()})
    assert results == {"n2": SshFromHereFacts(PeerSsh("n2", None))}


def test_a_node_that_has_the_name_of_this_machine_is_not_tried_first(tried: Path) -> None:
    ssh(tried)
    here = LocalHost({"10.0.0.1": "eth0"}, machine=("boot", "net:[1]"))
    found({"10.0.0.1": node(), gethostname(): node(), "n2": node()}, here=here)
    assert [line.split()[-3] for line in tried.read_text().splitlines()] == ["n2"]


def test_the_options_of_the_run_are_those_of_the_launch_line(tried: Path) -> None:
    ssh(tried)
    settings = Settings(port=10001, user="ada", identity="my-key", ssh_config="/dev/null")
    assert found({"n1": node()}, settings) == {"n1": WORKS}
    assert tried.read_text().startswith("-F /dev/null -i my-key -l ada -p 10001 -- n1 echo ")


def test_what_this_side_refuses_is_tried_once(tried: Path) -> None:
    ssh(tried, "echo 'Cannot execute command-line and remote command.' >&2; exit 255")
    refused = SshFromHereFacts(PeerSsh("n1", Cause.TRANSPORT, "Cannot execute command-line and remote command."))
    assert found({"n1": node(), "n2": node()}) == {"n1": refused, "n2": refused}
    assert len(tried.read_text().splitlines()) == 1


def test_a_node_that_fails_in_its_own_way_does_not_speak_for_the_others(tried: Path) -> None:
    ssh(tried, '[ "$2" != n1 ] || exit 0')
    results = found({"n1": node(), "n2": node(), "n3": node()})
    assert (results["n2"], results["n3"]) == (SshFromHereFacts(PeerSsh("n2", None)),) * 2
    assert isinstance(results["n1"], SshFromHereFacts)
    assert results["n1"].tried
    assert results["n1"].tried.cause is Cause.NO_SHELL


def test_the_machine_itself_and_nodes_without_ssh_are_not_judged(tried: Path) -> None:
    ssh(tried, "exit 255")  # the login begins before anybody knows that it is this machine
    results = found({"n1": node(machine=1), "n2": node(transport="rsh")})
    assert results == {"n1": SshFromHereFacts(None), "n2": Absent("no SSH is used")}


def test_inside_a_job_no_login_is_tried(tried: Path) -> None:
    ssh(tried)
    settings = Settings(run=RunContext(ranks={"n1": RanksFacts(2, (0,)), "n2": RanksFacts(2, (1,))}))
    results = found({"n1": node(transport="ranks", machine=1), "n2": node(transport="ranks")}, settings)
    assert results == dict.fromkeys(("n1", "n2"), Absent("no SSH is used"))
    assert not tried.exists()


def test_what_is_known_of_the_login_stays_known(tried: Path) -> None:
    ssh(tried)
    noisy = {**node(), LoginFacts: LoginFacts(Login(reached=True, transport="paramiko"), noise="welcome")}
    before = Cluster((Node("n1"),), {"n1": noisy})
    with SshFromHere(before.nodes, Settings(), HERE) as tries:
        after = learn(before, tries.evidence(before, 60.0), (LoginFacts, IdentityFacts, SshFromHereFacts))
    assert {fact: after.known["n1"][fact] for fact in noisy} == noisy
    assert after.facts(SshFromHereFacts) == {"n1": WORKS}


def test_where_the_line_is_typed_elsewhere_nothing_is_tried(tried: Path) -> None:
    ssh(tried)
    assert found({"n1": node()}, here=None) == {"n1": Absent("the launch line is typed on another machine than this")}
    assert not tried.exists()


def test_in_a_folder_that_was_removed_the_login_is_tried_all_the_same(
    tried: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh(tried)
    gone = tried.parent / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert found({"n1": node()}) == {"n1": WORKS}


def test_a_machine_without_an_ssh_program_says_so(tried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tried.parent / "bin"))
    assert found({"n1": node()}) == {"n1": Absent("no ssh program on this machine")}


def test_a_run_that_has_no_time_left_blames_nobody(tried: Path) -> None:
    ssh(tried)
    assert found({"n1": node()}, Settings(deadline=0.5), seconds=0.5) == {
        "n1": SshFromHereFacts(PeerSsh("n1", Cause.DEADLINE, "no time left to try it"))
    }


def test_very_many_configurations_are_not_all_tried(tried: Path) -> None:
    ssh(tried, config="".join(f"Host n{number}\n  User u{number}\n" for number in range(20)))
    settings = Settings(ssh_config=str(tried.parent / "config"))
    results = found({f"n{number}": node() for number in range(20)}, settings)
    assert sum(isinstance(one, SshFromHereFacts) for one in results.values()) == 16
    assert results["n19"] == Absent("the nodes have more than 16 ssh configurations here")
