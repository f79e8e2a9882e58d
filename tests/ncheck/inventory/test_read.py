"""Which nodes: every form of host file, -H, Slurm, this machine; and what is wrong with the others."""

from __future__ import annotations

import io
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.errors import InventoryError
from ncheck.inventory.read import read_inventory
from ncheck.model.node import Node
from ncheck.settings import Settings

FIXTURES = Path(__file__).parents[3] / "fixtures"

Nodes = tuple[Node, ...]

NOBODY = 65534


def listed(data: str | bytes) -> Nodes:
    """Read a host file from standard input."""
    stdin = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return read_inventory(Settings(nodes_file="-"), stdin=stdin, environ={})


def refused(data: str | bytes) -> str:
    with pytest.raises(InventoryError) as caught:
        listed(data)
    return str(caught.value)


def node(name: str, line: int = 1, **told: Any) -> Node:
    return Node(name, places=(f"standard input:{line}",), **told)


def from_hosts(hosts: str) -> Nodes:
    return read_inventory(Settings(hosts=hosts), stdin=io.BytesIO(), environ={})


def in_slurm(environ: Mapping[str, str], settings: Settings | None = None) -> list[tuple[str, int | None]]:
    nodes = read_inventory(settings or Settings(), stdin=io.BytesIO(), environ=environ)
    return [(node.name, node.slots) for node in nodes]


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        ("node01", (node("node01"),)),
        ("  node01  # the first", (node("node01"),)),
        ("node01 slots=8 max_slots=8", (node("node01", slots=8, max_slots=8),)),
        ("node01 slots = 8 max-slots = 16", (node("node01", slots=8, max_slots=16),)),
        ("node01 cpu=4 slots-max=4", (node("node01", slots=4, max_slots=4),)),
        ("node01 count=4", (node("node01", slots=4),)),
        ("node01 username=alice port=2222", (node("node01", user="alice", port=2222),)),
        ("node01 slots=8 sockets=2 ifname=ib0", (node("node01", slots=8),)),
        ("node01:8", (node("node01", slots=8),)),
        ("alice@node01:8", (node("node01", user="alice", slots=8),)),
        ("alice@corp.example@node01", (node("node01", user="alice@corp.example"),)),
        ("10.0.0.7:8", (node("10.0.0.7", slots=8),)),
        ("fe80::1", (node("fe80::1"),)),
        ("[fe80::1]", (node("fe80::1"),)),
        ("alice@[fe80::1%eth0]:2222", (node("fe80::1%eth0", user="alice", port=2222),)),
        ("node[01-02,20]:8", (node("node01", slots=8), node("node02", slots=8), node("node20", slots=8))),
        ("node[1-2] slots=4", (node("node1", slots=4), node("node2", slots=4))),
    ],
)
def test_a_line_is_read_whichever_launcher_it_was_written_for(line: str, nodes: Nodes) -> None:
    assert listed(line) == nodes


def test_comments_empty_lines_byte_order_marks_and_line_endings_of_windows_are_read_over() -> None:
    data = "\ufeff# nodes\r\n\r\nnode01 slots=8 \r\n\tnode02\t# no slots\r\n".encode()
    assert listed(data) == (node("node01", 3, slots=8), node("node02", 4))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("node01:10001", ":10001 means 10001 slots; for SSH port 10001 write -p 10001 or port=10001"),
        ("node01:257", ":257 means 257 slots; for SSH port 257 write -p 257 or port=257"),
        ("node01:22", ":22 can mean slots or the SSH port; write slots=22, or remove it: port 22 is the default"),
        ("node01:0", "'node01' has no slots (:0); remove the host, or write a number, as in :8"),
        ("node01:", "'node01:': expected a number of slots after the colon, as in node01:8"),
        ("node01:x", "'node01:x': expected a number of slots after the colon, as in node01:8"),
        ("node01 10001", "'10001' after 'node01' is not understood; write slots=10001 or port=10001"),
        ("node01 node02", "'node02' after 'node01' is not understood; one host per line, as in: node01 slots=8"),
        ("a:8,b:8", "'a:8,b:8' names several hosts: write one host per line, or use -H for a list"),
        ("n0,", "'n0,' has a comma too many: write one host per line, without commas"),
        (",n0", "',n0' has a comma too many: write one host per line, without commas"),
        ('["n0"]', "'[\"n0\"]' is from a list in JSON, YAML or Python; write one host per line, without quotes"),
        ("'n0',", "''n0',' is from a list in JSON, YAML or Python; write one host per line, without quotes"),
        ("[", "'[' is from a list in JSON, YAML or Python; write one host per line, without quotes"),
        ("- n0", "'- n0' is an item of a YAML list; write one host per line, without the dash"),
        ("n0\uff1a8", "'n0\uff1a8' has the full-width character \uff1a; write : in its place"),
        ("n0\uff0cn1", "'n0\uff0cn1' has the full-width character \uff0c; write , in its place"),
        ("n0 slots\uff1d8", "'n0 slots\uff1d8' has the full-width character \uff1d; write = in its place"),
        ("n0、n1", "'n0、n1' has the full-width character 、; write , in its place"),
        ("slots=8", "'slots=8': write the host first, as in: node01 slots=8"),
        ("node01 slots=eight", "slots='eight' is not a number of slots, as in slots=8"),
        ("node01 slots=0", "slots=0 gives the host no work; remove the line, or write slots=8"),
        ("node01 slots=4 slots=8", "'node01' has slots twice"),
        ("node01 slots=8 max_slots=4", "max_slots=4 is less than slots=8"),
        ("node01 gpus=8", "'gpus' is unknown; a host can have slots=, max_slots=, user= and port="),
        ("node01 port=99999", "99999 is not a port: 1 to 65535"),
        ("node01 user=a;b", "'a;b' is not a user name"),
        ("$(id)@node01", "'$(id)' is not a user name; write user@host"),
        ("root@", "'root@' names no host; write user@host"),
        ("node01;reboot", "'node01;reboot' is not a host name: only letters, digits, '.', '_' and '-' are allowed"),
        ("node\x1b[2J", "'node?[2J' is not a host range; write it as node[01-16,20]"),
        ("fe80::1::2", "'fe80::1::2' is not a host; write an IPv6 address with a port as [fe80::1]:22"),
        ("[fe80:::1]:22", "'fe80:::1' is not an IPv6 address"),
        ("[gpu_nodes]", "'[gpu_nodes]' is a section of an Ansible inventory; write one host per line"),
        ("rank 0=a slot=1", "'rank 0=a slot=1' is a line of a rankfile; write one host per line, as in: node01 slots=8"),  # noqa: E501
        ("^node01", "'^node01' excludes a host; remove the line instead"),
        ("node[1-70000]", "'node[1-70000]' expands to more than 65536 hosts"),
    ],
)  # fmt: skip
def test_a_bad_line_is_told_with_its_place_and_what_would_be_right(line: str, message: str) -> None:
    assert refused(f"# nodes\nnode00\n{line}\n") == f"standard input:3: {message}"


