"""The verdicts as a matrix of checks and nodes: nodes that are alike share a column, checks that are well a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Outcome
from ncheck.model.report import Report

COLUMNS = 40  # groups of nodes; the others are counted

# What a cell says, the worst first, and its sign.
SIGNS: Mapping[str, str] = {
    "error": "\N{MULTIPLICATION X}", "crashed": "\N{MULTIPLICATION X}", "unknown": "?", "not run": "?", "warning": "!",
    "info": "i", "ignored": "(!)", "skipped": "\N{EN DASH}", "passed": "\N{CHECK MARK}",
}  # fmt: skip
_QUIET = frozenset(("not run", "skipped", "passed"))  # a node that was not reached is a finding, not 200 rows
_ORDER = list(SIGNS)


@dataclass(frozen=True)
class MatrixRow:
    """One check, or all that are passed and skipped alike; a word of SIGNS for each column."""

    checks: tuple[tuple[str, str], ...]  # code and name
    words: tuple[str, ...]


@dataclass(frozen=True)
class CheckMatrix:
    """Columns are groups of nodes; `left_out` is the number of nodes for which there was no room."""

    columns: tuple[tuple[str, ...], ...]
    rows: tuple[MatrixRow, ...]
    left_out: int

    @property
    def signs(self) -> dict[str, str]:
        """The words that occur, the worst first, with their signs."""
        there = {word for row in self.rows for word in row.words}
        return {word: sign for word, sign in SIGNS.items() if word in there}


def check_matrix(report: Report, most: int = COLUMNS) -> CheckMatrix:
    """Return the matrix, rows with the worst first."""
    names = {verdict.code: verdict.check for verdict in report.verdicts}
    words: dict[str, dict[str, str]] = {node.name: {} for node in report.nodes}
    for node, code, word in _words(report):
        words[node][code] = word
    alike: dict[tuple[str, ...], list[str]] = {}
    for node, held in words.items():
        alike.setdefault(tuple(held.get(code, "not run") for code in names), []).append(node)
    groups = sorted(alike, key=_urgency)[:most]
    groups = [group for group in alike if group in set(groups)]  # in the order of the list
    rows = _rows(names, groups)
    left_out = len(report.nodes) - sum(len(alike[group]) for group in groups)
    return CheckMatrix(tuple(tuple(alike[group]) for group in groups), rows, left_out)


def _rows(names: Mapping[str, str], groups: Sequence[tuple[str, ...]]) -> tuple[MatrixRow, ...]:
    single, folded = [], dict[tuple[str, ...], list[tuple[str, str]]]()
    for place, check in enumerate(names.items()):
        words = tuple(group[place] for group in groups)
        if _QUIET.issuperset(words):
            folded.setdefault(words, []).append(check)
        else:
            single.append(MatrixRow((check,), words))
    single.sort(key=lambda row: _urgency(row.words))
    return (*single, *(MatrixRow(tuple(checks), words) for words, checks in folded.items()))


def _urgency(words: Iterable[str]) -> list[int]:
    return sorted(_ORDER.index(word) for word in words)


def _words(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield node, code, and what the verdict is for people: a failed one by its finding, an unknown one by the node."""
    found: dict[tuple[str, str], set[str]] = {}
    for finding in report.findings:
        word = "ignored" if finding.ignored else finding.severity.value
        for node in finding.nodes:
            found.setdefault((finding.code, node), set()).add(word)
    lost = {node.name for node in report.nodes if not node.examined}
    for verdict in report.verdicts:
        for node in verdict.nodes:
            word = verdict.outcome.value
            if verdict.outcome is Outcome.FAILED:
                word = min(found.get((verdict.code, node), {"error"}), key=_ORDER.index)
            elif verdict.outcome is Outcome.UNKNOWN and node in lost:
                word = "not run"
            yield node, verdict.code, word
