"""Answers of RAS as facts: what nodes said twice, of communicators made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncheck.facts.learning import facts_of
from ncheck.model.cluster import Cluster, FactType
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.ras import RAS, RasFacts, RasNamesFacts

from tests.standins.nccl_ras import Comm, answer, comm

from .jobs import cluster

ADDRESSES = {"node0": "10.0.0.1", "node1": "10.0.0.2", "node2": "10.0.0.3", "node3": "10.0.0.4"}
NODES = tuple(ADDRESSES)


def world(ranks: int = 8, nodes: int = 2, key: int = 0xFA93, **words: object) -> Comm:
    """Return a communicator of all ranks of `jobs.spread(ranks, nodes)`."""
    return comm(key, ranks, [ADDRESSES[node] for node in NODES[:nodes]], **words)  # type: ignore[arg-type]


def evidence(node: str, *texts: str, addresses: Sequence[str] = (), error: str = "", silent: int = 0) -> Evidence:
    """Return what the agent of a node answers if RAS says these texts, ten seconds apart; none: it was not asked."""
    asked: list[JsonValue] = [
        {
            "at": 10.0 * number, "text": text,
            "whole": bool(text), "silent": silent, "error": error,
        }
        for number, text in enumerate(texts)
    ]  # fmt: skip
    value: JsonValue = {
        "ranks": [{"pid": 4000, "path": "/opt/libnccl.so.2", "version": "2.30.7+cuda13.0", "error": ""}],
        "addresses": ["127.0.0.1", *(addresses or [ADDRESSES[node]])],
        "asked": asked,
    }
    return Evidence(node, Login(reached=True), replies={RAS.key: Reply(Status.OK, value=value)})


def seen(*nodes: Evidence) -> Cluster:
    """Return the cluster of these nodes: each was looked at, and its ranks are the job's."""
    known: Mapping[str, Mapping[FactType, object]] = {
        one.node: {ProcessesFacts: ProcessesFacts((), {}), **facts_of(one, (RasFacts, RasNamesFacts))} for one in nodes
    }
    return cluster(known)


def asked(*comms: Sequence[Comm], release: str = "2.30.7", nodes: int = 2) -> Cluster:
    """Return what is seen if the first node was asked, and said these communicators one time after the other."""
    texts = [answer(one, release) for one in comms]
    return seen(evidence("node0", *texts), *(evidence(node) for node in NODES[1:nodes]))
