"""What the lines of logs say, as clues: one for each cause, the first failure first, without what another explains."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from ncheck.expression import expression
from ncheck.text import printable
from ncheck.triage.across_lines import DETECTORS
from ncheck.triage.causes import CAUSES, SYMPTOM, look_of
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.lines import LogLine
from ncheck.triage.scan import Hit, Scan, ScannedLog, states_error
from ncheck.triage.signature import LineClue

MOST_EVIDENCE = 6
MOST_RANKS = 64
_LONGEST_EVIDENCE = 300


def clues_in(lines: Iterable[str]) -> tuple[Clue, ...]:
    """Return what a log points to, best first; () if no line shows a failure.

    The log may be of one rank or of many, in any order. It is untrusted: it is bounded, and only searched.
    """
    return clues_of(scanned(lines))


def clues_of(scan: Scan) -> tuple[Clue, ...]:
    """Return what all logs of a scan point to together, best first: a clue for each cause.

    Echoes are left out where a line says more.
    """
    found = _without_echoes(_with_victims([*scan.hits, *_hits_across_lines(scan)]))
    hits = _without_explained(_not_outlived(found, scan.logs))
    hits = hits or list(_stuck(scan.logs))
    causes: dict[str, list[Hit]] = {}
    for hit in hits:
        causes.setdefault(hit.clue.cause, []).append(hit)
    clues = tuple(_clue(hits, scan) for hits in _ranked(causes.values()))
    return tuple(clue for clue in clues if not clue.echo) or clues


def clue_of_trouble(line: LogLine) -> Clue:
    """Return the clue of a line that sounds like a failure, and that no signature knows."""
    return Clue(
        "logs", "", Grade.ECHO, "", _numbers((line.rank,)), (line.host,) if line.host else (), fix=SYMPTOM.fix,
        meaning="a line sounds like a failure, and it is none that ncheck knows", looks=(SYMPTOM.look,),
        lines=(_shortened(line),),
    )  # fmt: skip


# n1:77:80 [0] NCCL INFO NVLS Creating Multicast group nranks 8 size 2097152 on rank 0
# n1:77:80 [0] NCCL INFO NVLS comm 0x55d0 headRank 0 nHeads 8 buffSize 4194304 memSize 2097152
# n1:77:80 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
# Using /root/.cache/torch_extensions/py310_cu121 as PyTorch extensions root...
_MECHANISMS = (
    (expression(r"NCCL INFO NVLS (?:Creat|[Bb]ind|[Mm]ap|rank \d|comm 0x|Import)"),
     LineClue("nvls_failure", Grade.POSSIBLE, ("fabric_manager",),
              meaning="the log ends where NCCL sets up NVLink SHARP")),
    (expression(r"NCCL INFO (?:Channel|Ring) .{1,200} via P2P/"),
     LineClue("p2p_acs_iommu", Grade.POSSIBLE, ("p2p_unsupported", "gpu_fault"),
              meaning="the log ends where NCCL sets up transfers between the GPUs of a node")),
    (expression(r"Using \S{1,300} as PyTorch extensions root"),
     LineClue("deadlock", Grade.POSSIBLE, ("slow_rank_timeout", "storage_hang"), kind="lock",
              look="find ~/.cache/torch_extensions -name lock", meaning="the log ends where PyTorch waits for a lock of"
              " its folder of extensions: one that no living process holds was left by an earlier run")),
)  # fmt: skip


def _stuck(logs: Iterable[ScannedLog]) -> Iterator[Hit]:
    """Yield the last lines of logs that end in NCCL's start, at one mechanism: a job that hangs may print no more."""
    logs = list(logs)
    if any(log.last_step or log.started or log.trouble for log in logs):
        return
    for log in logs:
        for pattern, clue in _MECHANISMS:
            if log.last and pattern.search(log.last.text):
                yield Hit(clue, log.last)


def scanned(lines: Iterable[str]) -> Scan:
    """Return a scan of one log: it is read once, whatever is asked of it."""
    scan = Scan()
    scan.read("", _chunks(iter(lines)))
    return scan


def _chunks(lines: Iterator[str]) -> Iterator[bytes]:
    while some := list(islice(lines, 5000)):
        yield ("\n".join(some) + "\n").encode("utf-8", "replace")


