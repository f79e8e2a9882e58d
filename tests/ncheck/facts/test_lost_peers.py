"""Other nodes are asked about what this machine did not reach."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping

from ncheck.agent.answers import lost_peers
from ncheck.facts.login import LoginFacts
from ncheck.facts.lost_peers import LostPeerFacts, ask_lost_peers, greeted_by_peers
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Answer, Cause, Login
from ncheck.model.node import Node
from ncheck.settings import Settings

REACHED = Login(reached=True)
DOWN = Login(reached=False, cause=Cause.FILTERED, address="10.0.0.9", port=2222)


def asked(logins: Mapping[str, Login]) -> dict[str, object]:
    cluster = Cluster(tuple(map(Node, logins)), {name: {LoginFacts: LoginFacts(one)} for name, one in logins.items()})
    questions = ask_lost_peers(cluster, Settings(), 20.0).items()
    return {name: one.arguments if isinstance(one, Answer) else None for name, (one,) in questions}


def test_two_nodes_try_those_on_which_nothing_answered_here() -> None:
    peers = {"peers": [["d", "d", 2222], ["d", "10.0.0.9", 2222]]}
    assert asked({"a": REACHED, "d": DOWN, "b": REACHED, "c": REACHED}) == {"a": peers, "b": peers, "c": None}


def test_nobody_tries_anything_where_all_were_reached_or_only_a_key_was_refused() -> None:
    refused = Login(reached=False, cause=Cause.AUTH_REFUSED, address="10.0.0.9")
    assert asked({"a": REACHED, "b": REACHED}) == {"a": None, "b": None}
    assert asked({"a": REACHED, "b": refused}) == {"a": None}


def test_a_node_is_reached_if_one_of_the_others_is_greeted() -> None:
    facts: dict[str, Facts] = {"a": {LostPeerFacts: LostPeerFacts({"d": False, "e": False})},
             "b": {LostPeerFacts: LostPeerFacts({"d": True, "e": False})}, "d": {}, "e": {}}  # fmt: skip
    assert greeted_by_peers(Cluster.of(facts)) == {"d": True, "e": False}


def test_only_what_greets_as_ssh_does_is_a_server() -> None:
    """Real sockets: one greets as sshd does, one as a web server, one is frozen, and on one port nobody listens."""
    words = {"ssh": b"SSH-2.0-OpenSSH_9.6\r\n", "web": b"HTTP/1.1 400\r\n", "frozen": b""}
    servers = {name: socket.create_server(("127.0.0.1", 0)) for name in words}

    def greet(name: str) -> None:
        client, _ = servers[name].accept()
        with client:
            client.sendall(words[name])
            if not words[name]:
                client.recv(1)  # until the other side gives up

    for name in words:
        threading.Thread(target=greet, args=(name,), daemon=True).start()
    ports = {name: server.getsockname()[1] for name, server in servers.items()}
    with socket.create_server(("127.0.0.1", 0)) as gone:
        ports["gone"] = gone.getsockname()[1]
    peers = [[name, "127.0.0.1", port] for name, port in ports.items()]
    peers.append(["ssh", "no such name", ports["ssh"]])

    said = lost_peers.answer(None, {"peers": peers}, 10.0)

    for server in servers.values():
        server.close()
    assert said == {"greeted": {"ssh": True, "web": False, "frozen": False, "gone": False}}
