"""The jobs that run on the nodes, put together from the processes of all; and how the ranks of one are asked about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.errors import SettingsError
from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.job import Job, Process, RankProcess, Target
from ncheck.rank_variables import LauncherVariablesError, Rank, read_rank
from ncheck.text import printable
from ncheck.triage.facts.processes import ProcessesFacts, is_launcher

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


def ask_of_ranks(
    source: Answer, more: Callable[[Job, str, Settings], Mapping[str, JsonValue] | None] = lambda *_: {}
) -> Callable[[Cluster, Settings, float], Questions]:
    """Return the questions of a fact about the job's ranks: each node that has some is asked about its own.

    The agent gets {"ranks": [{"rank", "pid", "started", "inner_pid", "namespace", "children": [pids]}]} and what
    `more(job, node, settings)` adds; where that is None the node is not asked. A node that has launchers of the job and
    no rank is asked if `more` adds "launchers".
    """

    def questions(cluster: Cluster, settings: Settings, _: float) -> Questions:
        job = job_of(cluster, settings.run.target or Target())
        asked: Questions = {}
        for node in dict.fromkeys((*job.nodes, *job.launchers)) if job else ():
            assert job  # noqa: S101  it has nodes
            added = more(job, node, settings)
            ranks = _arguments(job, node)
            if added is not None and (ranks or added.get("launchers")):
                asked[node] = (replace(source, arguments={"ranks": ranks, **added}),)
        return asked

    return questions


def questions_about(job: Job, source: Answer) -> Questions:
    """Return the same question for each node that has ranks of a job that is known already."""
    return {node: (replace(source, arguments={"ranks": _arguments(job, node)}),) for node in job.nodes}


def _arguments(job: Job, node: str) -> list[JsonValue]:
    return [_argument(one) for one in job.on(node)]


def _argument(one: RankProcess) -> JsonValue:
    return {
        "rank": one.rank, "pid": one.pid, "started": one.process.started, "inner_pid": one.process.inner_pid,
        "namespace": one.process.namespace, "children": [child.pid for child in one.children],
    }  # fmt: skip


class SeveralJobsError(SettingsError):
    """More than one job runs on the nodes, and the target names none of them."""


def job_of(cluster: Cluster, target: Target) -> Job | None:
    """Return the job that is asked about; None if no process of one was found.

    Launchers without any rank are a job only where none with ranks fits: somebody's mpirun that waits is no second job.
    Where no job fits a regular expression, the processes that it matches are one: engines and actors, say.
    Raises SeveralJobsError where the target fits more than one.
    """
    meant = [job for job in jobs_of(cluster) if _is_meant(job, target)]
    chosen = [job for job in meant if job.ranks] or meant or list(_matched(cluster, target.match))
    if len(chosen) > 1:
        listed = "; ".join(_described(job) for job in chosen[:_MOST_LISTED])
        raise SeveralJobsError(
            f"{len(chosen)} jobs run on these nodes: name one by --job NODE:PID or --match REGEX: {listed}"
        )
    return chosen[0] if chosen else None


_MOST_LISTED = 8


def _matched(cluster: Cluster, match: str | None) -> Iterator[Job]:
    """Yield the job of all processes that a regular expression matches: of one and those beneath it the highest."""
    found: list[RankProcess] = []
    for node, facts in cluster.facts(ProcessesFacts).items() if match is not None else ():
        table = {one.pid: one for one in facts.processes}
        fits = {pid for pid, one in table.items() if re.search(match or "", one.command) and not _wraps(one)}
        for pid in sorted(pid for pid in fits if fits.isdisjoint(_above(pid, table))):
            beneath = tuple(it for it in table.values() if pid in _above(it.pid, table))
            found.append(RankProcess(None, node, table[pid], children=beneath))
    if found:
        yield Job(f"--match {match}", tuple(found))


def _described(job: Job) -> str:
    first = next(((one.node, one.process) for one in job.ranks), None)
    node, process = first or next((node, one) for node, above in job.launchers.items() for one in above)
    processes = f"{len(job.ranks)} processes" if job.ranks else "a launcher without ranks"
    name = run_id(one for above in job.launchers.values() for one in above)
    under = f", --rdzv-id={printable(name, 200)}" if name else ""
    return f"{node}:{process.pid} ({processes}{under}): {printable(process.command, 100)}"


# torchrun --nnodes 2 --rdzv-id=job-812 train.py | --rdzv_id job-812
_RUN_ID = expression(r"^--rdzv[-_]id(?:=(.{1,200}))?$")


def run_id(launchers: Iterable[Process]) -> str:
    """Return the id under which torchrun meets the other nodes; "" where none was given."""
    for one in launchers:
        for word, following in zip(one.argv, (*one.argv[1:], ""), strict=True):
            if found := _RUN_ID.match(word):
                return found[1] or following
    return ""


def _is_meant(job: Job, target: Target) -> bool:
    everyone = [(one.node, it) for one in job.ranks for it in (one.process, *one.children)]
    everyone += [(node, it) for node, above in job.launchers.items() for it in above]
    if target.pid is not None:
        return any(it.pid == target.pid and target.node in (None, node) for node, it in everyone)
    if target.match is not None:
        return any(re.search(target.match, it.command) for _, it in everyone)
    if target.slurm is not None:
        return any((it.variables or {}).get("SLURM_JOB_ID") == target.slurm for _, it in everyone)
    return True


def jobs_of(cluster: Cluster) -> tuple[Job, ...]:
    """Return all jobs that run on the nodes: those with ranks, then launchers that wait and have none anywhere."""
    groups: dict[tuple[int, str], list[_Found]] = {}
    waiting: list[_Waiting] = []
    for node, facts in cluster.facts(ProcessesFacts).items():
        found = list(_ranks_on(node, facts))
        for one in found:
            groups.setdefault((one.process.process.user, one.key), []).append(one)
        waiting += _waiting_on(node, facts, found)
    return _with_launchers([_job(group) for group in _joined(list(groups.values()))], waiting)


@dataclass(frozen=True)
class _Found:
    """A rank, and what says to which job it belongs: `key`, and the script that it runs."""

    process: RankProcess
    key: str
    script: str
    above: tuple[Process, ...]


def _ranks_on(node: str, facts: ProcessesFacts) -> Iterator[_Found]:
    table = {one.pid: one for one in facts.processes}
    places = {pid: place for pid, one in table.items() if (place := _place(one))}
    ranks = {pid for pid in places if _is_rank(pid, table, places)}
    holders = {pid for pid in facts.gpus if pid in table and not {pid, *_above(pid, table)} & ranks}
    for pid in sorted(ranks | holders):
        one, place = table[pid], places.get(pid)
        children = tuple(it for it in table.values() if it.pid != pid and pid in _above(it.pid, table))
        above = _launchers_of(pid, table, ranks | holders)
        known = place if isinstance(place, Rank) else None
        found = RankProcess(
            known.rank if known else None, node, one, known.size if known else None,
            known.local_rank if known else None, known.launcher if known else "", children,
        )  # fmt: skip
        yield _Found(found, _key(one, known), _script(one), above)


def _launchers_of(pid: int, table: Mapping[int, Process], ranks: Collection[int]) -> tuple[Process, ...]:
    """Return the processes above a rank, and what launchers among them have started that is no rank, such as ssh."""
    above = _above(pid, table)
    helpers = (
        one for one in table.values()
        if one.parent in above and is_launcher(table[one.parent]) and not _leads_to(one.pid, ranks, table)
    )  # fmt: skip
    return (*(table[it] for it in above), *helpers)


def _leads_to(pid: int, ranks: Collection[int], table: Mapping[int, Process]) -> bool:
    return pid in ranks or any(pid in _above(it, table) for it in ranks)


def _place(process: Process) -> Rank | LauncherVariablesError | None:
    """Return a process's place by its variables; None if no launcher started it."""
    try:
        rank = read_rank(process.variables or {})
    except LauncherVariablesError as error:
        return error
    return rank if rank.launcher else None


