"""--good-nodes: the list of the nodes without errors, in the form in which it came."""

from __future__ import annotations

import io

import pytest
from ncheck.inventory.good_nodes import listing_of
from ncheck.inventory.read import read_inventory
from ncheck.settings import Settings


def again(text: str, *bad: str) -> str:
    """Read a host file and write it again without these nodes."""
    nodes = read_inventory(Settings(nodes_file="-"), stdin=io.BytesIO(text.encode()), environ={})
    return listing_of(nodes, {node.name for node in nodes} - set(bad))


@pytest.mark.parametrize(
    "text",
    [
        "node01 slots=8 max_slots=16\nnode02 slots=8 max_slots=16\n",
        "node01:8\nnode02:8\n",
        "ada@node01\nada@node02:4\n",
        "[fe80::1%eth0]:2222\nfe80::2\n",
        "# rack 1\nnode[01-16]:8   # all of it\n\n# rack 2\nnode17\n",
        "node01 port=2222 user=ada\n",
    ],
)
def test_where_all_are_good_the_file_comes_out_as_it_went_in(text: str) -> None:
    assert again(text) == text


def test_a_bad_nodes_line_is_left_out_and_every_comment_stays() -> None:
    text = "# rack 1\nnode01 slots=8  # the head\n\n# rack 2\nnode02 slots=4\nnode03 slots=8\n"
    assert again(text, "node02") == "# rack 1\nnode01 slots=8  # the head\n\n# rack 2\nnode03 slots=8\n"


def test_a_range_stays_a_range_with_a_hole_in_it() -> None:
    assert again("ada@node[01-16]:8  # ours\n", "node07") == "ada@node[01-06,08-16]:8  # ours\n"


def test_a_range_of_two_dimensions_becomes_as_many_lines_as_it_needs() -> None:
    assert again("rack[1-2]-n[1-2] slots=8\n", "rack2-n2") == "rack1-n[1-2] slots=8\nrack2-n1 slots=8\n"


def test_a_name_that_is_listed_twice_keeps_both_lines() -> None:
    assert again("node01\nnode02\nnode01\n", "node02") == "node01\nnode01\n"


def test_the_lines_of_a_carriage_return_file_come_out_as_plain_lines() -> None:
    assert again("node01 slots=8\r\nnode02 slots=8\r\n", "node01") == "node02 slots=8\n"


def test_a_list_of_hosts_stays_a_list_for_hosts() -> None:
    settings = Settings(hosts="ada@a:8, node[1-3],[::1]:22")
    nodes = read_inventory(settings, stdin=io.BytesIO(), environ={})
    good = {node.name for node in nodes} - {"node2"}
    text = listing_of(nodes, good)
    assert text == "ada@a:8,node[1,3],[::1]:22\n"
    assert [n.name for n in read_inventory(Settings(hosts=text), stdin=io.BytesIO(), environ={})] == [
        "a", "node1", "node3", "::1",
    ]  # fmt: skip


def test_a_slurm_allocation_becomes_a_node_list() -> None:
    environ = {"SLURM_JOB_NODELIST": "node[01-04]", "SLURM_NTASKS_PER_NODE": "8"}
    nodes = read_inventory(Settings(slurm=True), stdin=io.BytesIO(), environ=environ)
    assert listing_of(nodes, {"node01", "node02", "node04"}) == "node[01-02,04]\n"
