"""Ways in that differ: known_hosts of all kinds, jump hosts, other logins and ports, and refusals of other kinds."""

from __future__ import annotations

import pytest

from . import faults, layers
from .command import Run
from .hosts import Lab
from .promises import examined, others_whole

KNOWN_HOSTS = "root/.ssh/known_hosts"
OF_LOGINS = ("--select", "NC0,NC11,NC12")


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_hashed_names_wildcards_and_bad_lines_of_known_hosts_are_read_and_a_revoked_key_is_refused(
    lab: Lab, healthy: Run, transport: str
) -> None:
    """The first node is known by its hash and the last by a pattern; the third has no route."""
    with lab.file_on_head(KNOWN_HOSTS):
        lab.head("ssh-keygen", "-q", "-H", "-f", f"/{KNOWN_HOSTS}")
        (lab.root / (KNOWN_HOSTS + ".old")).unlink()
        hashed = (lab.root / KNOWN_HOSTS).read_text().splitlines(keepends=True)
        assert "node01" not in "".join(hashed)
        others = [line for line in hashed if lab.host_keys["node04"].public.split()[1] not in line]
        wild = f"node0[5-9],node0?,!node01 {lab.host_keys['node04'].public}"
        revoked = f"@revoked * {lab.host_keys['node02'].public}"
        bad = "@nonsense\nnode01 ssh-ed25519 !!!\n\x00\xff\n"
        (lab.root / KNOWN_HOSTS).write_text(bad + wild + revoked + "".join(others))
        lab.head("ip", "route", "add", "unreachable", lab.addresses["node03"])
        try:
            run = examined(lab, *OF_LOGINS, "-p", "10001", "--transport", transport)
            finding = run.finding("NC119")
            lab.nodes[1].sh(finding["fix"].replace("sudo ", "").partition(" && (systemctl")[0])
            faults.restart_sshd(lab.nodes[1])
            lab.head("sh", "-c", finding["evidence"][0].partition("type on this machine: ")[2])
            mended = examined(lab, *OF_LOGINS, "-p", "10001", "--transport", transport)
        finally:
            lab.head("ip", "route", "delete", "unreachable", lab.addresses["node03"])

    failed = {"NC001": {"node02", "node03"}, "NC119": {"node02"}, "NC113": {"node03"}}
    assert run.failed() == failed, (run.not_passed("node02"), run.not_passed("node03"))
    others_whole(run, healthy, "node02", "node03")
    assert mended.failed() == {"NC001": {"node03"}, "NC113": {"node03"}}


def test_a_node_behind_a_jump_host_is_reached_through_it(lab: Lab, healthy: Run) -> None:
    faults.firewall(lab.nodes[3], "ip saddr 10.77.0.254 tcp dport { 22, 10001 } drop")
    with lab.file_on_head("root/.ssh/config", "Host node04\n  ProxyJump node01\n"):
        run = examined(lab, *OF_LOGINS)

    others_whole(run, healthy)
    assert [n["transport"] for n in run.report["nodes"]] == ["paramiko", "paramiko", "paramiko", "openssh"]


def test_ssh_config_by_option_names_host_port_user_and_key(lab: Lab) -> None:
    key = (lab.root / "home/ada/.ssh/id_ed25519").read_text()
    config = f"Host a\n  HostName {lab.addresses['node01']}\n  Port 10001\n  User ada\n  IdentityFile /root/adas-key\n"
    with lab.file_on_head("root/config", config), lab.file_on_head("root/adas-key", key, 0o600):
        run = examined(lab, "-F", "config", "--mesh", "none", nodes=("a",))

    assert run.exit_code == 0, run.not_passed("a")
    (node,) = run.report["nodes"]
    assert (node["name"], node["host_name"], node["user"], node["port"]) == ("a", "node01", "ada", 10001)


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_too_many_keys_offered_and_a_login_that_wants_a_person_are_causes_of_their_own(
    lab: Lab, healthy: Run, transport: str
) -> None:
    few, asking = lab.nodes[1:3]
    few.sh("sed -i '1i MaxAuthTries 2' /etc/ssh/sshd_config")
    asking.sh("sed -i '1i AuthenticationMethods publickey,password\\nPasswordAuthentication yes' /etc/ssh/sshd_config")
    for node in (few, asking):
        faults.restart_sshd(node)
    lines = "".join(f"IdentityFile ~/.ssh/other{number}\n" for number in range(4)) + "IdentityFile ~/.ssh/id_ed25519\n"
    others = [lab.file_on_head(f"root/.ssh/other{number}", layers.new_key().private, 0o600) for number in range(4)]
    with others[0], others[1], others[2], others[3], lab.file_on_head("root/.ssh/config", lines):
        run = examined(lab, *OF_LOGINS, "--transport", transport)

    failed = {"NC001": {few.name, asking.name}, "NC121": {few.name}, "NC122": {asking.name}}
    assert run.failed() == failed, (run.not_passed(few.name), run.not_passed(asking.name))
    others_whole(run, healthy, few.name, asking.name)


