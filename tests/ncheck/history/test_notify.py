"""`--notify URL`: what changed is posted to a real server, and whatever that does is never the run's exit code."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ncheck.history.entry import Entry, Seen
from ncheck.history.notify import Changes, NodeChange, changes_in, message_of, posted
from ncheck.model.report import State

from tests.recorded.replayed import FIXTURES

from .test_past import MEMLOCK, POLLING, run
from .test_remember import Ncheck, ncheck, news, recorded

__all__ = ["ncheck"]  # the fixture

PATH = "/services/T0/B0/very-secret"


@contextmanager
def webhook(*answers: int | None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a server that gives these answers, one a request: None hangs until the end, 302 leads to another host."""
    got: list[dict[str, Any]] = []
    left, ended = list(answers), threading.Event()

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = left.pop(0)
            if answer is None:
                ended.wait()
                return
            self.send_response(answer)
            if answer == 302:
                self.send_header("Location", "http://127.0.0.2:9/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{PATH}", got
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the server without a proxy of this machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.mark.slow
def test_a_node_that_turns_bad_and_good_again_is_posted_once_each(tmp_path: Path, ncheck: Ncheck) -> None:
    path = tmp_path / "cluster.db"
    with webhook(200, 200) as (url, got):
        for at, (cluster, days) in enumerate((
            ("healthy-4x8-h100", 0), ("port-polling", 1), ("port-polling", 2), ("healthy-4x8-h100", 3),
        )):  # fmt: skip
            folder = recorded(tmp_path / f"r{at}", cluster, days)
            _, output = ncheck("replay", folder, "--history", path, "--notify", url, "-v")
            assert PATH not in output
    assert [one["text"] for one in got] == [
        "ncheck: Not ready: the cluster was good and is bad\ngpu02: bad, was good (NC402 mlx5_3 has no link)",
        "ncheck: Ready: the cluster was bad and is good\ngpu02: good, was bad",
    ]
    assert (got[0]["schema"], got[0]["cluster"], got[0]["changes"], got[0]["left_out"]) == (
        "ncheck.notify/1",
        {"from": "good", "to": "bad"},
        [{"node": "gpu02", "from": "good", "to": "bad", "codes": ["NC402"], "summary": "mlx5_3 has no link"}],
        0,
    )


@pytest.mark.slow
def test_an_old_recording_and_one_that_is_known_post_nothing(tmp_path: Path, ncheck: Ncheck) -> None:
    path, late = tmp_path / "cluster.db", recorded(tmp_path / "late", "healthy-4x8-h100", 9)
    ncheck("replay", late, "--history", path)
    early = recorded(tmp_path / "early", "port-polling", 1)
    with webhook() as (url, got):
        for folder in (late, early):
            ncheck("replay", folder, "--history", path, "--notify", url)
    assert got == []


@pytest.mark.slow
def test_a_server_that_fails_is_asked_again_and_one_that_refuses_is_not() -> None:
    for answers, said, requests in (
        ((500, 200), "", 2),
        ((500, 503, 500), "127.0.0.1 answered 500", 3),
        ((404,), "127.0.0.1 answered 404", 1),
        ((302,), "127.0.0.1 redirects elsewhere, which is not followed: give the URL that it leads to", 1),
    ):
        with webhook(*answers) as (url, got):
            assert (posted(url, {"text": "x"}), len(got)) == (said, requests)


@pytest.mark.slow
def test_a_server_that_hangs_or_is_not_there_costs_its_time_limit_and_a_sentence(
    tmp_path: Path, ncheck: Ncheck
) -> None:
    with webhook(None, None, None) as (url, got):
        assert posted(url, {}, seconds=0.2) == "127.0.0.1 did not answer within 0.2 s"
        assert len(got) <= 3
    path = tmp_path / "cluster.db"
    folder = recorded(tmp_path / "r", "port-polling", 1)
    code, output = ncheck("replay", folder, "--history", path, "--notify", url)
    assert (code, news(output)) == (
        1, ["the changes were not posted: 127.0.0.1 cannot be reached: Connection refused"],
    )  # fmt: skip
    assert PATH not in output


def test_what_is_no_webhook_is_refused_and_no_message_repeats_it(
    tmp_path: Path, ncheck: Ncheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = FIXTURES / "healthy-4x8-h100"
    for url in (
        f"file://{PATH}",
        f"ftp://x{PATH}",
        PATH,
        f"https://{PATH}",
        f"https://u:p@x{PATH}",
        f"http://x:99999{PATH}",
    ):
        code, output = ncheck("replay", folder, "--history", tmp_path / "db", "--notify", url)
        assert (code, output) == (2, "ncheck: --notify: expected a URL that begins with https:// or http://\n")
    url = f"https://chat.example{PATH}"
    code, output = ncheck("replay", folder, "--notify", url)
    assert (code, output) == (2, "ncheck: --notify compares with the history: add --history FILE\n")
    monkeypatch.setenv("NCHECK_NOTIFY", url)
    code, output = ncheck("replay", folder)
    assert (code, news(output)) == (0, ["nothing was posted: NCHECK_NOTIFY compares with the history (--history FILE)"])
    settings = tmp_path / "ncheck.toml"
    settings.write_text(f'notify = "{url}"\n')
    code, output = ncheck("replay", folder, "--config", settings)
    assert (code, "it is a secret: use the variable NCHECK_NOTIFY" in output, PATH in output) == (2, True, False)


def test_what_is_unknown_is_no_change_and_a_new_node_counts_as_good() -> None:
    earlier = [run(1, POLLING), run(2, unknown=("b",)), run(3, unreached=("c",))]
    assert changes_in(run(4, POLLING, unreached=("c",)), earlier[:2]).nodes == (
        NodeChange("c", "good", "unreached", (), ""),
    )
    assert changes_in(run(4, POLLING, unknown=("c",)), earlier).nodes == (
        NodeChange("b", "good", "bad", ("NC402",), "no link"),
    )
    assert changes_in(run(1, MEMLOCK), []).nodes == (NodeChange("b", "", "bad", ("NC602",), "memlock is 64 KiB"),)
    assert changes_in(run(1), []) == Changes(())


def test_a_run_of_some_checks_ends_only_what_it_looked_for() -> None:
    def part(time: float, *found: Seen, checks: tuple[str, ...]) -> Entry:
        return replace(run(time, *found, checks=checks), kind="part", exit_code=int(bool(found)))

    bad = replace(run(1, POLLING), exit_code=1)
    other = part(2, checks=("NC602",))
    well = (NodeChange("b", "bad", "good", (), ""),)
    assert changes_in(other, [bad]) == Changes(())
    assert changes_in(part(2, checks=("NC402",)), [bad]) == Changes(well, ("bad", "good"))
    assert changes_in(run(3), [bad, other]) == Changes(well, ("bad", "good"))  # whatever was checked before
    both = part(2, MEMLOCK, checks=("NC602",))
    assert changes_in(part(3, checks=("NC602",)), [bad, both]) == Changes(())
    assert changes_in(run(2, checks=("NC602",)), [bad]).nodes == well  # the port was removed, and with it its check


@pytest.mark.slow
def test_text_of_a_node_is_no_markup_no_secret_and_bounded() -> None:
    nodes = tuple(f"n{number}" for number in range(1000))
    evil = Seen("NC506", "x", "error", nodes, "<!channel> https://u:hunter2@host \x1b[31m" + "x" * 9000)
    entry = Entry(1, "check", nodes={"bad": nodes}, findings=(evil,), exit_code=1)
    message = message_of(changes_in(entry, []), entry, State.NOT_READY)
    assert (len(message["changes"]), message["left_out"]) == (200, 800)
    text = json.dumps(message)
    assert len(text) < 100_000
    assert not any(
        word in text for word in ("<!channel", "hunter2", "\\u001b") if word in message["text"] or word == "hunter2"
    )
    assert message["text"].splitlines()[1].startswith("n[0-999]: bad, new (NC506 &lt;!channel&gt; ")