def _above(pid: int, table: Mapping[int, Process]) -> list[int]:
    """Return the processes above one, the nearest first."""
    found: list[int] = []
    while (pid := table[pid].parent) in table and pid not in found:
        found.append(pid)
    return found


# What runs a rank and is none: shells, and programs that stay above what they start.
_WRAPPERS = expression(
    r"^(?:ba|da|z|k|tc|c|fi)?sh$|^(?:srun|timeout|nsys|ncu|strace|gdb|time|numactl|taskset|env|tini|dumb-init|bwrap|enroot"
    r"|apptainer|singularity|conda|uv|orted|prted|mpirun|mpiexec|hydra_pmi_proxy|slurmstepd|torchrun|accelerate)$"
)

# What torch calls the workers of a data loader. They outlive a rank that was killed.
LOADERS = "pt_data_"


def _is_rank(pid: int, table: Mapping[int, Process], places: Mapping[int, Rank | LauncherVariablesError]) -> bool:
    """Return whether a process that has a rank's variables is the rank itself.

    All beneath a rank inherit its variables: the rank is the highest of them that is no shell. A launcher within a
    launcher has the variables of the outer one, and above ranks of its own.
    """
    if table[pid].name.startswith(LOADERS):
        return False
    own = _identity(places[pid])
    beneath = [places[it] for it in places if it != pid and pid in _above(it, table)]
    if any(_identity(it) != own for it in beneath):
        return False
    alike = [it for it in _above(pid, table) if it in places and _identity(places[it]) == own]
    higher = [it for it in alike if not _wraps(table[it])]
    if _wraps(table[pid]):
        lower = (it for it in places if pid in _above(it, table) and not _wraps(table[it]))
        return not higher and not alike and not any(lower)
    return not higher


