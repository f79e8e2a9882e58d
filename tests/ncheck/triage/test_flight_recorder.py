"""What the dumps of all ranks say together: whoever is at fault, the first rank too, whichever dumps are missing."""

from __future__ import annotations

from typing import Any

import pytest
from ncheck.triage.causes import CAUSES
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.flight_recorder import analyse
from ncheck.triage.parse.flight_recorder import Dump, read

from tests.ncheck.triage.dumps import Entry, call, dump, gloo, pickled, steps, transfer, value

SIZE = 4
Row = tuple[str, Grade, tuple[int, ...], str]


def waiting(number: int = 5, size: int = SIZE, state: str = "started") -> Dump:
    """Return the dump of a rank that waits in all-reduce `number`."""
    return dump(steps(number, state), size)


def behind(number: int = 4, size: int = SIZE) -> Dump:
    """Return the dump of a rank that completed `number` all-reduces and called no more."""
    return dump(steps(number), size)


def rows(clues: list[Clue]) -> list[Row]:
    assert all(clue.source == "flight-recorder" and clue.still for clue in clues)
    assert all({clue.cause, *clue.others} <= set(CAUSES) for clue in clues)
    return [(clue.cause, clue.grade, clue.ranks, clue.text) for clue in clues]


def said(dumps: dict[int, Dump], **words: object) -> list[Row]:
    return rows(list(analyse(dumps, **words)))  # type: ignore[arg-type]


AT = ", called at train.py:41 in step"
WAITED = f"in all_reduce of 1024 Float (number 5 of the default group){AT}"


@pytest.mark.parametrize("culprit", range(SIZE))
def test_a_rank_that_never_came_is_named_whichever_it_is(culprit: int) -> None:
    dumps = {rank: behind() if rank == culprit else waiting() for rank in range(SIZE)}
    ((cause, grade, ranks, text),) = said(dumps)
    assert (cause, grade, ranks) == ("slow_rank_timeout", Grade.LIKELY, (culprit,))
    assert text.startswith(f"rank {culprit} never called it, and ranks ")
    last = "all_reduce of 1024 Float (number 4), called at train.py:41 in step"
    assert text.endswith(f"wait {WAITED}; the last call of rank {culprit} is {last}")


def test_a_healthy_group_says_nothing() -> None:
    assert said({rank: behind() for rank in range(SIZE)}) == []
    assert said({}) == []


def test_of_two_ranks_the_one_that_waits_for_nobody_is_the_one_to_look_at() -> None:
    ((cause, grade, ranks, _),) = said({0: behind(size=2), 1: waiting(size=2)})
    assert (cause, grade, ranks) == ("slow_rank_timeout", Grade.LIKELY, (0,))


def test_where_most_never_came_the_few_that_ran_ahead_are_named_with_doubt() -> None:
    assert said({0: waiting(), **{rank: behind() for rank in (1, 2, 3)}}) == [
        (
            "collective_mismatch", Grade.POSSIBLE, (0,),
            f"rank 0 waits {WAITED}; the other ranks never called it: ranks 1 to 3",
        )
    ]  # fmt: skip


def test_a_rank_without_a_dump_is_evidence() -> None:
    dumps = {rank: waiting() for rank in (1, 2, 3)}
    assert said(dumps) == [
        (
            "rank_crashed", Grade.LIKELY, (0,),
            f"rank 0 wrote no dump: it ended, or hangs where torch cannot answer; ranks 1 to 3 wait {WAITED}",
        )
    ]  # fmt: skip
    ((cause, grade, ranks, text),) = said(dumps, alive=(0, 1, 2, 3))
    assert (cause, grade, ranks) == ("slow_rank_timeout", Grade.LIKELY, (0,))
    assert text.startswith("rank 0 wrote no dump: it hangs where torch cannot answer, or holds the GIL; ")


def test_a_dump_that_could_not_be_read_accuses_nobody() -> None:
    ((cause, grade, ranks, text),) = said({rank: waiting() for rank in (1, 2, 3)}, unread=(0,))
    assert (cause, grade, ranks) == ("slow_rank_timeout", Grade.ECHO, ())
    assert text == f"ranks 1 to 3 wait {WAITED}; the dump of rank 0 is not whole, so it may not have come"


def test_where_most_dumps_are_missing_nobody_is_accused() -> None:
    ((cause, grade, ranks, text),) = said({3: waiting()})
    assert (cause, grade, ranks) == ("slow_rank_timeout", Grade.ECHO, ())
    assert text == f"rank 3 waits {WAITED}; ranks 0 to 2 wrote no dump, so the missing rank is unknown"


def test_of_missing_dumps_and_a_rank_that_is_behind_both_are_possible() -> None:
    clues = said({0: behind(), 2: waiting(), 3: waiting()})
    assert [row[:3] for row in clues] == [
        ("slow_rank_timeout", Grade.POSSIBLE, (0,)), ("rank_crashed", Grade.POSSIBLE, (1,)),
    ]  # fmt: skip