@pytest.mark.parametrize(
    "line",
    ["{}", "a {}", "a slots={}", "{}:8", "a:{}", "{}=8", "a {}=8", "{}@a", "a user={}", "[{}]:22", "n[{}]", "[::{}]"],
)
@pytest.mark.parametrize("text", ["\x1b]0;pwned\x07", "9", "a:", "[1-", "é"])
def test_a_bad_line_of_any_length_makes_one_short_line_of_message(line: str, text: str) -> None:
    message = refused(line.format(text * 10000))
    assert message.isprintable()
    assert len(message) < 200


def test_a_full_width_space_parts_words_and_a_full_width_comma_is_named_on_the_command_line_too() -> None:
    assert listed("node01　slots=8") == (node("node01", slots=8),)
    with pytest.raises(InventoryError) as caught:
        from_hosts("n0\uff0cn1")
    assert str(caught.value) == "-H: 'n0\uff0cn1' has the full-width character \uff0c; write , in its place"


@pytest.mark.parametrize("data", ["", "\n\n", "# only a comment\n", "\ufeff"])
def test_a_file_without_a_host_is_an_error_and_never_a_green_report(data: str) -> None:
    assert refused(data) == "standard input: contains no host; write one host per line, as in: node01 slots=8"


def test_what_is_no_text_is_told_apart() -> None:
    assert refused(b"node01\nn\xf6de\n") == ("standard input:2: is not UTF-8; save the file as UTF-8")
    assert refused("node01\n".encode("utf-16")) == (
        "standard input: is UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE"
    )
    assert refused(b"\x7fELF\0") == "standard input: is a binary file; expected a file with one host per line"
    assert refused(b"a" * (16 * 2**20 + 1)) == "standard input: is larger than 16 MiB, so not a host file"


def test_a_file_is_named_as_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text("node01\nnode 02\n")
    with pytest.raises(InventoryError) as caught:
        read_inventory(Settings(nodes_file=str(file)), stdin=io.BytesIO(), environ={})
    assert str(caught.value) == f"{file}:2: '02' after 'node' is not understood; write slots=02 or port=02"


def test_a_path_that_is_no_file_is_told_apart(tmp_path: Path) -> None:
    def message(path: str) -> str:
        with pytest.raises(InventoryError) as caught:
            read_inventory(Settings(nodes_file=path), stdin=io.BytesIO(), environ={})
        return str(caught.value)

    assert message(f"{tmp_path}/none") == f"{tmp_path}/none: no such file"
    assert message("no-such-node07") == "no-such-node07: no such file; to check a host by name: -H no-such-node07"
    assert message("no-such-nodes.txt") == "no-such-nodes.txt: no such file; write one host per line into it"
    assert message(str(tmp_path)) == f"{tmp_path}: is a directory; expected a file with one host per line"
    assert message(str(FIXTURES / "healthy-4x8-h100")) == (
        f"{FIXTURES}/healthy-4x8-h100: is a directory; expected a file with one host per line; "
        "to judge a recording: ncheck replay DIR"
    )
    assert message("a\0b") == "a?b: embedded null byte"


