"""What Horovod was built with: `horovodrun --check-build`."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from ncheck.facts.definition import Fact, exempt_in_job_unless, trouble
from ncheck.facts.interpreter import INTERPRETER, packages
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.framework_reports import parse_build

WITHOUT_NCCL = "Horovod without NCCL"  # what horovod-lacks-nccl explains: that a build differs from the others


@dataclass(frozen=True)
class HorovodFacts:
    """`horovodrun --check-build`: each set holds the names marked [X]."""

    version: str
    frameworks: frozenset[str]
    controllers: frozenset[str]
    operations: frozenset[str]

    def to_install(self, *, with_nccl: bool) -> str:
        """Return the command that builds this version."""
        operations = "HOROVOD_GPU_OPERATIONS=NCCL " if with_nccl else ""
        wanted = quote(f"horovod=={self.version}")
        return f"{operations}python3 -m pip install --no-cache-dir --force-reinstall {wanted}"


# It imports every framework that it was built with: seconds each with a cold page cache.
CHECK_BUILD = Command(("horovodrun", "--check-build"), timeout=30.0, job=True, slow=True)
_FIX = "horovodrun --check-build"


def horovod(evidence: Evidence) -> Read[HorovodFacts]:
    """Read the build; a crash while it probes is Unread, even if the version was printed before."""
    reply = evidence.reply(CHECK_BUILD)
    installed = packages(evidence).get("horovod")
    if reply.status is Status.MISSING:
        return _without_command(evidence, installed)
    why = trouble(CHECK_BUILD, reply)
    if why and reply.status is not Status.OK:
        return why
    build = parse_build(reply.stdout + "\n" + reply.stderr)
    if why or build.error or build.version is None:
        return Unread(f"horovodrun --check-build failed: {build.error or (why.reason if why else '')}", fix=_FIX)
    return HorovodFacts(build.version, _built(build.frameworks), _built(build.controllers), _built(build.operations))


def _without_command(evidence: Evidence, installed: str | None) -> Unread | Absent:
    unknown = trouble(INTERPRETER, evidence.reply(INTERPRETER))
    if isinstance(unknown, Unread):
        return Unread(f"horovodrun was not found, and whether Horovod is installed is unknown: {unknown.reason}")
    if installed:
        reason = f"Horovod {installed} is installed, but horovodrun is not on the PATH of a non-interactive login"
        return Unread(reason, fix="python3 -m horovod.runner.launch --check-build")
    return Absent("Horovod is not installed")


def _built(block: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(name for name, there in block.items() if there)


FACTS = (Fact(HorovodFacts, (CHECK_BUILD, INTERPRETER), horovod, exempt=exempt_in_job_unless("horovodrun")),)