def test_a_dump_that_is_cut_before_the_others_wait_is_not_accused() -> None:
    whole = pickled(value(steps(5, "started"), SIZE))
    cut = read(whole[: len(whole) * 2 // 3])
    assert isinstance(cut, Dump)
    clues = said({0: cut, **{rank: waiting() for rank in (1, 2, 3)}})
    assert [row[:3] for row in clues] == [("slow_rank_timeout", Grade.ECHO, ()), ("rank_crashed", Grade.ECHO, ())]
    assert clues[1][3] == (
        "the dump of rank 0 ends in the middle: the rank ended, or the disk was full, while it was written"
    )


def test_another_collective_under_the_same_number_is_certain_and_names_the_few() -> None:
    other = dump([*steps(4), call(5, "broadcast", "started", count=6)], SIZE)
    assert said({0: other, **{rank: waiting() for rank in (1, 2, 3)}}) == [
        (
            "collective_mismatch", Grade.CERTAIN, (0,),
            ("number 5 of the default group is not the same on all ranks: ranks 1 to 3 called all_reduce of 1024 "
             f"Float{AT}; rank 0 called broadcast of 6 Float{AT}"),
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words", [{"count": 512}, {"input_dtypes": ["Half"]}, {"name": "reduce_scatter"}], ids=["size", "type", "name"]
)
def test_a_size_a_type_or_a_name_that_differs_is_a_mismatch(words: Entry) -> None:
    odd = dump([*steps(4), call(5, **{"state": "started", **words})], SIZE)
    ((cause, grade, ranks, _),) = said({2: odd, **{rank: waiting() for rank in (0, 1, 3)}})
    assert (cause, grade, ranks) == ("collective_mismatch", Grade.CERTAIN, (2,))


def test_a_tie_names_both_sides_and_blames_none() -> None:
    odd = dump([*steps(4), call(5, "broadcast", "started")], 2)
    ((cause, grade, ranks, text),) = said({0: odd, 1: waiting(size=2)})
    assert (cause, grade, ranks) == ("collective_mismatch", Grade.CERTAIN, ())
    assert "rank 0 called broadcast" in text
    assert "rank 1 called all_reduce" in text


def test_a_rank_that_left_out_one_call_is_said_to_have_done_so() -> None:
    most = dump([call(1), call(2, "broadcast"), call(3, "barrier", "started", input_sizes=[])], SIZE)
    few = dump([call(1), call(2, "barrier", "started", input_sizes=[])], SIZE)
    ((_, grade, ranks, text),) = said({0: few, 1: most, 2: most, 3: most})
    assert (grade, ranks) == (Grade.CERTAIN, (0,))
    assert text.endswith("as if rank 0 had left out one call")
    ((_, _, ranks, text),) = said({0: most, 1: few, 2: few, 3: few})
    assert ranks == (0,)
    assert text.endswith("as if rank 0 had made one call more")


def test_what_differs_by_right_is_no_mismatch() -> None:
    for name in ("all_to_all", "all_to_all_single", "barrier"):
        made = {rank: dump([call(1, name, count=rank + 1)], SIZE) for rank in range(SIZE)}
        assert said(made) == []
    rooted = {rank: dump([call(1, "_broadcast_oop" if rank else "broadcast")], SIZE) for rank in range(SIZE)}
    assert said(rooted) == []
    shapes = {rank: dump([call(1, input_sizes=[[8, 128]] if rank else [[1024]])], SIZE) for rank in range(SIZE)}
    assert said(shapes) == []


def test_all_have_started_and_none_completed_points_to_the_network() -> None:
    ((cause, grade, ranks, text),) = said({rank: waiting() for rank in range(SIZE)})
    assert (cause, grade, ranks) == ("network_stalled", Grade.LIKELY, ())
    assert text == (
        "all 4 ranks started all_reduce of 1024 Float (number 5 of the default group), called at train.py:41 in step, "
        "and none completed it"
    )


def test_one_whose_gpu_has_not_begun_still_does_earlier_work() -> None:
    dumps = {rank: waiting(state="started" if rank else "scheduled") for rank in range(SIZE)}
    ((cause, grade, ranks, _),) = said(dumps)
    assert (cause, grade, ranks) == ("slow_rank_timeout", Grade.POSSIBLE, (0,))


def test_completed_on_most_and_not_on_few_names_the_few() -> None:
    dumps = {rank: behind(5) if rank else waiting() for rank in range(SIZE)}
    ((cause, grade, ranks, text),) = said(dumps)
    assert (cause, grade, ranks) == ("network_stalled", Grade.POSSIBLE, (0,))
    assert text == (
        "ranks 1 to 3 completed all_reduce of 1024 Float (number 5 of the default group), and rank 0 did not"
    )


def test_the_same_call_from_another_line_is_a_possible_mismatch() -> None:
    elsewhere = [{"name": "evaluate", "filename": "/home/ada/eval.py", "line": 7}]
    odd = dump([*steps(4), call(5, state="started", frames=elsewhere)], SIZE)
    clues = said({0: odd, **{rank: waiting() for rank in (1, 2, 3)}})
    assert [row[:3] for row in clues] == [
        ("collective_mismatch", Grade.POSSIBLE, (0,)), ("network_stalled", Grade.LIKELY, ()),
    ]  # fmt: skip
    assert clues[0][3].endswith("ranks 1 to 3 at train.py:41 in step; rank 0 at eval.py:7 in evaluate")


def test_ranks_far_ahead_are_compared_where_the_first_waits() -> None:
    ahead = dump([*steps(50), *(call(number, state="scheduled") for number in range(51, 900))], SIZE)
    ((cause, _, ranks, text),) = said({0: behind(50), 1: ahead, 2: ahead, 3: ahead})
    assert (cause, ranks) == ("slow_rank_timeout", (0,))
    assert "number 51 of the default group" in text


# Several groups

PAIRS = {"1": [0, 1], "2": [2, 3], "3": [0, 2]}
CONFIG = {
    "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
    **{name: {"name": name, "desc": "tp", "ranks": str(ranks)} for name, ranks in PAIRS.items()},
}


def grouped(*entries: Entry) -> Dump:
    return dump(entries, pg_config=CONFIG)


def in_group(name: str, number: int, state: str = "completed") -> Entry:
    return call(number, state=state, process_group=(name, "tp"))


def test_a_rank_that_waits_in_another_group_is_not_accused() -> None:
    dumps = {
        0: grouped(call(1), in_group("1", 1, "started")),  # waits for 1, so 2 and 3 wait for it in vain
        1: grouped(call(1)),
        2: grouped(call(1), call(2, state="started")),
        3: grouped(call(1), call(2, state="started")),
    }
    clues = said(dumps)
    assert {ranks for _, _, ranks, _ in clues} == {(1,)}
    assert {cause for cause, *_ in clues} == {"slow_rank_timeout"}


def test_ranks_that_wait_for_each_other_in_two_groups_are_a_circle() -> None:
    dumps = {0: grouped(in_group("1", 1, "started")), 1: grouped(call(1, state="started"))}
    ((cause, grade, ranks, text),) = said({**dumps, 2: dumps[1], 3: dumps[1]})
    assert (cause, grade, ranks) == ("collective_mismatch", Grade.LIKELY, ())
    assert text.startswith("the ranks wait for each other: ")
    assert "group 1 (tp)" in text


def test_gloo_groups_whose_members_are_not_recorded_accuse_only_those_that_were_seen() -> None:
    sub: dict[str, Any] = {"process_group": ("1", "undefined")}
    first, second = dump([gloo(1, **sub)]), dump([gloo(1, **sub), gloo(2, done=False, **sub)])
    ((cause, grade, ranks, _),) = said({0: first, 2: second})
    assert (cause, grade, ranks) == ("slow_rank_timeout", Grade.LIKELY, (0,))
    ((_, grade, ranks, text),) = said({2: second, 3: dump([gloo(1)])}, size=4)
    assert (grade, ranks) == (Grade.ECHO, ())
    assert text.endswith("which other ranks belong to the group is not recorded")


# Sends and receives


def test_a_receive_without_a_send_names_the_sender() -> None:
    receiver = dump([transfer(1, "recv 1<-0", "started")], 2)
    assert said({0: behind(size=2), 1: receiver}) == [
        (
            "slow_rank_timeout", Grade.LIKELY, (0,),
            (f"rank 1 waits to receive from rank 0 (recv of 8 Float, number 1 of the default group{AT}), and rank 0 "
             "has not called the other side of it"),
        )
    ]  # fmt: skip


def test_a_chain_of_receives_names_its_end() -> None:
    dumps = {1: dump([transfer(1, "recv 1<-0", "started")], 3), 2: dump([transfer(1, "recv 2<-1", "started")], 3)}
    ((_, grade, ranks, _),) = said({0: behind(size=3), **dumps})
    assert (grade, ranks) == (Grade.LIKELY, (0,))
    ((cause, grade, ranks, _),) = said(dumps)
    assert (cause, grade, ranks) == ("rank_crashed", Grade.POSSIBLE, (0,))


def test_two_that_both_send_wait_for_each_other() -> None:
    dumps = {0: dump([transfer(1, "send 0->1", "started")], 2), 1: dump([transfer(1, "send 1->0", "started")], 2)}
    ((cause, grade, ranks, text),) = said(dumps)
    assert (cause, grade, ranks) == ("collective_mismatch", Grade.LIKELY, ())
    assert "rank 0 sends to rank 1" in text


def test_a_send_and_its_receive_that_do_not_end_point_to_the_network() -> None:
    dumps = {0: dump([transfer(1, "send 0->1", "started")], 2), 1: dump([transfer(1, "recv 1<-0", "started")], 2)}
    ((cause, grade, ranks, _),) = said(dumps)
    assert (cause, grade, ranks) == ("network_stalled", Grade.POSSIBLE, ())


def test_a_job_of_1024_ranks_without_the_dump_of_one() -> None:
    whole = waiting(size=1024)
    ((cause, _, ranks, _),) = said({rank: whole for rank in range(1024) if rank != 0})
    assert (cause, ranks) == ("rank_crashed", (0,))
