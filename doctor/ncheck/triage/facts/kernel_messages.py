"""What the kernel of a node has logged lately, with the time since boot: killed processes, links, storage, GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.expression import expression
from ncheck.facts.definition import LOOKING, Fact, sudo_refused, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, Status
from ncheck.model.fact import Read, Unread
from ncheck.model.job import Target
from ncheck.triage.facts.jobs import job_of
from ncheck.triage.facts.processes import ProcessesFacts

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class KernelMessage:
    """One message. `seconds` since boot."""

    seconds: float
    text: str


@dataclass(frozen=True)
class KernelMessagesFacts:
    """The last messages, in their order. `source` is "journalctl -k" or "dmesg"."""

    messages: tuple[KernelMessage, ...]
    source: str


_LINES = 2000

RECENT_JOURNAL = Command(
    ("journalctl", "-k", "-b", "--no-pager", "-o", "short-monotonic", "-n", str(_LINES)), root=True, tail=True
)

RECENT_DMESG = Command(("dmesg", "--kernel"), root=True, tail=True)
_NAMES = {RECENT_JOURNAL: "journalctl -k", RECENT_DMESG: "dmesg"}

# [  913.200000] gpu07 kernel: NVRM: Xid (PCI:0000:91:00): 79, GPU has fallen off the bus.
# [  913.200000] NVRM: Xid (PCI:0000:91:00): 79, GPU has fallen off the bus.
_LINE = expression(r"^\[ {0,12}(\d{1,12}\.\d{1,9})\] (?:[\w.-]{1,253} kernel: )?(\S.*)")
_LONGEST = 500  # characters of a message


def kernel_messages(evidence: Evidence) -> Read[KernelMessagesFacts]:
    """Read the first command that shows messages of the kernel."""
    for command, name in _NAMES.items():
        reply = evidence.reply(command)
        if reply.status is Status.OK and reply.exit_status == 0:
            found = [_LINE.match(line[: 2 * _LONGEST]) for line in reply.stdout.splitlines()[-_LINES:]]
            messages = tuple(KernelMessage(float(hit[1]), hit[2][:_LONGEST]) for hit in found if hit)
            if messages:
                return KernelMessagesFacts(messages, name)
    return _unreadable(evidence)


def _unreadable(evidence: Evidence) -> Unread:
    """Return why: only root can read it on a default machine, unless a command hung or sudo refused."""
    for command in _NAMES:
        reply = evidence.reply(command)
        why = trouble(command, reply)
        if isinstance(why, Unread) and (reply.status in (Status.TIMEOUT, Status.UNANSWERED) or sudo_refused(reply)):
            return why
    return Unread("this user cannot read the kernel log", needs_root=True, fix="sudo journalctl -k -b -n 100")


def _questions(cluster: Cluster, settings: Settings, _: float) -> Questions:
    """Ask the nodes that have ranks, and where a rank is missing all: it may have been on one that has none now."""
    job = job_of(cluster, settings.run.target or Target())
    others = cluster.facts(ProcessesFacts) if job and job.missing else ()
    nodes = dict.fromkeys((*job.nodes, *others)) if job else {}
    return dict.fromkeys(nodes, (RECENT_JOURNAL, RECENT_DMESG))


FACTS = (
    Fact(
        KernelMessagesFacts, (RECENT_JOURNAL, RECENT_DMESG), kernel_messages, phase=LOOKING, needs=(ProcessesFacts,),
        questions=_questions,
    ),
)  # fmt: skip