@pytest.fixture
def as_ordinary_user() -> Iterator[None]:
    """Take root's rights away for a while: root may read every file."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    yield
    os.seteuid(user)


def test_a_file_that_may_not_be_read_is_told_so(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text("a\n")
    file.chmod(0)
    request.getfixturevalue("as_ordinary_user")
    with pytest.raises(InventoryError) as caught:
        read_inventory(Settings(nodes_file=str(file)), stdin=io.BytesIO(), environ={})
    assert str(caught.value) == f"{file}: permission denied; see: ls -l {file}"


def test_a_host_named_twice_is_one_node_with_all_its_places() -> None:
    assert listed("a slots=4\nb\nuser@a slots=8\na\n") == (
        Node("a", user="user", slots=8, places=("standard input:1", "standard input:3", "standard input:4")),
        node("b", 2),
    )


def test_one_name_with_two_ports_is_two_nodes_and_an_error_that_says_how_to_name_them() -> None:
    assert refused("box port=2201\nbox port=2202\n") == (
        "standard input:2: 'box' has port 2202 here, but port 2201 at standard input:1: one name is one node; "
        "name the second with Host and HostName in ~/.ssh/config"
    )


def test_hosts_are_taken_from_the_command_line() -> None:
    assert from_hosts("a:8, node[1-2,5]:4,bob@[::1]:2222") == (
        Node("a", slots=8, places=("-H",)),
        Node("node1", slots=4, places=("-H",)),
        Node("node2", slots=4, places=("-H",)),
        Node("node5", slots=4, places=("-H",)),
        Node("::1", user="bob", port=2222, places=("-H",)),
    )


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ("", "-H: no host given; write -H node01:8,node02:8"),
        ("a,,b", "-H: a host name is missing before or after a comma"),
        ("a:8,b:10001", "-H: :10001 means 10001 slots; for SSH port 10001 write -p 10001 or port=10001"),
        ("@all", "-H: '@all' is not a host name: only letters, digits, '.', '_' and '-' are allowed"),
    ],
)
def test_bad_hosts_on_the_command_line_are_told(hosts: str, message: str) -> None:
    with pytest.raises(InventoryError) as caught:
        from_hosts(hosts)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("environ", "nodes"),
    [
        ({"SLURM_JOB_NODELIST": "gpu[01-02]"}, [("gpu01", None), ("gpu02", None)]),
        ({"SLURM_NODELIST": "gpu1", "SLURM_NTASKS_PER_NODE": "8"}, [("gpu1", 8)]),
        ({"SLURM_JOB_NODELIST": "n[1-2],g1", "SLURM_TASKS_PER_NODE": "8(x2),4"}, [("n1", 8), ("n2", 8), ("g1", 4)]),
        ({"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "8(x3)"}, [("n1", None), ("n2", None)]),
        ({"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "many"}, [("n1", None), ("n2", None)]),
        ({"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NODELIST": "old"}, [("n1", None), ("n2", None)]),
    ],
)
def test_inside_an_allocation_its_nodes_are_taken(
    environ: Mapping[str, str], nodes: list[tuple[str, int | None]]
) -> None:
    assert in_slurm(environ) == in_slurm(environ, Settings(slurm=True)) == nodes


def test_a_file_outweighs_the_allocation_that_it_is_read_in() -> None:
    nodes = read_inventory(Settings(nodes_file="-"), stdin=io.BytesIO(b"a\n"), environ={"SLURM_JOB_NODELIST": "b"})
    assert nodes == (node("a"),)


def test_slurm_without_an_allocation_is_an_error() -> None:
    with pytest.raises(InventoryError) as caught:
        in_slurm({}, Settings(slurm=True))
    assert str(caught.value) == (
        "--slurm: not in an allocation (SLURM_JOB_NODELIST is not set); start one: salloc -N 2 ncheck --slurm"
    )


def test_a_node_list_that_is_none_is_an_error_that_names_the_variable() -> None:
    with pytest.raises(InventoryError) as caught:
        in_slurm({"SLURM_JOB_NODELIST": "n[1-"})
    assert str(caught.value) == "SLURM_JOB_NODELIST: 'n[1-' is not a host range; write it as node[01-16,20]"


@pytest.mark.parametrize("settings", [Settings(), Settings(local=True), Settings(local=True, nodes_file="nodes.txt")])
def test_without_nodes_it_is_this_machine(settings: Settings) -> None:
    nodes = read_inventory(settings, stdin=io.BytesIO(), environ={})
    assert nodes == (Node(socket.gethostname(), places=("local",)),)
    assert nodes[0].local


@pytest.mark.slow
def test_ten_thousand_lines_are_quick() -> None:
    text = "".join(f"node{number:05} slots=8 max_slots=8  # rack {number // 40}\n" for number in range(10000))
    began = time.process_time()
    assert len(listed(text)) == 10000
    assert time.process_time() - began < 2  # a tenth of it, unless something grows with the square
