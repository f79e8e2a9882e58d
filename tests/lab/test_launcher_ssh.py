"""ssh as the launcher uses it: from the head by its own ssh program, and between nodes as their configuration says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from . import faults, layers
from .command import Run
from .hosts import Lab
from .launching import launched
from .promises import examined, others_whole, plan_from

CONFIG, KEY = "root/.ssh/config", "root/.ssh/id_ed25519"
KNOWN_HOSTS = "/root/.ssh/known_hosts"
OF_SSH = ("--select", "NC1")
OF_THE_PLAN = ("--select", "NC1,NC2,NC3")


@contextmanager
def open_to_others(lab: Lab, name: str, mode: int) -> Iterator[None]:
    """Give a file of the head other permissions for a while."""
    path = lab.root / name
    before = path.stat().st_mode & 0o777
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


def test_accept_new_and_no_need_no_known_hosts_and_write_none_and_only_no_takes_a_changed_key(
    lab: Lab, healthy: Run
) -> None:
    for node, checking in zip(lab.nodes, ("accept-new", "no", "accept-new", "no"), strict=True):
        node.write("/root/.ssh/config", f"StrictHostKeyChecking {checking}\n", 0o600)
        node.sh(f"rm {KNOWN_HOSTS}")
    for node in lab.nodes[:2]:
        node.write(KNOWN_HOSTS, "".join(layers.known_host(n, a, layers.new_key()) for n, a in lab.addresses.items()))

    run = examined(lab, *OF_SSH)  # it holds the files of all nodes to what they were

    assert run.failed() == {"NC132": {"node01"}}
    assert run.finding("NC132")["message"].startswith("ssh from node01 to node[02-04] fails: host-key-changed")
    assert run.exit_code == 0
    others_whole(run, healthy, "node01")


def test_keys_on_the_head_alone_start_mpirun_and_are_information(lab: Lab) -> None:
    names = lab.names[:2]
    for node in lab.nodes[:2]:
        node.sh(f"rm /{KEY}")

    run = examined(lab, *OF_THE_PLAN, "--record", "recording/keyless", nodes=names)

    assert run.failed() == {"NC132": set(names)}
    finding = run.finding("NC132")
    assert finding["message"] == (
        "ssh from node[01-02] to node[01-02] fails: auth-refused; the planned launch does not use it"
    )
    assert (finding["severity"], run.exit_code) == ("info", 0)
    job = launched(lab, plan_from(lab, "recording/keyless", "--for", "mpirun", "--", "hostname").stdout)
    assert (job.exit_code, set(names) - set(job.said.split())) == (0, set())


def test_aliases_and_a_port_in_the_heads_configuration_alone_are_information(lab: Lab) -> None:
    for node in lab.nodes[:2]:
        faults.firewall(node, "tcp dport 22 reject with tcp reset")
    config = "".join(f"Host gpu{name[-1]}\n  HostName {address}\n" for name, address in lab.addresses.items())
    with lab.file_on_head(CONFIG, f"{config}Host gpu*\n  Port 10001\n", 0o600):
        run = examined(lab, *OF_SSH, nodes=("gpu1", "gpu2"))

    assert {code: finding["severity"] for finding in run.report["findings"] for code in [finding["code"]]} == {
        "NC132": "info"
    }
    assert run.exit_code == 0


def test_a_node_that_was_re_imaged_and_one_that_runs_no_command_for_other_nodes_are_one_finding_each(
    lab: Lab, healthy: Run
) -> None:
    node, shut = lab.nodes[1:3]
    shut.sh("printf 'Match Address 10.77.0.0/28\\n  ForceCommand /bin/bash\\n' >> /etc/ssh/sshd_config")
    faults.restart_sshd(shut)
    key = faults.change_host_key(node)
    lab.host_keys[node.name], before = key, lab.host_keys[node.name]
    known = "".join(layers.known_host(name, lab.addresses[name], lab.host_keys[name]) for name in lab.names)
    try:
        with lab.file_on_head(KNOWN_HOSTS.lstrip("/"), known, 0o600):
            run = examined(lab, *OF_SSH)
    finally:
        lab.host_keys[node.name] = before

    found = {tuple(one["nodes"]): (one["code"], one["message"]) for one in run.report["findings"]}
    assert {nodes: code for nodes, (code, _) in found.items()} == {("node02",): "NC132", ("node03",): "NC132"}, found
    changed = "the host key of node02 is not the one in known_hosts of node[01,03-04]: it was re-imaged"
    assert found["node02",][1].startswith(changed), found
    assert found["node03",][1].startswith("ssh from node[01-02,04] to node03 fails: no-shell"), found
    assert [one["where"] for one in run.report["findings"] if one["nodes"] == ["node02"]] == ["node[01,03-04]"]
    others_whole(run, healthy, node.name, shut.name)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("KexAlgorithms diffie-hellman-group14-sha1\n", "no matching key exchange method found"),
        ("Host node0*\n  RemoteCommand tmux attach\n", "Cannot execute command-line and remote command."),
    ],
)
def test_what_only_the_heads_ssh_program_refuses_is_found_once_and_no_node_is_at_fault(
    lab: Lab, config: str, words: str
) -> None:
    with lab.file_on_head(CONFIG, config, 0o600):
        run = examined(lab, *OF_SSH, nodes=lab.names[:2])

    (finding,) = (finding for finding in run.report["findings"] if finding["severity"] == "error")
    assert (finding["where"], finding["nodes"], run.exit_code) == ("here", ["node01", "node02"], 1)
    assert words in "".join(finding["evidence"])


def test_a_private_key_that_others_can_read_is_found_for_the_launchers_that_use_ssh(lab: Lab) -> None:
    launchers, names = ("mpirun", "torchrun", "srun"), lab.names[:2]
    with open_to_others(lab, KEY, 0o644):
        run = examined(lab, *OF_THE_PLAN, "--record", "recording/readable", nodes=names)
        lab.head("sh", "-c", run.finding("NC134")["fix"])
        mended = examined(lab, "--select", "NC134", nodes=names)
    plans = {name: plan_from(lab, "recording/readable", "--for", name).exit_code for name in launchers}

    assert run.failed() == {"NC134": set(names)}
    finding = run.finding("NC134")
    assert (finding["where"], finding["kind"], finding["fix"]) == ("here", "fix", "chmod 600 /root/.ssh/id_ed25519")
    assert finding["evidence"] == ["ssh to node01: Permissions 0644 for '/root/.ssh/id_ed25519' are too open."]
    assert (run.exit_code, plans) == (1, {"mpirun": 1, "torchrun": 0, "srun": 0})
    assert mended.failed() == {}


@pytest.mark.parametrize(
    ("config", "mode", "fix"),
    [("Port 22\n", 0o666, "chmod go-w /root/.ssh/config"), ("Prot 22\n", 0o600, "")],
)
def test_a_configuration_that_ssh_refuses_is_one_finding_about_this_machine(
    lab: Lab, config: str, mode: int, fix: str
) -> None:
    with lab.file_on_head(CONFIG, config, mode):
        assert (lab.root / CONFIG).stat().st_mode & 0o777 == mode
        run = examined(lab, *OF_SSH)

    assert {code for code in run.failed() if code.startswith("NC1")} == {"NC133"}
    finding = run.finding("NC133")
    assert (finding["where"], finding["nodes"], run.exit_code) == ("here", list(lab.names), 1)
    assert finding["message"].startswith("the login fails on this machine: ssh configuration: ")
    assert finding["fix"] == (fix or "ssh -v node01 true")
