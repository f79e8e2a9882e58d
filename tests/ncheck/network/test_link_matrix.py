"""The folding of ways, held on many matrices made by chance: all is told, once, truly, and of nobody without cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from time import process_time

import pytest
from ncheck.network.link_matrix import Fold, Path, Shape, folded

Matrix = tuple[tuple[str, ...], frozenset[Path], frozenset[Path]]
ALONE = (Shape.NOBODY, Shape.CUT_OFF, Shape.UNREACHED, Shape.MUTE)


def matrices(size: int) -> Iterator[Matrix]:
    """Yield matrices of so many nodes: single ways, sick nodes and parts that are cut from each other, by chance."""
    chance = Random(size)  # noqa: S311  the same matrices in every run
    names = tuple(f"n{number:02d}" for number in range(size))
    every = [(one, other) for one in names for other in names if one != other]
    for _ in range(150):
        broken = {way for way in every if chance.random() < chance.choice((0, 0, 0.02, 0.1, 0.5, 1))}
        for node in chance.sample(names, chance.randint(0, 2)):
            ends = chance.choice(((0,), (1,), (0, 1)))
            broken |= {way for way in every if any(way[end] == node for end in ends)}
        side = set(chance.sample(names, chance.randint(0, size // 2)))
        broken |= {way for way in every if len(side & set(way)) == 1}
        dark = {way for way in every if chance.random() < chance.choice((0, 0, 0, 0.1, 0.5))}
        yield names, frozenset(broken - dark), frozenset(set(every) - broken - dark)


def true(fold: Fold, broken: frozenset[Path], good: frozenset[Path]) -> bool:
    """Tell whether the sentence is true of the matrix."""
    left, right = set(fold.left), set(fold.right)
    across = {(one, other) for one in left for other in right}
    back = {way[::-1] for way in across}
    return {
        Shape.NOBODY: not good,
        Shape.CUT_OFF: not any(left & set(way) for way in good),
        Shape.UNREACHED: not any(way[1] in left for way in good),
        Shape.MUTE: not any(way[0] in left for way in good),
        Shape.PARTS: across | back <= broken,
        Shape.ONE_WAY: across <= broken and back <= good,
        Shape.FORTH: across <= broken,
    }[fold.shape]


@pytest.mark.parametrize("size", range(2, 13))
def test_every_broken_path_is_in_exactly_one_true_statement(size: int) -> None:
    for names, broken, good in matrices(size):
        folds = folded(names, broken, good)
        covered = Counter(way for fold in folds for way in fold.paths)
        assert covered == Counter(broken)
        for fold in folds:
            ends = {name for way in fold.paths for name in way}
            assert true(fold, broken, good), fold
            assert set(fold.left) | set(fold.right) <= ends, fold
            assert fold.blamed, fold
            assert set(fold.blamed) <= set(fold.left) | set(fold.right), fold
            assert bool(fold.right) != (fold.shape in ALONE), fold


@pytest.mark.parametrize("size", range(3, 13))
def test_one_sick_node_is_singled_out_whatever_its_place(size: int) -> None:
    names = tuple(f"n{number:02d}" for number in range(size))
    every = frozenset((one, other) for one in names for other in names if one != other)
    for sick in names:
        into = frozenset(way for way in every if way[1] == sick)
        out = frozenset(way for way in every if way[0] == sick)
        for broken, shape in ((into, Shape.UNREACHED), (out, Shape.MUTE), (into | out, Shape.CUT_OFF)):
            assert folded(names, broken, every - broken) == (Fold(shape, (sick,), (), broken, (sick,)),)


@pytest.mark.parametrize("size", range(2, 13))
def test_no_sentence_blames_one_side_of_a_tie(size: int) -> None:
    names = tuple(f"n{number:02d}" for number in range(size))
    every = frozenset((one, other) for one in names for other in names if one != other)
    pair = frozenset({(names[0], names[-1]), (names[-1], names[0])})
    assert [fold.blamed for fold in folded(names, pair, every - pair)] == [(names[0], names[-1])]
    half = names[: size // 2]
    across = frozenset(way for way in every if len(set(half) & set(way)) == 1)
    blamed = {name for fold in folded(names, across, every - across) for name in fold.blamed}
    assert blamed == (set(names) if size % 2 == 0 else set(half))


def test_it_is_silent_if_nothing_is_broken() -> None:
    assert folded(("a", "b"), frozenset(), frozenset({("a", "b"), ("b", "a")})) == ()


def test_parts_are_reported_smallest_first_each_against_the_rest() -> None:
    names = tuple("abcdef")
    parts = ({"a", "b", "c"}, {"d", "e"}, {"f"})
    of = {name: number for number, part in enumerate(parts) for name in part}
    every = frozenset((one, other) for one in names for other in names if one != other)
    broken = frozenset(way for way in every if of[way[0]] != of[way[1]])
    assert [(fold.shape, fold.left, fold.right, fold.blamed) for fold in folded(names, broken, every - broken)] == [
        (Shape.CUT_OFF, ("f",), (), ("f",)),
        (Shape.PARTS, ("d", "e"), ("a", "b", "c"), ("d", "e")),
    ]


def test_a_node_that_fails_with_most_others_is_blamed_and_one_that_fails_with_few_is_not() -> None:
    names = tuple("abcdefg")
    every = frozenset((one, other) for one in names for other in names if one != other)
    for partners, blamed in (("bc", ("a", "b", "c")), ("bcde", ("a",))):
        broken = frozenset(way for way in every if "a" in way and set(way) & set(partners))
        (fold,) = folded(names, broken, every - broken)
        assert (fold.shape, fold.left, fold.right, fold.blamed) == (Shape.PARTS, ("a",), tuple(partners), blamed)


def test_a_single_known_path_blames_neither_end() -> None:
    (fold,) = folded(tuple("abc"), frozenset({("a", "b")}), frozenset({("b", "c"), ("c", "b")}))
    assert (fold.shape, fold.blamed) == (Shape.FORTH, ("a", "b"))


def test_five_hundred_nodes_of_which_fifty_are_cut_off_take_no_long_time() -> None:
    names = tuple(f"n{number:03d}" for number in range(500))
    sick = set(names[::10])
    every = [(one, other) for one in names for other in names if one != other]
    broken = frozenset(way for way in every if sick.intersection(way))
    began = process_time()
    folds = folded(names, broken, frozenset(every) - broken)
    assert process_time() - began < 5.0  # seconds; it is a fifth of one, and was sixteen when each name cost all ways
    assert [(fold.shape, fold.left) for fold in folds] == [(Shape.CUT_OFF, (name,)) for name in names[::10]]
