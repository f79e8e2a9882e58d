"""What a node is asked only if an option wants it, or only if something is wrong, and was not asked in these runs."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ncheck.facts.code import CODE
from ncheck.facts.lost_peers import LOST, WHY_NOT
from ncheck.facts.packages import PACKAGES
from ncheck.facts.programs import PROGRAMS
from ncheck.facts.prompt import PROMPT
from ncheck.model.evidence import JsonValue, Note, Reply, Status
from ncheck.probe.gpu_test import GPU_TEST

if TYPE_CHECKING:
    from .host import Host


def unasked_replies(host: Host) -> dict[str, Reply | Note]:
    """Return the reason for each of these sources."""
    return {
        CODE.key: _code(host.commit) if host.commit else Note("no folder of code was named: --workdir DIR"),
        LOST.key: Note(WHY_NOT),
        PROGRAMS.key: Note("no command with a full path was given"),
        GPU_TEST.key: Note("--gpu-test none"),
        PACKAGES.key: Note("only with --packages all"),
        PROMPT.key: Reply(Status.MISSING, "the job's Python has a framework"),
    }


def _code(commit: str) -> Reply:
    """Return a clean working copy of this commit: one program."""
    digest = sha256(commit.encode()).hexdigest()
    answer: JsonValue = {
        "folder": "/workspace/train", "exists": True,
        "git": {"commit": commit, "branch": "main", "changed": {}, "error": ""},
        "tree": {"digest": digest, "cut": "", "listed": {"train.py": digest}},
    }  # fmt: skip
    return Reply(Status.OK, value=answer, seconds=0.02)