def test_one_control_path_for_all_hosts_is_the_cause_of_one_machine_under_all_names(lab: Lab) -> None:
    config = "Host *\n  ControlMaster auto\n  ControlPersist 300\n  ControlPath ~/.ssh/cm\n"
    with lab.file_on_head("root/.ssh/config", config):
        closed = examined(lab, "--select", "NC102,NC104")
        lab.head("ssh", "-fN", "node01")
        lab.head("ssh", "node01", "true")  # the server process has its last name from here on
        try:
            opened = examined(lab, "--select", "NC102,NC104")
        finally:
            lab.head("ssh", "-O", "exit", "node01")

    everywhere = set(lab.names)
    assert closed.failed() == {"NC104": everywhere}
    assert opened.failed() == {"NC104": everywhere, "NC102": everywhere}
    assert "ControlPath /root/.ssh/cm is the same for node[01-04]" in opened.finding("NC104")["message"]
    assert opened.finding("NC102")["see"] == ["NC104"]


def test_a_user_whom_half_of_the_nodes_do_not_know_is_looked_for_there_before_a_key_is_installed(lab: Lab) -> None:
    for node in lab.nodes[2:]:
        node.sh("sed '/^ada:/d' /etc/passwd > /run/passwd; cat /run/passwd > /etc/passwd")
        node.sh("touch /var/log")  # sshd writes down there whom it does not know

    run = examined(lab, *OF_LOGINS, user=layers.ADA)

    assert run.failed() == {"NC001": {"node03", "node04"}, "NC120": {"node03", "node04"}}
    found = [finding for finding in run.report["findings"] if finding["code"] == "NC120"]
    words = "ada refused: no key was accepted, although node[01-02] let this user in with one of them: "
    assert [finding["message"].startswith(words) for finding in found] == [True, True]
    assert {finding["fix"] for finding in found} == {
        "getent passwd ada; sudo journalctl -u ssh -u sshd -n 30 --no-pager"
    }
    assert lab.nodes[2].sh("getent passwd ada", check=False).stdout == ""


def test_who_has_no_key_makes_one_and_installs_it_on_each_node_by_the_line_that_is_shown(lab: Lab) -> None:
    for node in lab.nodes:
        node.sh("sed -i '1i PasswordAuthentication yes' /etc/ssh/sshd_config; echo ada:secret | chpasswd -c SHA512")
        faults.restart_sshd(node)
    folder, ask = lab.root / "home/ada/.ssh", "home/ada/ask"
    kept = {name: (folder / name).read_bytes() for name in ("id_ed25519", "known_hosts")}
    (folder / "id_ed25519").unlink()
    try:
        run = examined(lab, *OF_LOGINS, user=layers.ADA)
        make, _, install = run.finding("NC120")["fix"].partition("; ")
        with lab.file_on_head(ask, "#!/bin/sh\necho secret\n", 0o755):
            typed(lab, f"{make} < /dev/null -N '' -f ~/.ssh/id_ed25519")
            typed(lab, f"export SSH_ASKPASS=/{ask} SSH_ASKPASS_REQUIRE=force; {install}")
        mended = examined(lab, *OF_LOGINS, user=layers.ADA)
    finally:
        for name, data in kept.items():
            layers.write(folder / name, data, 0o600, layers.ADA.uid)
        (folder / "id_ed25519.pub").unlink(missing_ok=True)

    assert run.failed() == {"NC001": set(lab.names), "NC120": set(lab.names)}
    assert (make, install.count("ssh-copy-id")) == ("ssh-keygen -t ed25519", len(lab.names))
    assert mended.failed() == {}


def typed(lab: Lab, line: str) -> None:
    """Type a line as ada on the head."""
    lab.head("setpriv", "--reuid=4242", "--regid=4242", "--clear-groups", "env", "HOME=/home/ada", "sh", "-c", line)
