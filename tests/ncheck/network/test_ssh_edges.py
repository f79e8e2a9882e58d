"""Who must be able to ssh to whom."""

from __future__ import annotations

from ncheck.network.ssh_edges import edges, launcher, star, tree


def test_up_to_sixteen_nodes_every_node_tries_every_other_beginning_with_the_next() -> None:
    assert edges(3, "auto") == {0: (1, 2), 1: (2, 0), 2: (0, 1)}
    assert sum(len(others) for others in edges(16, "auto").values()) == 16 * 15


def test_beyond_sixteen_only_the_first_node_tries_and_it_tries_all() -> None:
    assert edges(17, "auto") == {0: tuple(range(1, 17))}


def test_beyond_sixty_five_the_first_nodes_start_the_rest_as_open_mpi_does() -> None:
    found = edges(67, "auto")
    assert found == {0: tuple(range(1, 67)), 1: (65,), 2: (66,)}


def test_every_daemon_of_a_large_job_has_one_launcher_and_none_has_more_than_sixty_four() -> None:
    launchers = [launcher(daemon) for daemon in range(1, 5000)]
    assert max(launchers.count(one) for one in set(launchers)) == 64
    assert all(one < daemon for daemon, one in enumerate(launchers, start=1))
    # The third level hangs beneath the second: 1 + 64 + 4096 daemons stand above number 4161.
    assert launcher(4160) == 64
    assert launcher(4161) == 65


def test_all_pairs_are_tried_where_that_is_asked_for_and_none_where_none_are() -> None:
    assert sum(len(others) for others in edges(20, "all").values()) == 20 * 19
    assert edges(20, "none") == {}


def test_one_node_alone_has_nobody_to_try() -> None:
    assert edges(1, "auto") == {}


def test_from_a_machine_that_is_no_node_no_node_starts_another_up_to_sixty_four() -> None:
    assert list(tree(64, None)) == []
    assert list(tree(66, None)) == [(0, 64), (1, 65)]
    assert edges(66, "auto", None) == {0: tuple(range(1, 66)), 1: (65,)}


def test_from_one_of_the_nodes_the_others_are_numbered_in_their_order() -> None:
    assert list(tree(4, 2)) == [(2, 0), (2, 1), (2, 3)]
    assert list(tree(67, 1))[64:] == [(0, 65), (2, 66)]


def test_a_launcher_without_a_tree_starts_every_node_itself() -> None:
    assert [*star(100, None)] == []
    assert [*star(4, 2)] == [(2, 0), (2, 1), (2, 3)]
