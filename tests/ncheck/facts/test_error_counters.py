"""What ports and cards have counted, in a tree like that of sysfs; both looks at it, and who is asked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import error_counters
from ncheck.facts.error_counters import (
    FIRST,
    LATER,
    Counted,
    ErrorCountersFacts,
    LaterErrorCountersFacts,
    ask_again,
)
from ncheck.facts.learning import facts_of
from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Unread
from ncheck.model.phase import NotAsked
from ncheck.settings import Settings

Answered = Callable[[Mapping[Any, Reply]], Evidence]


def laid(root: Path, **files: str) -> None:
    """Write the files; in their names _ stands for itself and __ for /."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def read(answered: Answered, value: JsonValue) -> tuple[object, object]:
    reply = Reply(Status.OK, value=value)
    facts = facts_of(answered({FIRST: reply, LATER: reply}), [ErrorCountersFacts, LaterErrorCountersFacts])
    return facts[ErrorCountersFacts], facts[LaterErrorCountersFacts]


def counted(answered: Answered, root: Path) -> Mapping[str, Counted]:
    """Return what the agent finds there, as both looks have it."""
    value = error_counters.answer(None, None, 1.0, str(root))
    first, later = read(answered, value)
    assert isinstance(first, ErrorCountersFacts)
    assert later == LaterErrorCountersFacts(first.at, first.ports)
    assert first.at == value["at"] > 0
    return first.ports


def test_errors_and_bytes_of_ports_and_cards_are_read_and_zeros_are_left_out(
    tmp_path: Path, answered: Answered
) -> None:
    port, card = "infiniband__mlx5_0__ports__1__", "net__eth0__"
    laid(tmp_path, **{
        f"{port}counters__symbol_error": "17", f"{port}counters__link_downed": "0",
        f"{port}counters__port_rcv_errors": "N/A (no PMA)", f"{port}hw_counters__np_cnp_sent": str(2**63),
        f"{port}counters__port_xmit_data": "250", f"{port}counters__port_rcv_data": "500",
        f"{card}statistics__rx_crc_errors": "3", f"{card}statistics__tx_bytes": "10",
        f"{card}statistics__rx_bytes": "20", f"{card}carrier_down_count": "0", f"{card}device__vendor": "0x8086",
        "net__veth0__statistics__rx_crc_errors": "9",
    })  # fmt: skip
    assert counted(answered, tmp_path) == {
        "eth0": Counted(2, {"rx_crc_errors": 3}, 10, 20),
        "mlx5_0:1": Counted(3, {"symbol_error": 17, "np_cnp_sent": 2**63}, 1000, 2000),
    }


def test_efa_counts_under_names_of_its_own(tmp_path: Path, answered: Answered) -> None:
    counters = "infiniband__rdmap0s6__ports__1__hw_counters__"
    laid(tmp_path, **{
        f"{counters}tx_bytes": "1000", f"{counters}rx_bytes": "2000", f"{counters}rx_drops": "0",
        f"{counters}unresponsive_remote_events": "2",
    })  # fmt: skip
    assert counted(answered, tmp_path) == {"rdmap0s6:1": Counted(2, {"unresponsive_remote_events": 2}, 1000, 2000)}


def test_a_port_without_counters_says_that_none_could_be_read(tmp_path: Path, answered: Answered) -> None:
    laid(tmp_path, infiniband__efa_0__ports__1__state="4: ACTIVE")
    assert counted(answered, tmp_path) == {"efa_0:1": Counted(0, {}, None, None)}


def test_a_node_with_neither_counts_nothing(tmp_path: Path, answered: Answered) -> None:
    laid(tmp_path, net__lo__statistics__rx_crc_errors="0")
    assert counted(answered, tmp_path) == {}


@pytest.mark.parametrize("name", ["-x", "mlx5_0:$(id)", "a/b", "mlx5_0:1:2", ""])
def test_what_is_no_port_is_unread(answered: Answered, name: str) -> None:
    link: JsonValue = {"read": 18, "errors": {"link_downed": 1}, "sent": 4, "received": None}
    assert [type(one) for one in read(answered, {"at": 10.5, "ports": {name: link}})] == [Unread, Unread]


def test_who_answered_at_the_beginning_is_asked_again_and_the_others_are_not() -> None:
    login = LoginFacts(Login(reached=True))
    first = ErrorCountersFacts(1.0, {"eth0": Counted(3, {})})
    cluster = Cluster.of(
        {
            "a": {LoginFacts: login, ErrorCountersFacts: first},
            "b": {LoginFacts: login, ErrorCountersFacts: ErrorCountersFacts(1.0, {})},
            "c": {LoginFacts: LoginFacts(Login(reached=False)), ErrorCountersFacts: Unread("not reached")},
        }
    )
    assert ask_again(cluster, Settings(), 1.0) == {
        "a": (LATER,),
        "b": (NotAsked(LATER, "no InfiniBand or RoCE port, and no network card"),),
    }
