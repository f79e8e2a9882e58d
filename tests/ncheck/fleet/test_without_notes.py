"""What nodes need of the text of a module."""

from __future__ import annotations

import subprocess
import sys

import pytest
from ncheck.fleet.without_notes import without_notes

NOTED = '''\
"""What the module
is for."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, NamedTuple

    class Row(NamedTuple):
        name: str

LAST: 'List[int]' = []  # noqa
PROGRAM = """
# of the program
print(1)  # é
"""


class Line:
    """A line, é."""

    read: bool

    def words(
        self,
        # the least
        least: int = 1,
        *others: 'List[str]',
        last: str = "# no comment", **more: int
    ) -> 'List[str]':
        """Return its words."""
        count: int = least
        return count  # -> é


def bare(a, b=lambda c: c):
    return a
'''

SENT = '''\
pass


import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass




LAST = []  # noqa
PROGRAM = """
# of the program
print(1)  # é
"""


class Line:
    pass

    pass

    def words(
        self,

        least = 1,
        *others,
        last = "# no comment", **more
    ) :
        pass
        count = least
        return count  # -> é


def bare(a, b=lambda c: c):
    return a
'''


def test_a_node_is_sent_no_annotations_docstrings_and_comments_and_each_line_keeps_its_number() -> None:
    assert without_notes(NOTED) == SENT
    assert without_notes(SENT) == SENT


ALL_AT_ONCE = """
import gc, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ncheck.agent
from ncheck.fleet.without_notes import without_notes

class Finalized:  # the collector of garbage lets another thread go on in the middle of a parse
    def __init__(self):
        self.cycle = self

    def __del__(self):
        sum(range(50))

def stripped(text):
    for _ in range(20):
        Finalized()
    return without_notes(text)

texts = [path.read_text() for path in Path(ncheck.agent.__file__).parent.rglob("*.py")] * 4
sys.setswitchinterval(1e-6)
gc.set_threshold(5, 2, 2)
with ThreadPoolExecutor(8) as pool:
    print(len(list(pool.map(stripped, texts))) == len(texts))
"""


@pytest.mark.slow
def test_many_nodes_may_be_sent_modules_at_once() -> None:
    assert subprocess.check_output([sys.executable, "-c", ALL_AT_ONCE], text=True) == "True\n"
