"""A node's own ssh to its peers: what is typed, and how what is said comes back. The ssh here is a script."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.agent.answers import MissingError
from ncheck.agent.answers.ssh_peers import STRICT, accepting, answer, line


def peer(name: str, **more: object) -> dict[str, object]:
    return {"target": name, "host": name, "port": None, "user": None, **more}


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an ssh of our own first on the PATH; its last two words are the host and the command."""
    path = tmp_path / "ssh"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return path


def script(path: Path, text: str, configured: str = "stricthostkeychecking ask") -> None:
    """Let ssh -G print the configuration, and any other ssh note its words, do this, and run the command."""
    path.write_text(f"""#!/bin/sh
[ "$1" != -G ] || {{ echo "{configured}"; exit; }}
echo "$@" >>{path}.words
while [ "$1" != -- ]; do shift; done; host=$2 command=$3
{text}
eval "$command"
""")
    path.chmod(0o755)


def said(*names: str, timeout: float = 30.0, within: float = 120.0) -> dict[str, tuple[object, ...]]:
    """Return the exit status, standard error, whether there was too little time, and whether the command ran."""
    told = answer(None, {"peers": [peer(name) for name in names], "timeout": timeout}, within)["peers"]
    return {name: (one["exit_status"], one["stderr"], one["cut_short"], one["ran"]) for name, one in told.items()}


def test_nothing_is_asked_learned_or_kept_open_by_the_line() -> None:
    typed = line(peer("node02", port=10001, user="me"), 15.0)
    assert typed[-8:] == ["ConnectTimeout=15", "-p", "10001", "-l", "me", "--", "node02", "echo NONCE"]
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no", "ControlMaster=no"):
        assert typed[typed.index(option) - 1] == "-o"


def test_a_host_that_looks_like_an_option_is_no_option() -> None:
    assert line(peer("-oProxyCommand=reboot"), 5.0)[-3:] == ["--", "-oProxyCommand=reboot", "echo NONCE"]


def test_each_peer_is_told_by_its_name(ssh: Path) -> None:
    script(ssh, 'case $host in b) echo "Permission denied (publickey)." >&2; exit 255;; esac')
    assert said("a", "b") == {"a": (0, "", False, True), "b": (255, "Permission denied (publickey).\n", False, False)}


@pytest.mark.parametrize("text", ["exit 0", "exec sh </dev/null", "echo $command; exit 0"])
def test_a_login_that_ends_well_and_runs_no_command_is_told_apart(ssh: Path, text: str) -> None:
    script(ssh, text)
    assert said("a") == {"a": (0, "", False, False)}


def test_the_port_that_was_asked_comes_back() -> None:
    told = answer(None, {"peers": [peer("a", port=10001), peer("b")], "timeout": 1.0}, 0.0)["peers"]
    assert {name: one["port"] for name, one in told.items()} == {"a": 10001, "b": None}


@pytest.mark.parametrize(
    ("configured", "options"),
    [
        ("ask", STRICT),
        ("true", STRICT),
        ("yes", STRICT),
        ("accept-new", ("StrictHostKeyChecking=accept-new", "UserKnownHostsFile=/dev/null /root/a /root/b%%c")),
        ("no", ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null /root/a /root/b%%c")),
        ("off", ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null /root/a /root/b%%c")),
        ("false", ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null /root/a /root/b%%c")),
    ],
)
def test_new_host_keys_are_accepted_where_the_configuration_does_and_are_kept_nowhere(
    configured: str, options: tuple[str, ...]
) -> None:
    text = f"host a\nstricthostkeychecking {configured}\nuserknownhostsfile /root/a /root/b%c\nloglevel INFO\n"
    assert accepting(text) == options


def test_what_ssh_g_does_not_say_accepts_nothing() -> None:
    assert [accepting(text) for text in ("", "unknown option -- G", "stricthostkeychecking")] == [STRICT] * 3


def test_each_peer_is_tried_as_its_own_configuration_says(ssh: Path) -> None:
    script(ssh, "", configured="stricthostkeychecking accept-new\nuserknownhostsfile /root/.ssh/known_hosts")
    assert said("a") == {"a": (0, "", False, True)}
    words = Path(f"{ssh}.words").read_text()
    assert "-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/dev/null /root/.ssh/known_hosts" in words


def test_a_login_that_was_dropped_for_want_of_room_is_tried_again(ssh: Path, tmp_path: Path) -> None:
    dropped = "echo kex_exchange_identification: read: Connection reset by peer >&2; exit 255"
    script(ssh, f"[ -e {tmp_path}/again ] || {{ touch {tmp_path}/again; {dropped}; }}")
    assert said("a") == {"a": (0, "", False, True)}


@pytest.mark.slow
def test_an_ssh_that_does_not_end_is_ended(ssh: Path) -> None:
    script(ssh, "exec sleep 600")
    assert said("a", timeout=1.0, within=60.0) == {"a": (None, "", False, False)}


@pytest.mark.slow
def test_peers_for_which_there_was_no_time_say_so(ssh: Path) -> None:
    script(ssh, "exec sleep 600")
    assert said("a", "b", timeout=15.0, within=2.0) == {"a": (None, "", True, False), "b": (None, "", True, False)}


def test_a_node_without_ssh_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError):
        said("a")
