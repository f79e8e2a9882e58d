"""Libraries that answer badly, made to order by a compiler here: the child ends in time, and its words are kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import MissingError, nccl_pick
from ncheck.agent.sources import Sources

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler to make libraries with")

VERSION = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int ncclGetVersion(int *version) { *version = 22803; return 0; }
"""
WORDS = 'const char *ncclGetLastError(void *comm) { return "NET/Socket : no luck"; }'

Asked = Callable[..., dict[str, Any]]


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """Return a function that compiles a library and asks the agent what it picks."""

    def answered(code: str, *, timeout: float = 60.0, arguments: object = None, **variables: str) -> dict[str, Any]:
        (tmp_path / "nccl.c").write_text(VERSION + code)
        library = str(tmp_path / "libnccl.so.2")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(tmp_path / "nccl.c")], check=True)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "NCCL_"))}
        sources = Sources({**plain, "LD_LIBRARY_PATH": str(tmp_path), **variables})
        sources.start({"environment": {"python": sys.executable}})
        said: dict[str, Any] = nccl_pick.answer(sources, arguments, timeout)
        return said

    return answered


def test_an_identifier_comes_whole_with_version_and_path_whatever_the_library_prints(
    asked: Asked, tmp_path: Path
) -> None:
    said = asked('int ncclGetUniqueId(char *id) { memset(id, 5, 128); printf("NCCL INFO half a line"); return 0; }')
    assert said == {
        "version": "2.28.3", "path": str(tmp_path / "libnccl.so.2"), "code": 0, "id": "05" * 128, "words": "",
        "rendezvous": "", "asked": {},
    }  # fmt: skip


def test_a_refusal_comes_with_the_librarys_last_words(asked: Asked) -> None:
    said = asked(WORDS + "int ncclGetUniqueId(char *id) { return 2; }")
    assert (said["code"], said["id"], said["words"]) == (2, None, "NET/Socket : no luck")


def test_a_library_before_2_13_4_has_no_last_words_and_names_the_code(asked: Asked) -> None:
    said = asked(
        'const char *ncclGetErrorString(int code) { return code == 5 ? "invalid usage" : "?"; }'
        "int ncclGetUniqueId(char *id) { return 5; }"
    )
    assert (said["code"], said["words"]) == (5, "invalid usage")


@pytest.mark.slow
def test_one_that_hangs_is_ended_in_its_time(asked: Asked) -> None:
    began = time.monotonic()
    said = asked("int ncclGetUniqueId(char *id) { for (;;) sleep(1000); }", timeout=5.0)
    assert re.search(r"NCCL did not answer within [1-5] s which address it picks$", said["error"])
    assert time.monotonic() - began < 60.0


def test_one_that_dies_takes_nobody_with_it(asked: Asked) -> None:
    said = asked("int ncclGetUniqueId(char *id) { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); return 0; }")
    assert said["error"].endswith("(exit status -11)")


def test_one_without_the_function_says_so(asked: Asked) -> None:
    assert "ncclGetUniqueId" in asked("")["error"]


def test_no_library_at_all_is_missing() -> None:
    cached = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    if "libnccl.so" in cached:
        pytest.skip("this machine has an NCCL of its own")
    sources = Sources({"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/nowhere"})
    sources.start({"environment": {"python": sys.executable}})
    with pytest.raises(MissingError):
        nccl_pick.answer(sources, None, 60.0)


SHOW = """
int ncclGetUniqueId(char *id) {
    const char *names[] = {"NCCL_A", "NCCL_B", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE"};
    memset(id, 0, 128);
    for (int i = 0; i < 4; i++) {
        const char *value = getenv(names[i]);
        strcat(strcat(id, value ? value : "-"), " ");
    }
    return 0;
}
"""


def test_variables_are_set_over_the_jobs_or_taken_away_and_no_file_is_named(asked: Asked) -> None:
    plan = {"variables": {"NCCL_A": "1", "NCCL_B": None}, "interfaces": ["eth0"]}
    job = {"NCCL_A": "0", "NCCL_B": "0", "NCCL_DEBUG_FILE": "/x", "NCCL_TOPO_DUMP_FILE": "/y"}
    said = asked(SHOW, arguments=plan, **job)
    assert bytes.fromhex(said["id"]).rstrip(b"\0") == b"1 -  - "
    assert said["asked"] == plan
    assert bytes.fromhex(asked(SHOW, **job)["id"]).rstrip(b"\0") == b"0 0  - "


def test_a_rendezvous_that_the_library_itself_sets_is_told(asked: Asked) -> None:
    said = asked('int ncclGetUniqueId(char *id) { setenv("NCCL_COMM_ID", "10.1.0.1:4444", 0); return 0; }')
    assert said["rendezvous"] == "10.1.0.1:4444"
