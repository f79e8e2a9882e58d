"""Why a rank does not find rank 0, and when that is an error: only where the job could not meet either."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ncheck.hook.meeting.messages import NotMet, Told
from ncheck.hook.meeting.ports import listen
from ncheck.hook.neighbours import living
from ncheck.rank_variables import read_rank

from tests.ncheck.hook.gathering import VERDICT, Bare, Job, child, dial, free_port, nothing_left  # noqa: F401  a fixture

# Ranks as real processes, or meetings that wait.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]

TOLD = Told(VERDICT)


@contextmanager
def silent(port: int) -> Iterator[socket.socket]:
    """Hold a port whose queue is full: who connects gets no answer, as behind a firewall."""
    with closing(socket.socket()) as listener, closing(socket.socket()) as first, closing(socket.socket()) as second:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(0)
        first.connect(("127.0.0.1", port))
        second.setblocking(False)  # noqa: FBT003
        second.connect_ex(("127.0.0.1", port))
        yield listener


def kind(outcome: object) -> tuple[str, bool]:
    assert isinstance(outcome, NotMet)
    return outcome.kind, outcome.is_error


def test_a_host_where_nobody_listens_is_an_error_if_the_jobs_own_port_refuses_too() -> None:
    job = Job(2, timeout=1.5)
    assert job.meet(1) == NotMet(
        "refused",
        "rank 0 was not found at MASTER_ADDR=127.0.0.1 within 1.5 s: it refuses the connections, and nothing listens "
        f"on MASTER_PORT {job.fields['master_port']} either",
        is_error=True,
    )


def test_it_is_a_warning_if_the_jobs_own_port_is_open() -> None:
    job = Job(2, timeout=1.5)
    with closing(socket.create_server(("127.0.0.1", job.fields["master_port"]))) as store:
        assert kind(job.meet(1)) == ("refused", False)
        store.setblocking(False)  # noqa: FBT003
        sock, _ = store.accept()
        with closing(sock):
            assert sock.recv(100) == b""  # the job's own store was told nothing


def test_a_host_without_a_route_is_a_warning() -> None:
    outcome = Job(2, "255.255.255.255", timeout=0.5).meet(1)
    words = "rank 0 was not found at MASTER_ADDR=255.255.255.255 within 0.5 s: there is no route to it"
    assert outcome == NotMet("unreachable", words)


def test_a_firewall_in_front_of_the_jobs_own_port_too_is_an_error() -> None:
    job = Job(2, timeout=3.5)
    with silent(job.ports[0]), silent(job.fields["master_port"]):
        outcome = job.meet(1)
    assert kind(outcome) == ("filtered", True)
    assert f"and from MASTER_PORT {job.fields['master_port']}, perhaps because of a firewall" in str(outcome)


def test_a_slow_name_server_is_not_asked_beyond_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def slow(*_: object, **__: object) -> object:
        asked.append(1)
        threading.Event().wait(0.7)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    outcome = Job(2, "gpu01", timeout=1.0).meet(1)
    words = "MASTER_ADDR=gpu01 does not resolve on this host: Temporary failure in name resolution"
    assert (outcome, len(asked)) == (NotMet("unresolved", words, is_error=True), 1)


def test_the_launchers_addresses_of_rank_0s_host_are_tried_too() -> None:
    job = Job(2, "no-such-host.invalid", addresses=("127.0.0.9", "127.0.0.1"))
    assert job.outcomes(1, 0) == [TOLD, TOLD]
    job = Job(2, "", addresses=("127.0.0.1",))
    assert job.outcomes(0, 1) == [TOLD, TOLD]


def test_loopback_that_leads_to_rank_0_all_the_same_is_fine() -> None:
    job = Job(2, node=1, nodes=2)
    assert job.outcomes(0, 1) == [TOLD, TOLD]


def test_a_rank_without_a_master_says_so_at_once() -> None:
    outcome = Job(2, "", timeout=30.0, named={}).meet(1)
    assert outcome == NotMet("no-master", "the launcher's variables do not say where rank 0 is: set MASTER_ADDR")


def test_ranks_of_one_machine_need_no_master() -> None:
    job = Job(2, "", master_port=None, local_size=2, named={})
    assert job.outcomes(1, 0) == [TOLD, TOLD]


@pytest.mark.parametrize("text", ["127.0.0.1:{port}", "localhost"])
def test_a_given_rendezvous_counts(text: str) -> None:
    port = free_port()
    job = Job(2, "no-such-host.invalid")
    assert job.outcomes(1, 0, rendezvous=text.format(port=port)) == [TOLD, TOLD]
    assert job.attendances[0].ports == ((port,) if "{port}" in text else job.ports[:1])


def test_a_given_port_that_is_taken_is_told_by_rank_0() -> None:
    with closing(listen(port := free_port())):
        outcome = Job(2).meet(0, rendezvous=f"127.0.0.1:{port}")
    words = f"ncheck could open no port for the other ranks: port {port}: Address already in use"
    assert outcome == NotMet("ports", words)


def test_a_taken_port_moves_the_meeting_to_the_next() -> None:
    job = Job(2)
    with closing(listen(job.ports[0])), closing(listen(job.ports[1])):
        assert job.outcomes(1, 0) == [TOLD, TOLD]
    assert job.attendances[0].ports == (job.ports[2],)


def test_two_jobs_with_one_master_port_do_not_meet() -> None:
    port = free_port()
    jobs = [Job(3, master_port=port) for _ in range(2)]
    futures = [job.start(number) for number in (2, 0, 1) for job in jobs]
    assert [future.result(20) for future in futures] == [TOLD] * 6
    assert [[member.rank for member in job.attendances[0].members] for job in jobs] == [[0, 1, 2]] * 2
    assert [job.attendances[0].problems for job in jobs] == [(), ()]


def test_all_ranks_of_two_jobs_with_one_id_get_one_verdict_that_names_the_other_job() -> None:
    earlier, verdict = Job(3, timeout=9.0), {"problems": "two jobs"}

    def examine(*seen: Any) -> subprocess.Popen[bytes]:
        earlier.note(*seen)
        return earlier.keep(child("echo", json.dumps(verdict), stdout=subprocess.PIPE))

    waiting = earlier.start(0, start_examiner=examine)
    with closing(dial(earlier.ports[0])):  # it is open
        later = Job(**earlier.fields, timeout=9.0)
        futures = [waiting, later.start(0), later.start(1), earlier.start(1)]
    assert [future.result(20) for future in futures] == [Told(verdict)] * 4
    ((trouble,),) = (attendance.problems for attendance in earlier.attendances)
    rank = trouble.ranks[0]  # which of the two comes first, nobody knows
    twice = earlier.attendances[0].members[rank].shown
    place = f"127.0.0.1:{earlier.fields['master_port']}"
    words = f"another job (pid {os.getpid()}) meets at {place}: rank {rank} came twice: "
    assert (trouble.kind, rank in {0, 1}) == ("duplicate-rank", True)
    assert trouble.text.startswith(f"{words}{twice} and {twice}")
    assert later.attendances == []


def test_another_program_on_rank_0s_port_is_named_in_a_job_without_a_launcher() -> None:
    job = Job(2, launcher="variables", local_size=2)
    serve = "import socket, sys; sock = socket.create_server(('', int(sys.argv[1]))); print(flush=True); input()"
    argv = [sys.executable, "-c", serve, str(job.fields["master_port"])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout
        server.stdout.readline()  # it listens
        assert job.outcomes(0, 1) == [TOLD, TOLD]
        server.communicate(b"\n")
    with closing(listen(job.fields["master_port"])):  # this process's own
        assert job.outcomes(0, 1) == [TOLD, TOLD]
    (trouble,) = job.attendances[0].problems
    assert (trouble.kind, trouble.ranks) == ("port-taken", (0,))
    words = f"MASTER_PORT {job.fields['master_port']} is taken on this host by process {server.pid} (python"
    assert trouble.text.startswith(words)
    assert job.attendances[1].problems == ()


def test_ranks_come_by_the_jobs_own_port_where_only_that_one_is_let_through() -> None:
    job = Job(2, timeout=6.0)
    first = job.start(0)
    with Bare(dial(job.fields["master_port"]), job.token) as second:  # it opens a second later
        second.prove().enter(job.member(1))
        assert second.hear()["what"] == "open"
    assert first.result(10) == TOLD
    assert job.attendances[0].ports == (job.ports[0], job.fields["master_port"])


def test_the_jobs_own_port_is_free_after_the_meeting() -> None:
    job = Job(2, timeout=3.0)
    first = job.start(0)
    with closing(dial(job.fields["master_port"])) as early, Bare(dial(job.fields["master_port"]), job.token) as second:
        early.sendall(bytes(200))  # a client of the job's own store, which is not there yet
        second.prove().enter(job.member(1))
        second.hear()
        second.sock.close()
    assert first.result(10) == TOLD
    with closing(socket.socket()) as store:  # not even SO_REUSEADDR is needed
        store.bind(("", job.fields["master_port"]))


def test_ranks_meet_where_there_is_no_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket

    def only_v4(family: int = socket.AF_INET, *words: Any, **more: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, *words, **more)

    monkeypatch.setattr("ncheck.hook.meeting.ports.socket.socket", only_v4)
    with closing(listen(0)) as listener:
        assert listener.family == socket.AF_INET


def test_ranks_meet_over_ipv6() -> None:
    job = Job(3, "::1")
    assert job.outcomes(2, 0, 1) == [TOLD] * 3
    assert [member.address for member in job.attendances[0].members] == ["::1"] * 3


def test_all_addresses_of_a_name_are_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alive = ("127.0.0.1", 0)
    dead = [("127.0.0.2", 0), ("192.0.2.1", 0), ("0.0.0.0", 0)]  # noqa: S104
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", numbers) for numbers in [*dead, alive]]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [*found, *found])
    assert Job(2, "several").outcomes(1, 0) == [TOLD, TOLD]


def test_a_name_may_resolve_later(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve, asked = socket.getaddrinfo, threading.Event()

    def late(*words: object, **more: object) -> object:
        if not asked.is_set():
            asked.set()
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve("127.0.0.1", *words[1:], **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", late)
    job = Job(2, "pod-0.job")
    second = job.start(1)
    assert asked.wait(10)
    assert job.meet(0) == TOLD
    assert second.result(10) == TOLD


# Ranks that are slow to start, and have a process already.


@pytest.mark.parametrize(("late", "alive"), [(0, True), (1, False)])
def test_a_rank_that_may_still_come_is_waited_for_longer(
    monkeypatch: pytest.MonkeyPatch, late: int, *, alive: bool
) -> None:
    job, looked, notes = Job(2, timeout=2.0), threading.Event(), list[Any]()

    def living(_: object, numbers: list[int]) -> list[int]:
        assert numbers == [late]
        looked.set()
        return numbers if alive else []

    monkeypatch.setattr("ncheck.hook.meeting.sockets.living", living)
    first = job.start(1 - late, patience=60.0, show=notes.append)
    assert looked.wait(10)
    assert [job.meet(late, patience=60.0), first.result(20)] == [TOLD, TOLD]
    notes = [one["note"] for one in notes if "note" in one]
    process = ", which has a process on this host" if alive else ""
    assert notes == [
        "still waiting for rank 1, since 2 s: NCHECK_TIMEOUT=SECONDS limits this"
        if late
        else f"still waiting for rank 0{process}: NCHECK_TIMEOUT=SECONDS limits this"
    ]


def test_the_processes_of_a_job_are_known_by_their_variables() -> None:
    job = {"WORLD_SIZE": "3", "MASTER_ADDR": "node01", "MASTER_PORT": str(free_port())}
    up = ["sh", "-c", "echo up; read line"]  # its variables are there once it speaks
    env = {**job, "RANK": "2"}
    with subprocess.Popen(up, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"up\n"
            assert living(read_rank({**job, "RANK": "0"}), [1, 2]) == [2]
            assert living(read_rank({**job, "RANK": "0", "MASTER_PORT": "1"}), [1, 2]) == []
        finally:
            process.kill()


def test_a_process_that_inherited_the_variables_of_a_rank_knows_from_which_program(tmp_path: Path) -> None:
    heir, rank = tmp_path / "heir.py", tmp_path / "rank.py"
    heir.write_text(
        "import os\nfrom ncheck.rank_variables import read_rank\nfrom ncheck.hook.neighbours import inherited_from\n"
        "print(os.environ['ABOVE'], inherited_from(read_rank(os.environ)))\n"
    )
    rank.write_text(
        "import os, subprocess, sys\nos.environ['ABOVE'] = str(os.getpid())\n"
        f"subprocess.run(['sh', '-c', f'{{sys.executable}} {heir}; true'])\n"
    )
    environ = {**os.environ, "RANK": "1", "WORLD_SIZE": "2"}
    said = subprocess.run([sys.executable, str(rank)], env=environ, capture_output=True, text=True, check=True).stdout
    pid, _, above = said.strip().partition(" ")
    assert above.startswith(f"process {pid} (python")
    alone = ["sh", "-c", f"{sys.executable} {heir}; true"]  # a script of the launcher, which has the variables too
    environ["ABOVE"] = "0"
    assert subprocess.run(alone, env=environ, capture_output=True, text=True, check=True).stdout == "0 \n"
