"""One port with far more errors than all others stands out; ports of a healthy cluster, which differ much, do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp
from random import Random

import pytest
from ncheck.outliers import ERRORS, EVENTS, Outlier, Place, Series

PORTS = tuple(f"mlx5_{number}:1" for number in range(8))
COUNTERS = {f"{kind}{number}": fewest for kind, fewest in (("event", EVENTS), ("error", ERRORS)) for number in range(4)}


def found(
    counts: Mapping[Place, int], nodes: int, ports: int = 8, days: Mapping[str, float] | None = None
) -> list[Outlier]:
    """Return what stands out among so many ports on each of so many nodes, of 12 days; others have none."""
    series = Series({"recoveries": EVENTS})
    for node in names(nodes):
        for port in PORTS[:ports]:
            series.add(node, port, {"": {"recoveries": counts.get((node, port, ""), 0)}})
    return list(series.outliers(dict.fromkeys(names(nodes), 12.0) | dict(days or {})))


def names(nodes: int) -> list[str]:
    return [f"n{number}" for number in range(nodes)]


HERE = ("n0", PORTS[3], "")


def test_a_link_with_500_where_others_have_none_is_found_in_every_cluster() -> None:
    for nodes, ports in ((1, 4), (1, 8), (2, 2), (4, 1), (3, 8), (64, 8)):
        place = ("n0", PORTS[ports - 1], "")
        assert found({place: 500}, nodes, ports) == [
            Outlier(place, "recoveries", 500, 12.0, 500 / 12, 0.0, nodes * ports - 1)
        ]
    one_of_many = Series({"recoveries": EVENTS})
    for node in names(40):
        for gpu in range(8):
            one_of_many.add(
                node, f"GPU {gpu}", {"NVLink 14": {"recoveries": 505}} if (node, gpu) == ("n7", 0) else {}, 18
            )
    (outlier,) = one_of_many.outliers(dict.fromkeys(names(40), 12.0))
    assert outlier.line("link recoveries") == (
        "NVLink 14 of GPU 0 counted 505 link recoveries in 12 days (42 per day); the median of 5759 others is 0"
    )


def test_three_are_too_few_to_compare() -> None:
    assert found({("n0", PORTS[0], ""): 500}, 3, ports=1) == []


def test_few_events_and_what_many_have_do_not_stand_out() -> None:
    everywhere = {(node, port, ""): 40 for node in names(8) for port in PORTS}
    for counts in (
        {HERE: 9},
        everywhere,
        everywhere | {HERE: 200},
        {place: count for place, count in everywhere.items() if place[1] in PORTS[:2]},  # the switches of two rails
        {place: count for place, count in everywhere.items() if place[0] in ("n0", "n1")},
    ):
        assert found(counts, 8) == []


def test_a_port_that_is_like_that_on_all_nodes_does_not_stand_out_among_other_ports() -> None:
    assert found({(node, PORTS[7], ""): 900 for node in names(4)}, 4) == []


def test_one_bad_port_does_not_hide_another() -> None:
    bad = [HERE, ("n9", PORTS[0], ""), ("n20", PORTS[1], "")]
    assert [one.place for one in found(dict.fromkeys(bad, 500), 64)] == bad


def test_nodes_are_compared_by_the_day_and_a_node_that_has_just_started_is_not_accused_for_its_start() -> None:
    at_start = {(node, port, ""): 50 for node in names(8) for port in PORTS}
    assert found(at_start, 8, days={"n0": 0.01}) == []
    old = {HERE: 500} | {(node, port, ""): 40 for node in names(8)[1:] for port in PORTS}
    assert found(old, 8, days={"n0": 300.0}) == []
    assert len(found({HERE: 500}, 8, days={"n0": 300.0})) == 1
    assert found({HERE: 500}, 8, days={"n0": 0.0})[0].line("errors") == (
        "mlx5_3:1 counted 500 errors in 0 s (12000 per day); the median of 63 others is 0"
    )


def test_impossible_counts_and_times_break_nothing() -> None:
    for count, days in ((2**64, 12.0), (2**64, 1e300), (2**64, -1e300), (500, 1e300)):
        found({HERE: count, ("n1", PORTS[0], ""): 2**64 - 1}, 8, days={"n0": days, "n1": 1e-300})


def test_how_many_have_counted_nothing_takes_no_memory() -> None:
    series = Series({"recoveries": EVENTS})
    series.add("n0", "GPU 0", {"NVLink 14": {"recoveries": 505}}, 2**40)
    assert [(one.usual, one.others) for one in series.outliers({"n0": 12.0})] == [(0.0, 2**40 - 1)]


@pytest.mark.slow
def test_healthy_clusters_whose_counters_differ_much_have_no_finding() -> None:
    alarms = sum(any(healthy(Random(seed))) for seed in range(1000))  # noqa: S311  the same in each run
    assert alarms <= 10


def healthy(chance: Random) -> Iterator[Outlier]:
    """Yield what is wrongly found in one cluster: counts with a negative binomial distribution of shape 1/2."""
    nodes, mean = chance.choice((1, 2, 4, 8, 16)), 10 ** chance.uniform(-2, 3)  # a day
    days = {node: 10 ** chance.uniform(-1.5, 2.5) for node in names(nodes)}
    series = Series(COUNTERS)
    for node in names(nodes):
        for port in PORTS:
            rates = {counter: chance.gammavariate(0.5, 2 * mean) * days[node] for counter in COUNTERS}
            series.add(node, port, {"": {counter: poisson(rate, chance) for counter, rate in rates.items()}})
    return series.outliers(days)


def poisson(mean: float, chance: Random) -> int:
    if mean > 50:  # as good as the normal distribution
        return max(0, round(chance.gauss(mean, mean**0.5)))
    count, product, limit = 0, chance.random(), exp(-mean)
    while product > limit:
        count, product = count + 1, product * chance.random()
    return count
