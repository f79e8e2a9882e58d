"""Jobs that ended, and the link that counts errors in those that fail. bench/links.py has more histories."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ncheck.history.entry import ERRORS, JOB, LINKS, Entry, Figure, Kept
from ncheck.history.jobs import job_of, suspects_in
from ncheck.history.lemons import JobNote, Suspect, suspects
from ncheck.history.past import past_of
from ncheck.history.show import tables
from ncheck.history.store import Span

BAD = ("n07", "mlx5_5:1")


def kept(node: str, boot: str, **counters: int) -> tuple[Kept, ...]:
    named = (Kept(node, "counter", f"{name}:1 symbol_error", str(count), "ports") for name, count in counters.items())
    return (Kept(node, "boot", "", boot), Kept(node, "counted", "ports", "8"), *named)


def test_a_job_is_noted_with_what_each_link_counted_since_the_run_before() -> None:
    spans = tuple(
        Span(one, first, last)
        for own, first, last in (
            (kept("n1", "b1", mlx5_0=1), 1, 1),  # long over
            (kept("n1", "b1", mlx5_0=3, mlx5_1=9), 1, 2),
            (kept("n2", "b2", mlx5_0=70), 1, 2),
            ((Kept("n1", "counted", "gpus", "4"),), 1, 2),
            (kept("n3", "b4", mlx5_0=7), 1, 1),
            (kept("n3", "b4")[:1], 1, 2),  # its last run read no counters
        )
        for one in own
    )
    now = (
        *kept("n1", "b1", mlx5_0=13, mlx5_1=9, mlx5_2=5), *kept("n2", "b9", mlx5_0=7), *kept("new", "b3", mlx5_0=40),
        Kept("n1", "counted", "gpus", "4"), Kept("n1", "counter", "0000:5a:00.0 ecc", "1", "gpus"),
        *kept("n3", "b4", mlx5_0=9),
    )  # fmt: skip
    run = Entry(3, "check", "head", "1", 0, kept=now)
    job = job_of(run, spans, 137)
    assert job == Entry(
        3, JOB, "head", "1", 137,
        figures=(
            Figure(("n1", "n2"), "", LINKS, 20.0, "job"),
            Figure(("n1",), "mlx5_0:1", ERRORS, 10.0, "job"),
            Figure(("n2",), "mlx5_0:1", ERRORS, 7.0, "job"),  # it was started anew
            Figure(("n1",), "mlx5_2:1", ERRORS, 5.0, "job"),
            Figure(("n1",), "0000:5a:00.0", ERRORS, 1.0, "job"),
        ),
    )  # fmt: skip
    assert job_of(run, (), 0) is None  # nothing to compare with


def test_a_note_is_no_examination_and_no_failure_of_a_node() -> None:
    run = Entry(1, "check", nodes={"good": ("n1",)})
    job = Entry(1, JOB, exit_code=1, figures=(Figure(("n1",), "", LINKS, 8.0, "job"),))
    assert past_of([run, job], ()) == replace(past_of([run], ()), jobs=(job,))


def test_the_link_that_counts_in_jobs_that_fail_is_a_suspect_with_numbers() -> None:
    every = Figure(("n06", "n07"), "", LINKS, 16.0, "job")
    quiet = [Entry(at, JOB, exit_code=0, figures=(every,)) for at in range(56)]
    counted = Figure(("n07",), BAD[1], ERRORS, 9.0, "job")
    bad = [Entry(at, JOB, exit_code=1, figures=(every, counted)) for at in range(56, 60)]
    (found,) = suspects_in([*quiet, *bad])
    share = 5 / 62
    assert found == Suspect(BAD, 4, 4, 60, share, found.chance, stands_out=True)
    assert abs(found.chance - share**4) < 1e-12
    assert [one.stands_out for one in suspects_in([*quiet, *bad[:2]])] == [False]


def test_the_history_shows_suspects_with_their_numbers_and_what_is_slower() -> None:
    every, counted = Figure(("n06", "n07"), "", LINKS, 16.0, "job"), Figure(("n07",), BAD[1], ERRORS, 9.0, "job")
    jobs = [Entry(at, JOB, exit_code=int(at > 55), figures=(every, counted)[: 1 + (at > 55)]) for at in range(60)]
    bandwidths = [
        Entry(at, "check", nodes={"good": ("n06",)}, figures=(Figure(("n06", "n07"), "", "all", value, "GB/s"),))
        for at, value in enumerate([*[100.0] * 9, 80.0])
    ]
    shown = {table.title: table.rows for table in tables(past_of([*jobs, *bandwidths], ()), frozenset())}
    assert shown["Jobs"][0] == ("1970-01-01 00:00", "n[06-07]", "1", "", "n07 mlx5_5:1 9")
    assert shown["Links that counted errors in jobs that failed"] == (
        ("n07", "mlx5_5:1", "4 of 4", "60", "8 %", "4e-05", "suspect"),
    )
    ((nodes, *how, _, meanwhile),) = shown["Slower than before"]
    assert (nodes, how, meanwhile) == (
        "n[06-07]",
        ["all", "80 GB/s, 20 % under the median of the 9 runs before"],
        "nothing that the history keeps changed",
    )


def test_where_many_links_count_none_is_to_blame() -> None:
    grown = {("n07", f"mlx5_{link}:1"): 5 for link in range(8)}
    failed, good = JobNote(failed=True, nodes=("n07",), grown=grown), JobNote(failed=False, nodes=("n07",), grown={})
    assert suspects([*[failed] * 9, *[good] * 90], 8) == ()


def test_a_link_that_spoils_one_job_in_twenty_comes_first_and_a_good_one_is_not_suspected() -> None:
    """64 nodes with 8 links, in jobs on 12 of them; sixty of the jobs use the bad link, and it spoils three."""
    first = wrong = 0
    for seed in range(20):
        random, jobs = Random(seed), list[JobNote]()  # noqa: S311
        for number in range(330):
            nodes = tuple(f"n{node:02}" for node in random.sample(range(64), 12))
            links = [(node, f"mlx5_{link}:1") for node in nodes for link in range(8)]
            grown = dict.fromkeys(random.sample(links, random.choice((0, 0, 0, 0, 1))), 1)
            jobs.append(JobNote(failed=number % 20 == 0, nodes=nodes, grown=grown))
        wrong += any(one.stands_out for one in suspects(jobs, 512))
        uses = [at for at, job in enumerate(jobs) if BAD[0] in job.nodes][:60]
        for at in uses[4::20]:
            jobs[at] = JobNote(failed=True, nodes=jobs[at].nodes, grown={**jobs[at].grown, BAD: 50})
        first += BAD in [one.link for one in suspects(jobs, 512)[:3]]
    assert (first, wrong) == (20, 0)
