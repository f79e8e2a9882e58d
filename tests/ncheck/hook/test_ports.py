"""Where the ranks of a job meet."""

from __future__ import annotations

import pytest
from ncheck.errors import SettingsError
from ncheck.hook.meeting.attendance import on_another_machine
from ncheck.hook.meeting.ports import CANDIDATES, candidates, parse_rendezvous, place_of, plain, resolve
from ncheck.rank_variables import Rank


def test_all_ranks_of_a_job_find_the_same_ports_and_another_job_finds_others() -> None:
    ports = candidates(b"token", 29500)
    assert ports == candidates(b"token", 29500)
    assert len(set(ports)) == CANDIDATES
    assert all(20000 <= port < 30000 for port in ports)
    assert not set(ports) & set(candidates(b"another", 29500))
    assert ports[0] not in candidates(b"token", ports[0])


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("gpu01", "gpu01", None),
        (" gpu01:29400 ", "gpu01", 29400),
        ("10.0.0.1", "10.0.0.1", None),
        ("fd00::1", "fd00::1", None),
        ("[fd00::1]", "fd00::1", None),
        ("[fd00::1]:65535", "fd00::1", 65535),
        ("fe80::1%eth0", "fe80::1%eth0", None),
    ],
)
def test_a_rendezvous_is_read(text: str, host: str, port: int | None) -> None:
    assert parse_rendezvous(text) == (host, port)


@pytest.mark.parametrize("text", ["host:", "host:0", "host:70000", "host:x", "[::1]x", ":29400", "[]:1", "host:\u0663"])
def test_a_wrong_rendezvous_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"is not HOST or HOST:PORT$"):
        place_of(Rank(0, 2), b"token", text)


@pytest.mark.parametrize("name", ["a" * 70, "a..b", "\udcff"])
def test_what_is_no_host_name_has_no_address(name: str) -> None:
    with pytest.raises(OSError, match=r"not a host name|not known|No address"):
        resolve(name)


def test_the_place_says_which_variable_names_the_host() -> None:
    torch = Rank(1, 2, master="gpu01", master_port=29500, named={"master": "MASTER_ADDR=gpu01"})
    place = place_of(torch, b"token")
    assert (place.hosts, place.master_port, place.given) == (("gpu01",), 29500, "MASTER_ADDR")
    assert place.ports == candidates(b"token", 29500)

    place = place_of(torch, b"token", "head")
    assert (place.hosts, place.master_port, place.given) == (("head",), None, "NCHECK_RENDEZVOUS")
    assert place_of(torch, b"token", "head:1234").ports == (1234,)

    guessed = Rank(1, 2, hosts=("gpu01", "gpu02"), layout=(0, 1))
    assert (place_of(guessed, b"token").hosts, place_of(guessed, b"token").given) == (("gpu01",), "")
    assert place_of(Rank(1, 2), b"token").hosts == ()
    assert place_of(Rank(1, 2, nodes=1), b"token").hosts == ("127.0.0.1",)
    known = Rank(1, 2, master="gpu01", addresses=("10.0.0.1", "172.17.0.1"))
    assert place_of(known, b"token").hosts == ("gpu01", "10.0.0.1", "172.17.0.1")


@pytest.mark.parametrize(
    ("rank", "proven"),
    [
        (Rank(1, 4), False),
        (Rank(1, 4, local_rank=1), False),
        (Rank(2, 4, local_rank=0), True),
        (Rank(2, 4, node=1), True),
        (Rank(1, 4, node=0, local_rank=1), False),
        (Rank(1, 2, node_name="b", hosts=("a", "b"), layout=(0, 1)), True),
        (Rank(1, 2, node_name="a", hosts=("a", "a"), layout=(0, 0)), False),
    ],
)
def test_a_rank_is_on_another_machine_only_where_the_launcher_says_so(rank: Rank, proven: bool) -> None:  # noqa: FBT001
    assert on_another_machine(rank) is proven


def test_an_address_is_shown_as_people_write_it() -> None:
    assert [plain(text) for text in ("::ffff:10.0.0.1", "10.0.0.1", "fd00::1", "::1")] == [
        "10.0.0.1", "10.0.0.1", "fd00::1", "::1",
    ]  # fmt: skip