def _wraps(process: Process) -> bool:
    return bool(_WRAPPERS.match(process.name))


def _identity(place: Rank | LauncherVariablesError) -> object:
    return (place.launcher, place.rank, place.size) if isinstance(place, Rank) else str(place)


def _key(process: Process, rank: Rank | None) -> str:
    """Return what all ranks of a job have in common, as far as one of them says it."""
    variables = process.variables or {}
    if rank and rank.job:
        return rank.job
    master = ":".join(filter(None, (variables.get("MASTER_ADDR", ""), variables.get("MASTER_PORT", ""))))
    return f"MASTER={master}" if master else f"command {_script(process)}"


# python -u -m torch.distributed.run | /opt/venv/bin/python3.11 train.py --lr 0.1
_OPTION_WITH_VALUE = ("-m", "-W", "-X", "-c")


def _script(process: Process) -> str:
    """Return the script, module or program that a process runs."""
    words = list(process.argv)
    if not words:
        return process.name
    if not re.search(r"(?:^|/)python[\d.]*$", words[0]):
        return words[0].rpartition("/")[2]
    for at, word in enumerate(words[1:], 1):
        if word in _OPTION_WITH_VALUE[:1] and at + 1 < len(words):
            return f"-m {words[at + 1]}"
        if word == "-c":
            return "-c"
        if not word.startswith("-") and words[at - 1] not in _OPTION_WITH_VALUE:
            return word.rpartition("/")[2]
    return words[0]


def _joined(groups: Sequence[list[_Found]]) -> list[list[_Found]]:
    """Return the groups with those put together that are parts of one job whose ranks disagree about it.

    They run the same script for the same user, and no rank is in two of them: one that was given another master than
    the others is a fault to be found, and no job of its own.
    """
    jobs: list[list[_Found]] = []
    for group in sorted(groups, key=len, reverse=True):
        into = next((job for job in jobs if _are_one(job, group)), None)
        if into is None:
            jobs.append(list(group))
        else:
            into.extend(group)
    return jobs


