"""Ways in that differ: known_hosts of all kinds, jump hosts, other logins and ports, and refusals of other kinds."""

from __future__ import annotations

import pytest

from . import faults, layers
from .command import Run
from .hosts import Lab
from .promises import examined, others_whole

KNOWN_HOSTS = "root/.ssh/known_hosts"


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_hashed_known_hosts_are_known(lab: Lab, healthy: Run, transport: str) -> None:
    with lab.file_on_head(KNOWN_HOSTS):
        lab.head("ssh-keygen", "-q", "-H", "-f", f"/{KNOWN_HOSTS}")
        (lab.root / (KNOWN_HOSTS + ".old")).unlink()
        assert "node01" not in (lab.root / KNOWN_HOSTS).read_text()
        run = examined(lab, "-p", "10001", "--transport", transport)

    others_whole(run, healthy)


def test_wildcards_and_bad_lines_of_known_hosts_harm_no_other_line(lab: Lab, healthy: Run) -> None:
    keys = [f"node0?,!node09 {lab.host_keys[name].public}" for name in lab.names]
    with lab.file_on_head(KNOWN_HOSTS, "@nonsense\nnode01 ssh-ed25519 !!!\n\x00\xff\n" + "".join(keys)):
        run = examined(lab)

    assert run.verdicts() == healthy.verdicts()


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_a_revoked_host_key_is_refused(lab: Lab, healthy: Run, transport: str) -> None:
    text = (lab.root / KNOWN_HOSTS).read_text()
    with lab.file_on_head(KNOWN_HOSTS, f"@revoked * {lab.host_keys['node02'].public}{text}"):
        run = examined(lab, "--transport", transport)

    assert run.failed() == {"NC001": {"node02"}, "NC119": {"node02"}}, run.told("node02")
    others_whole(run, healthy, "node02")


def test_a_node_behind_a_jump_host_is_reached_through_it(lab: Lab, healthy: Run) -> None:
    faults.firewall(lab.nodes[3], "ip saddr 10.77.0.254 tcp dport { 22, 10001 } drop")
    with lab.file_on_head("root/.ssh/config", "Host node04\n  ProxyJump node01\n"):
        run = examined(lab)

    others_whole(run, healthy)
    assert [n["transport"] for n in run.report["nodes"]] == ["paramiko", "paramiko", "paramiko", "openssh"]


def test_ssh_config_by_option_names_host_port_user_and_key(lab: Lab) -> None:
    key = (lab.root / "home/ada/.ssh/id_ed25519").read_text()
    config = f"Host a\n  HostName {lab.addresses['node01']}\n  Port 10001\n  User ada\n  IdentityFile /root/adas-key\n"
    with lab.file_on_head("root/config", config), lab.file_on_head("root/adas-key", key, 0o600):
        run = examined(lab, "-F", "config", "--mesh", "none", nodes=("a",))

    assert run.exit_code == 0, run.told("a")
    (node,) = run.report["nodes"]
    assert (node["name"], node["host_name"], node["user"], node["port"]) == ("a", "node01", "ada", 10001)


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_too_many_keys_offered_is_a_cause_of_its_own(lab: Lab, healthy: Run, transport: str) -> None:
    node = lab.nodes[1]
    node.sh("sed -i '1i MaxAuthTries 2' /etc/ssh/sshd_config")
    faults.restart_sshd(node)
    lines = "".join(f"IdentityFile ~/.ssh/other{number}\n" for number in range(4)) + "IdentityFile ~/.ssh/id_ed25519\n"
    others = [lab.file_on_head(f"root/.ssh/other{number}", layers.new_key().private, 0o600) for number in range(4)]
    with others[0], others[1], others[2], others[3], lab.file_on_head("root/.ssh/config", lines):
        run = examined(lab, "--transport", transport)

    assert run.failed() == {"NC001": {node.name}, "NC121": {node.name}}, run.told(node.name)
    others_whole(run, healthy, node.name)


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_a_login_that_wants_a_person_is_a_cause_of_its_own(lab: Lab, healthy: Run, transport: str) -> None:
    node = lab.nodes[1]
    node.sh("sed -i '1i AuthenticationMethods publickey,password\\nPasswordAuthentication yes' /etc/ssh/sshd_config")
    faults.restart_sshd(node)

    run = examined(lab, "--transport", transport)

    assert run.failed() == {"NC001": {node.name}, "NC122": {node.name}}, run.told(node.name)
    others_whole(run, healthy, node.name)


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_a_node_without_a_route_is_a_cause_of_its_own(lab: Lab, healthy: Run, transport: str) -> None:
    lab.head("ip", "route", "add", "unreachable", lab.addresses["node02"])
    try:
        run = examined(lab, "--transport", transport)
    finally:
        lab.head("ip", "route", "delete", "unreachable", lab.addresses["node02"])

    assert run.failed() == {"NC001": {"node02"}, "NC113": {"node02"}}, run.told("node02")
    others_whole(run, healthy, "node02")