def _hits_across_lines(scan: Scan) -> Iterator[Hit]:
    context = scan.context
    for detect in DETECTORS:
        for clue, members in detect(context):
            yield from (Hit(clue, line) for line in members[:MOST_EVIDENCE])


def progress(scan: Scan) -> Grade | None:
    """Return how sure it is that a log's job works: CERTAIN if it finished, POSSIBLE if it ran, None for no sign."""
    (log,) = scan.logs
    if log.done:
        return Grade.CERTAIN
    return Grade.POSSIBLE if log.last_progress or log.connected else None


def trouble_at_the_end(scan: Scan) -> str:
    """Return the line that sounds like a failure after the last sign of progress, or in it; "" if there is none."""
    (log,) = scan.logs
    return _shortened(log.trouble).text if log.trouble else ""


def _shortened(line: LogLine) -> LogLine:
    """Return a line as evidence: its text printable and bounded."""
    return replace(line, text=printable(line.text.strip(), _LONGEST_EVIDENCE))


def _numbers(ranks: Iterable[str]) -> tuple[int, ...]:
    """Return ranks as numbers, each once. What a log calls a rank need not be one."""
    return tuple(dict.fromkeys(int(rank) for rank in ranks if rank.isdecimal()))[:MOST_RANKS]


def _with_victims(hits: list[Hit]) -> list[Hit]:
    """Return the hits with the rank and the node that a launcher names in the line above the signal or exit code.

    =   RANK 3 PID 4021 RUNNING AT node03
    =   KILLED BY SIGNAL: 9 (Killed)
    """
    named = {hit.line.order: hit.clue for hit in hits if hit.clue.grade is Grade.ECHO and
             (hit.clue.rank or hit.clue.node)}  # fmt: skip

    def whole(hit: Hit) -> Hit:
        log, number = hit.line.order
        victim = named.get((log, number - 1))
        if victim is None or hit.clue.kind not in _ENDED or hit.clue.rank or hit.clue.node:
            return hit
        return replace(hit, clue=replace(hit.clue, rank=victim.rank, node=victim.node))

    return [whole(hit) for hit in hits]


_ENDED = ("killed", "segfault")
_JUST_BEFORE = 40  # lines: a traceback is between an error and the exception that it caused
_RAISED = ("exception", "assertion")


def _without_echoes(hits: list[Hit]) -> list[Hit]:
    """Return the hits, with exceptions as consequences of a known error that a line states just before them."""
    errors: dict[int, list[int]] = {}
    for hit in hits:
        clue = hit.clue
        own = clue.cause and not clue.context and clue.grade > Grade.ECHO and clue.kind not in _RAISED
        if own and states_error(hit.line.text):
            errors.setdefault(hit.line.order[0], []).append(hit.line.number)

    def whole(hit: Hit) -> Hit:
        if hit.clue.kind not in _RAISED or not hit.clue.fallback:
            return hit
        before = (hit.line.number - number for number in errors.get(hit.line.order[0], ()))
        echo = any(0 < distance <= _JUST_BEFORE for distance in before)
        return replace(hit, clue=replace(hit.clue, grade=Grade.ECHO)) if echo else hit

    return [whole(hit) for hit in hits]


def _not_outlived(hits: list[Hit], logs: list[ScannedLog]) -> list[Hit]:
    """Return the hits after which the job of their log did not go on or finish."""
    kept: list[Hit] = []
    by_log: dict[int, list[Hit]] = {}
    for hit in hits:
        by_log.setdefault(hit.line.order[0], []).append(hit)
    for index, own in by_log.items():
        log = logs[index]
        if log.done and all(hit.line.number < log.done or hit.clue.passing or hit.clue.context for hit in own):
            continue
        kept += [
            hit
            for hit in own
            if not (hit.clue.passing and _went_on(hit, log)) and not (hit.clue.lasting and _trains(hit, logs))
        ]
    return kept


def _trains(hit: Hit, logs: list[ScannedLog]) -> bool:
    """Return whether the job made steps after a line: as a rule one rank alone reports them, perhaps in its own log."""
    own = hit.line.order[0]
    return any(log.last_step > (hit.line.number if log.index == own else 0) for log in logs)