def _are_one(job: Sequence[_Found], part: Sequence[_Found]) -> bool:
    first, second = job[0], part[0]
    if (first.process.process.user, first.script) != (second.process.process.user, second.script):
        return False
    if not any(one.key.startswith(("MASTER=", "command ")) for one in (first, second)):
        return False  # both are named by their launchers, and differently
    numbers = [{one.process.rank for one in group} for group in (job, part)]
    if None in numbers[0] | numbers[1]:
        return None in numbers[0] and None in numbers[1]
    size = max((one.process.size or 0 for one in (*job, *part)), default=0)
    return not numbers[0] & numbers[1] and len(job) + len(part) <= max(size, 1)


def _job(group: Iterable[_Found]) -> Job:
    found = sorted(group, key=_place_in_job)
    sizes = Counter(one.process.size for one in found if one.process.size)
    launchers: dict[str, dict[int, Process]] = {}
    for one in found:
        launchers.setdefault(one.process.node, {}).update({it.pid: it for it in one.above})
    size = sizes.most_common(1)[0][0] if sizes else None
    above = {node: tuple(table.values()) for node, table in launchers.items()}
    return Job(found[0].key, tuple(one.process for one in found), size, above)


@dataclass(frozen=True)
class _Waiting:
    """A launcher that has started no rank on its node, and what it did start, such as ssh."""

    node: str
    launcher: Process
    beneath: tuple[Process, ...]

    @property
    def daemon(self) -> bool:
        """Whether it is the part of a launcher on another node; its command line does not name the program."""
        return bool(re.match(r"(?:\S*/)?(?:orted|prted|hydra_\w+)(?: |$)", self.launcher.command))

    @property
    def starts(self) -> str:
        """The launcher and the script that it starts, which are the same on all nodes."""
        words = [word.rpartition("/")[2] for word in self.launcher.argv]
        script = next((word for word in words[1:] if word.endswith(".py")), "")
        return f"{'' if self.daemon else self.launcher.name} {script}".strip()


def _waiting_on(node: str, facts: ProcessesFacts, found: Sequence[_Found]) -> Iterator[_Waiting]:
    table = {one.pid: one for one in facts.processes}
    ranks = {one.process.pid for one in found}
    for pid, one in table.items():
        above = _above(pid, table)
        outermost = not any(is_launcher(table[it]) or it in ranks for it in above)
        if is_launcher(one) and outermost and not _leads_to(pid, ranks, table):
            yield _Waiting(node, one, tuple(it for it in table.values() if pid in _above(it.pid, table)))


def _with_launchers(jobs: list[Job], waiting: Sequence[_Waiting]) -> tuple[Job, ...]:
    """Return the jobs with the launchers that are part of them on other nodes, and jobs of those that have no ranks."""
    alone: dict[tuple[int, str], Job] = {}
    for one in sorted(waiting, key=lambda it: it.daemon):
        user = one.launcher.user
        theirs = [at for at, job in enumerate(jobs) if job.ranks[0].process.user == user and _starts(one, job)]
        others = [key for key in alone if key[0] == user] if one.daemon else [(user, one.starts)]
        if len(theirs) == 1:
            jobs[theirs[0]] = _with_launcher(jobs[theirs[0]], one)
        else:
            key = others[0] if len(others) == 1 else (user, one.starts)
            alone[key] = _with_launcher(alone.get(key, Job(f"launcher {one.starts}".strip(), ())), one)
    return (*jobs, *alone.values())


def _starts(waiting: _Waiting, job: Job) -> bool:
    """Return whether a launcher's command line names the program that the job's ranks run; a daemon's does not."""
    names = {word.rpartition("/")[2] for word in waiting.launcher.argv[1:]}
    return waiting.daemon or _script(job.ranks[0].process).removeprefix("-m ") in names


def _with_launcher(job: Job, waiting: _Waiting) -> Job:
    there = (*job.launchers.get(waiting.node, ()), waiting.launcher, *waiting.beneath)
    return replace(job, launchers={**job.launchers, waiting.node: there})


def _place_in_job(one: _Found) -> tuple[bool, int, str, int]:
    rank = one.process.rank
    return rank is None, rank or 0, one.process.node, one.process.pid
