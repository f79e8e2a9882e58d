"""Which rank a process is, by the variables of each launcher."""

from __future__ import annotations

from ncheck.hook.launchers import read_rank


def test_a_process_without_a_launcher_is_a_job_of_its_own() -> None:
    rank = read_rank({"PATH": "/usr/bin"})
    assert (rank.rank, rank.size, rank.launcher, rank.job) == (0, 1, "", "")