def _went_on(hit: Hit, log: ScannedLog) -> bool:
    """Return whether the job went on after a line.

    After a rank's own failure, other ranks may still print a line or two of progress.
    """
    enough = 3 if hit.clue.kind and not log.done > hit.line.number else 1
    return sum(number > hit.line.number for number in log.last_progress) >= enough


def _without_explained(hits: list[Hit]) -> list[Hit]:
    """Return the hits without those that a context explains, and without contexts that explain nothing."""
    tags = {hit.clue.tag for hit in hits if hit.clue.tag}
    kept = [hit for hit in hits if not hit.clue.context or hit.clue.explains & tags]
    explained = {tag for hit in kept for tag in hit.clue.explains}
    return [hit for hit in kept if hit.clue.tag not in explained and (hit.clue.cause or not hit.clue.context)]


def _ranked(causes: Collection[list[Hit]]) -> list[list[Hit]]:
    """Return the causes in the order of the best hit of each."""
    days = _have_days([hit for hits in causes for hit in hits])
    best = [(min(hits, key=_order(hits, days=days)), hits) for hits in causes]
    order = _order([hit for hit, _ in best], days=days)
    return [hits for _, hits in sorted(best, key=lambda pair: order(pair[0]))]


def _have_days(hits: Iterable[Hit]) -> bool:
    return all(hit.line.moment.day for hit in hits if hit.line.moment)


def _order(hits: Iterable[Hit], *, days: bool) -> Callable[[Hit], tuple[int, tuple[float, ...], tuple[int, int]]]:
    """Return the key of an order: the highest grade first; equal ones by time if all hits have one, else by line."""
    timed = all(hit.line.moment for hit in hits)

    def key(hit: Hit) -> tuple[int, tuple[float, ...], tuple[int, int]]:
        moment = hit.line.moment if timed else None
        time = () if moment is None else (moment.day, moment.seconds) if days else (moment.seconds,)
        return -hit.clue.grade, time, hit.line.order

    return key


def _clue(hits: list[Hit], scan: Scan) -> Clue:
    """Return the clue of all hits of one cause, in the words of the best of them."""
    hits = sorted(hits, key=_order(hits, days=_have_days(hits)))
    best = hits[0].clue
    cause = CAUSES[best.cause] if best.cause else SYMPTOM
    evidence: dict[str, LogLine] = {}
    for hit in hits:
        line = _shortened(hit.line)
        evidence.setdefault(line.text, line)
    failed = [hit for hit in hits if hit.clue.grade is best.grade and hit.clue.kind == best.kind]
    # Who waits, or lost another rank, did not fail itself.
    own = [] if best.grade is Grade.ECHO or best.tag in _WAITING else failed
    naming_rank = {hit.line.order for hit in failed if hit.clue.rank}  # another than that which wrote the line
    naming_node = {hit.line.order for hit in failed if hit.clue.node}
    ranks = [hit.clue.rank for hit in failed] + [
        hit.line.rank or scan.rank_of_process(hit.line) for hit in own if hit.line.order not in naming_rank
    ]
    nodes = [hit.clue.node for hit in failed] + [hit.line.host for hit in own if hit.line.order not in naming_node]
    meaning = best.meaning or cause.meaning
    if best.tag == "waits" and (silent := _silent(scan)):
        meaning += f"; look first at rank {', '.join(silent[:MOST_EVIDENCE])}, which did not time out"
        ranks += silent
    look = best.look or look_of(best.cause, best.kind)
    return Clue(
        "logs", best.cause, best.grade, "", _numbers(ranks), tuple(filter(None, dict.fromkeys(nodes)))[:MOST_RANKS],
        others=best.others, kind=best.kind, meaning=meaning, fix=best.fix or (None if best.look else cause.fix),
        looks=(look,) if look else (), lines=tuple(islice(evidence.values(), MOST_EVIDENCE)), do=best.do,
    )  # fmt: skip


def _silent(scan: Scan) -> list[str]:
    """Return the ranks that did not time out where nearly all others did: those wait for them."""
    silent = [str(rank) for rank in range(scan.world_size) if str(rank) not in scan.timed_out]
    return silent if len(silent) <= scan.world_size // _FEW else []


_FEW = 4  # at most one in so many ranks is late; otherwise their logs are missing
_WAITING = frozenset({"waits", "stall", "store", "gone"})
