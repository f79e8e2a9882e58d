"""NC641: a network file system that hangs, whoever uses it."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.storage import MountState
from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.host.network_mount_hangs import network_mount_hangs

from .storage import DATA, NFS, messages, named, node, outcomes

OTHER = replace(NFS, point="/archive", source="fs09:/archive")


def test_each_mount_that_hangs_or_is_dead_is_named() -> None:
    sick = node(mounts=(MountState(OTHER, hangs=True), MountState(NFS, error="Stale file handle", code="ESTALE")))
    assert messages(judge([network_mount_hangs], named(sick, node(mounts=(MountState(OTHER),))))) == {
        "/archive (nfs4 from fs09:/archive) does not answer": ("n1",),
        "/data (nfs4 from fs01:/data) fails: Stale file handle": ("n1",),
    }


def test_mounts_of_one_server_are_one_finding() -> None:
    mounts = tuple(MountState(replace(OTHER, point=f"/a{number}"), hangs=True) for number in range(3))
    assert messages(judge([network_mount_hangs], named(node(mounts=mounts)))) == {
        "/a0 (nfs4 from fs09:/archive) does not answer, and 2 more from there": ("n1",)
    }


def test_it_is_silent_about_mounts_of_the_job_and_about_those_that_refuse_this_user() -> None:
    jobs = node(replace(DATA, hangs=True), mounts=(MountState(NFS, hangs=True),))
    pods = node(mounts=(MountState(OTHER, error="Permission denied", code="EACCES"),))
    assert outcomes(judge([network_mount_hangs], named(jobs, pods, node()))) == [Outcome.PASSED] * 3
