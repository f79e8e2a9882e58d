"""What ncheck does on a real GPU, beside the tools that people trust, as one Markdown page: `make gpu`.

    python3 bench/gpu.py [--ncheck dist/ncheck.pyz] [--python PYTHON] [--out gpu.md] [--minutes 9] [--only STEP,STEP]

One machine with one or more GPUs, its own python3, and torch if it is there: no package index, no network, no SSH
server, nothing of this tree but this file and the single file. Each step has a time limit, a step that fails is said
and the next one begins, and the page is written anew after each of them. What is missing here is named and skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET  # the text is nvidia-smi's, of this machine
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

MIB = 2**20
GRACE = 3.0  # seconds between asking a process to end and ending it


class SkipError(Exception):
    """Why this machine cannot show what a step is about."""


class Done(NamedTuple):
    """A program that ended, or was ended at its time limit: then `code` is None.

    `memory`: MiB of its largest process.
    """

    code: int | None
    out: str
    err: str
    seconds: float
    memory: float

    @property
    def ended(self) -> str:
        return "ended at its time limit" if self.code is None else f"exit code {self.code}"

    @property
    def price(self) -> str:
        return f"{self.ended}, {self.seconds:.1f} s, {self.memory:.0f} MiB"

    def json(self) -> Any:  # noqa: ANN401  what it is depends on the program
        """Return what the last line, or all of the output, is as JSON. Raises SkipError with its last words."""
        for text in (self.out, self.out.strip().rpartition("\n")[2]):
            with suppress(ValueError):
                return json.loads(text)
        words = (self.err.strip() or self.out.strip() or "it printed nothing").splitlines()
        raise SkipError(f"{self.ended}: {words[-1]}")


@dataclass
class Bench:
    """What all steps share: the programs, the time that is left, and a folder for files."""

    ncheck: str
    python: str
    folder: Path
    until: float
    sizes: tuple[int, ...]  # MiB
    rounds: int
    price: list[tuple[str, str]] = field(default_factory=list)

    def run(self, *argv: str, limit: float = 60, environ: Mapping[str, str] | None = None) -> Done:
        """Run a program; what it left running ends with it."""
        began = time.monotonic()
        limit = min(limit, self.until - began)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = started(argv, out, err, environ)
            code, memory = None, 0.0
            try:
                while time.monotonic() - began < limit:
                    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                    if pid:
                        code, memory = os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024
                        process.returncode = code
                        break
                    time.sleep(0.02)
            finally:
                end(process)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read(4 * MIB).decode("utf-8", "replace"))
        return Done(code, *texts, time.monotonic() - began, memory)

    def asked(self, *words: str, limit: float = 90) -> Done:
        """Run ncheck; its price goes to the last table."""
        done = self.run(self.python, "-m", "ncheck", *words, limit=limit, environ=self.environ())
        self.price.append((f"ncheck {' '.join(words)}".replace(str(self.folder), "DIR"), done.price))
        return done

    def environ(self) -> dict[str, str]:
        return {"PYTHONPATH": os.pathsep.join(filter(None, [self.ncheck, os.environ.get("PYTHONPATH", "")]))}

    def part(self, name: str, *words: str, limit: float = 60) -> Any:  # noqa: ANN401  the same
        """Return what a part of this file, run by the job's Python, prints as JSON."""
        return self.run(self.python, __file__, "--part", name, *words, limit=limit).json()

    @contextmanager
    def beside(
        self, *argv: str, environ: Mapping[str, str] | None = None
    ) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Run a program while a block runs; give its process and the file that it prints to."""
        log = self.folder / f"{time.monotonic_ns()}.log"
        with log.open("wb") as out:
            process = started(argv, out, out, environ)
        try:
            yield process, log
        finally:
            end(process)


def started(
    argv: Sequence[str], out: IO[bytes], err: IO[bytes], environ: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own. Raises SkipError if it cannot be run."""
    try:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            env={**os.environ, **(environ or {})},
        )  # fmt: skip
    except OSError as error:
        raise SkipError(f"{argv[0]} cannot be run: {error.strerror}") from None


def end(process: subprocess.Popen[bytes]) -> None:
    """End a session that we started, its leader and what it left."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        if process.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)


def wait_for(words: str, log: Path, process: subprocess.Popen[bytes], limit: float) -> None:
    """Wait until a program has printed these words. Raises SkipError if it ends before, or takes longer."""
    began = time.monotonic()
    while time.monotonic() - began < limit:
        text = log.read_text(errors="replace")
        if words in text:
            return
        if process.poll() is not None:
            raise SkipError(f"the job ended before: {last_words(text)}")
        time.sleep(0.1)
    raise SkipError(f"the job printed no {words!r} within {limit:.0f} s: {last_words(log.read_text(errors='replace'))}")


def last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"\b\w*Error\b|error:", line)]
    return (wrong or lines or ["it printed nothing"])[-1].strip()[:300]


# Markdown


def block(text: str, most: int = 150) -> str:
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip().splitlines()
    more = [f"... {len(lines) - most} more lines"] if len(lines) > most else []
    return "\n".join(["```text", *(line.replace("```", "'''") for line in lines[:most]), *more, "```"])


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )


# The steps: each yields the paragraphs of its section


def machine(bench: Bench) -> Iterator[str]:
    rows = [("kernel", " ".join(os.uname())), ("cores", os.cpu_count() or "unknown")]
    rows.append(("python", f"{bench.python}: {bench.run(bench.python, '--version').out.strip()}"))
    rows.append(("ncheck", bench.asked("--version").out.strip()))
    programs = ("nvidia-smi", "nvbandwidth", "all_reduce_perf", "py-spy", "cuda-gdb", "nvcc")
    rows += [(program, shutil.which(program) or "not here") for program in programs]
    try:
        rows += [(name, value) for name, value in bench.part("torch").items()]
    except SkipError as why:
        rows.append(("torch", f"cannot be used: {why}"))
    yield table(("what", "here"), rows)
    for words in ("", "topo -m"):
        done = bench.run("nvidia-smi", *words.split()) if shutil.which("nvidia-smi") else None
        yield block(f"$ nvidia-smi {words}\n{done.out or done.err}" if done else "nvidia-smi is not here")


def facts(bench: Bench) -> Iterator[str]:
    record = bench.folder / "record"
    words = ("--python", bench.python, "--probe", "none", "--config", "none", "--record", str(record))
    done = bench.asked("local", "-v", *words)
    yield f"{done.price}\n\n{block(done.out, 250)}"
    yield from compared(bench, record)


def compared(bench: Bench, record: Path) -> Iterator[str]:
    """Yield ncheck's facts of a recording beside what nvidia-smi says now."""
    read = bench.run(bench.python, __file__, "--part", "facts", str(record), environ=bench.environ()).json()
    done = bench.run("nvidia-smi", "-q", "-x")
    try:
        said = ET.fromstring(done.out[done.out.index("<nvidia_smi_log") :])  # noqa: S314
    except (ValueError, ET.ParseError):
        said, why = None, last_words(done.err + done.out)
        yield f"nvidia-smi -q -x gives no XML: {why}"
    rows = []
    for name, value in sorted(read.items()):
        theirs = of_nvidia_smi(said, name) if said is not None else ""
        same = "" if not theirs else "same" if alike(value, theirs) else "**differs**"
        rows.append((name, value, theirs, same))
    yield table(("fact", "ncheck", "nvidia-smi", ""), rows)
    results = [result for *_, result in rows if result]
    yield f"{len(rows)} facts, {len(results)} compared, {len(results) - results.count('same')} differ."


# NVML counts as used what the driver reserves, nvidia-smi does not: its two numbers are added.
# ncheck's name of a fact, after "gpus[0]." or "health[0]."; where nvidia-smi -q -x has it
THEIRS = {
    "driver": "driver_version", "cuda": "cuda_version", "name": "product_name", "uuid": "uuid", "pci": "pci/pci_bus_id",
    "memory_total": "fb_memory_usage/total", "memory_used": "fb_memory_usage/used+fb_memory_usage/reserved",
    "ecc_mode": "ecc_mode/current_ecc",
    "temperature": "temperature/gpu_temp", "slowdown": "temperature/gpu_temp_slow_threshold",
    "margin": "temperature/gpu_temp_tlimit",
    "persistence": "persistence_mode", "compute_mode": "compute_mode", "mig": "mig_mode/current_mig",
    "ecc_pending": "ecc_mode/pending_ecc", "mig_pending": "mig_mode/pending_mig", "vbios": "vbios_version",
    "inforom": "inforom_version/img_version", "memory_temperature": "temperature/memory_temp",
    "memory_limit": "temperature/gpu_temp_max_mem_threshold", "pcie_replays": "pci/replay_counter",
    "power_limit": "gpu_power_readings/current_power_limit", "power_default": "gpu_power_readings/default_power_limit",
    "remapped.correctable": "remapped_rows/remapped_row_corr",
    "remapped.uncorrectable": "remapped_rows/remapped_row_unc",
    "remapped.pending": "remapped_rows/remapped_row_pending", "remapped.failed": "remapped_rows/remapped_row_failure",
    "fabric.state": "fabric/state", "fabric.clique": "fabric/cliqueId", "fabric.cluster": "fabric/clusterUuid",
    "module": "driver_version", "library": "driver_version",
}  # fmt: skip
# nvidia-smi's word, and what ncheck's fact is then
_WORDS = {
    "enabled": ("1", "true"), "disabled": ("0", "false"), "yes": ("true",), "no": ("false",), "default": ("0",),
    "exclusive_process": ("3",), "prohibited": ("2",), "completed": ("3",), "in progress": ("2",),
    "not started": ("1",), "n/a": ("none", ""), "[n/a]": ("none", ""),
}  # fmt: skip


def of_nvidia_smi(said: ET.Element, name: str) -> str:
    """Return what nvidia-smi says of this fact; "" where it is not known to say it."""
    found = re.fullmatch(r"(?:(?:gpus|health)\[(\d+)\]\.)?(.*)", name)
    path = THEIRS.get(found[2]) if found else None
    if found is None or path is None:
        return ""
    of = said if found[1] is None else next(iter(said.findall("gpu")[int(found[1]) : int(found[1]) + 1]), None)
    texts = [(of.findtext(one) or "").strip() for one in path.split("+")] if of is not None else [""]
    amounts = [int(text.removesuffix(" MiB")) for text in texts if re.fullmatch(r"\d+ MiB", text)]
    return f"{sum(amounts)} MiB" if len(amounts) > 1 else texts[0]


def alike(ours: object, theirs: str) -> bool:
    """Return whether two values say the same, whatever their unit or word; what changes may differ a little."""
    mine, other = str(ours).lower(), theirs.lower()
    measured = re.fullmatch(r"(-?\d+)(?:\.\d+)? (mib|c|w)", other)
    if measured and isinstance(ours, int):
        scale, tolerance = {"mib": (MIB, 64 * MIB), "c": (1, 2), "w": (1000, 1000)}[measured[2]]
        return abs(ours - int(measured[1]) * scale) <= tolerance
    return mine in (other, other.replace("-", ""), other.removeprefix("0000"), *_WORDS.get(other, ()))


def load(bench: Bench) -> Iterator[str]:
    query = "clocks.sm,clocks.max.sm,power.draw,temperature.gpu,clocks_throttle_reasons.active,pcie.link.gen.current,"
    query += "pcie.link.width.current,utilization.gpu,memory.used"
    ask = ("nvidia-smi", f"--query-gpu=index,{query}", "--format=csv")
    yield "At rest:\n\n" + block(bench.run(*ask).out)
    with bench.beside(bench.python, __file__, "--part", "load", "40") as (process, log):
        wait_for("working", log, process, 60)
        time.sleep(5)  # a GPU needs seconds to warm up
        yield "Under load:\n\n" + block(bench.run(*ask).out)
        record = bench.folder / "busy"
        done = bench.asked("local", "--select", "NC5", "--config", "none", "-v", "--record", str(record))
        yield f"ncheck meanwhile, {done.price}:\n\n{block(done.out)}"
        yield from compared(bench, record)


def hang(bench: Bench) -> Iterator[str]:
    with bench.beside(bench.python, __file__, "--part", "hang", environ=one_rank()) as (process, log):
        wait_for("spinning", log, process, 60)
        time.sleep(2)
        yield from diagnosed(bench, process.pid)


def one_rank() -> dict[str, str]:
    """Return the variables of a job of one rank."""
    return {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29531"}


def diagnosed(bench: Bench, pid: int, *words: str) -> Iterator[str]:
    done = bench.asked("triage", "--job", str(pid), "--config", "none", *words)
    yield f"ncheck triage {' '.join(words)}: {done.price}\n\n{block(done.out or done.err)}"


def job(bench: Bench) -> Iterator[str]:
    if gpus(bench) == 1:
        yield "One GPU: NCCL_HOSTID differs by rank, so NCCL takes the two ranks for two hosts and uses the network."
    dumps = bench.folder / "flight"
    environ = {
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000", "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(dumps), "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(dumps),
        "TORCH_FR_DUMP_TEMP_FILE": str(dumps),
    }  # fmt: skip
    with bench.beside(*torchrun(bench, 2, "stuck"), environ=environ) as (process, log):
        wait_for("rank 1 stands still", log, process, 90)
        time.sleep(5)
        yield from diagnosed(bench, process.pid, "--dump", "--ras", "--save", str(bench.folder / "hang.zip"))


def ranks(bench: Bench) -> Iterator[str]:
    words = ("-H", "n1,n2", "--rsh", "env NCCL_HOSTID={node}", "--force", "--mesh", "none", "--config", "none")
    sizes = ",".join(dict.fromkeys(("8", "1M", f"{min(bench.sizes)}M")))
    every = ("--sizes", sizes, "--op", "moe,broadcast,send-recv", "--repeats", "3")
    done = bench.asked("probe", "-v", *words, "--python", bench.python, *every)
    yield "Two agents on this machine, each a node of its own to NCCL: two ranks share each GPU, over the network."
    yield f"{done.price}\n\n{block(done.out or done.err, 120)}"


def torchrun(bench: Bench, ranks: int, part: str) -> tuple[str, ...]:
    words = ("-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}")
    return (bench.python, *words, __file__, "--part", part)


def gpus(bench: Bench) -> int:
    """Return how many GPUs torch can use. Raises SkipError where it can use none."""
    return int(bench.part("torch")["GPUs"])


def bandwidth(bench: Bench) -> Iterator[str]:
    tools: dict[str, Callable[[], dict[int, float]]] = {"ncheck": lambda: by_ncheck(bench)}
    count, missing = 0, ""
    try:
        count = gpus(bench)
        tools["torch"] = lambda: by_torch(bench, count)
    except SkipError as why:
        missing = f"torch.distributed is left out: {why}"
    if count == 1:
        raise SkipError("one GPU: an all-reduce of one rank is a copy, or nothing, so a ratio would say nothing")
    if missing:
        yield missing
    if shutil.which("all_reduce_perf"):
        tools["nccl-tests"] = lambda: by_nccl_tests(bench, max(1, count))
    else:
        yield "nccl-tests is left out: all_reduce_perf is not in PATH"
    found: dict[str, dict[int, list[float]]] = {tool: {} for tool in tools}
    for _ in range(bench.rounds):
        for tool, measure in tools.items():
            for size, value in measure().items():
                found[tool].setdefault(size, []).append(value)
    yield f"algbw out of place in GB/s, torch's in place; {bench.rounds} rounds: median (smallest to largest)."
    rows = []
    for size in sorted({size for rates in found.values() for size in rates}):
        some = {tool: rates[size] for tool, rates in found.items() if size in rates}
        ratios = [ratio(some, tool) for tool in list(tools)[1:]]
        rows.append((f"{size // MIB} MiB", *(spread(some.get(tool, ())) for tool in tools), *ratios))
    yield table(("size", *tools, *(f"ncheck / {tool}" for tool in list(tools)[1:])), rows)


def ratio(some: Mapping[str, Sequence[float]], tool: str) -> str:
    if not {"ncheck", tool} <= set(some):
        return ""
    return f"{statistics.median(some['ncheck']) / statistics.median(some[tool]):.3f}"


def by_ncheck(bench: Bench) -> dict[int, float]:
    sizes = ",".join(f"{size}M" for size in bench.sizes)
    words = ("--config", "none", "--python", bench.python, "--sizes", sizes, "-o", "json")
    measurements = bench.asked("probe", *words, limit=100).json()["measurements"]
    curves = [one["curve"] for one in measurements if one["stage"] == "inside"]
    return {row["size"]: row["algbw"] for curve in curves for row in curve if not row["in_place"]}


def by_torch(bench: Bench, count: int) -> dict[int, float]:
    rates = bench.run(*torchrun(bench, count, "allreduce"), *map(str, bench.sizes), limit=100).json()
    return {int(size): value for size, value in rates.items()}


def by_nccl_tests(bench: Bench, count: int) -> dict[int, float]:
    """Return algbw out of place of all_reduce_perf's rows."""
    rates = {}
    for size in bench.sizes:
        done = bench.run("all_reduce_perf", "-b", f"{size}M", "-e", f"{size}M", "-g", str(count))
        #    67108864      16777216     float     sum      -1    412.3  162.76  284.83      0    410.1  163.64  286.37
        rates.update(
            {int(row[1]): float(row[2]) for row in re.finditer(r"^ +(\d+) +\d+ +\w+ +\w+ +-?\d+ +[\d.]+ +([\d.]+)",
                                                               done.out, re.MULTILINE)}
        )  # fmt: skip
    return rates


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})" if values else ""


def hook(bench: Bench) -> Iterator[str]:
    count = gpus(bench)
    words = ("-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}", "-m", "ncheck.hook")
    script = (__file__, "--part", "allreduce", *map(str, bench.sizes))
    done = bench.run(bench.python, *words, "--probe", "quick", *script, limit=120, environ=bench.environ())
    yield f"{done.price}\n\n{block(done.err + done.out, 80)}"


def alone(bench: Bench) -> Iterator[str]:
    words = ("--config", "none", "--python", bench.python, "--gpu-test", "quick", "--sizes", "1M", "-o", "json")
    done = bench.asked("probe", *words, limit=100)
    report = done.json()
    yield f"ncheck probe --gpu-test quick: {done.price}"
    rows = [
        (gpu["pci"], figure["what"], f"{figure['value']:.4g}", figure["unit"], figure["usual"], figure["standing"])
        for gpu in report["gpus_alone"]
        for figure in gpu["figures"]
    ]
    yield table(("GPU", "what", "ncheck", "unit", "usual", "standing"), rows)
    yield block("\n".join(f"{one['code']} {one['message']}" for one in report["findings"]) or "no findings")
    rows = [(name, f"{value:.4g}") for name, value in bench.part("speed", limit=90).items()]
    yield table(("of GPU 0", "torch, median of 20"), rows)
    if shutil.which("nvbandwidth"):
        done = bench.run("nvbandwidth", limit=90)
        yield f"nvbandwidth: {done.price}\n\n{block(done.out)}"
    else:
        yield "nvbandwidth is not here"


class Step(NamedTuple):
    """A section of the page; `limit` is in seconds."""

    title: str
    paragraphs: Callable[[Bench], Iterator[str]]
    limit: float


STEPS = {
    "machine": Step("the machine and its programs", machine, 40),
    "facts": Step("what ncheck reads of each GPU, beside nvidia-smi -q", facts, 90),
    "load": Step("NVML at rest and under load", load, 120),
    "alone": Step("every GPU alone, beside torch and nvbandwidth", alone, 150),
    "bandwidth": Step("ncheck probe, torch.distributed and nccl-tests, in turn", bandwidth, 200),
    "ranks": Step("ncheck probe with two ranks of NCCL on each GPU", ranks, 120),
    "job": Step("a job of two ranks, one of which stands still: RAS, stacks, flight recorder", job, 120),
    "hook": Step("the hook under torchrun, with its quick all-reduce", hook, 90),
    "hang": Step("a kernel that never ends", hang, 90),  # last: its kernel may outlive the process
}


# What the job's own Python runs, in processes of their own


def part_facts(folder: str) -> None:
    """Print every fact that ncheck reads of GPUs in a recording: its name, and its value."""
    import dataclasses

    from ncheck.facts.gpu_health import gpu_health, nvidia_driver
    from ncheck.facts.gpus import gpus as listed
    from ncheck.fleet.recording import load as recorded

    (evidence,) = recorded(folder)
    found: dict[str, object] = {}

    def flat(name: str, value: object) -> None:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        if isinstance(value, Mapping) and value:
            for key, below in value.items():
                flat(f"{name}.{key}" if name else str(key), below)
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            for at, below in enumerate(value):
                flat(f"{name}[{at}]", below)
        else:
            found[name] = value if isinstance(value, (int, float, str, type(None), tuple)) else str(value)

    for read in (listed, gpu_health, nvidia_driver):
        fact = read(evidence)
        if type(fact).__name__ in ("Absent", "Unread"):
            found[read.__name__] = f"{type(fact).__name__}: {getattr(fact, 'reason', '')}"
        else:
            renamed = {"gpus": "health"} if read is gpu_health else {}
            for one in dataclasses.fields(fact):
                flat(renamed.get(one.name, one.name), getattr(fact, one.name))
    print(json.dumps(found))


def the_torch() -> ModuleType:
    """Return torch where it can use a GPU; the program ends with the reason where it cannot."""
    try:
        import torch
    except ImportError as error:
        sys.exit(f"{error}")
    if not torch.cuda.is_available():
        sys.exit("torch.cuda.is_available() is False: torch can use no GPU here")
    return torch


def part_torch() -> None:
    torch = the_torch()
    version = ".".join(map(str, torch.cuda.nccl.version()))
    print(json.dumps({"torch": torch.__version__, "CUDA of torch": torch.version.cuda, "NCCL of torch": version,
                      "GPUs": torch.cuda.device_count(), "GPU 0": torch.cuda.get_device_name(0)}))  # fmt: skip


def part_load(seconds: str) -> None:
    """Multiply matrices on every GPU."""
    torch = the_torch()
    pairs = [
        torch.randn(2, 8192, 8192, device=f"cuda:{index}", dtype=torch.bfloat16)
        for index in range(torch.cuda.device_count())
    ]
    print("working", flush=True)
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        for _ in range(20):
            for pair in pairs:
                torch.matmul(pair[0], pair[1])
        torch.cuda.synchronize()


def part_hang() -> None:
    """Wait for a kernel that counts clock cycles for days."""
    torch = the_torch()
    torch.ones(1, device="cuda")
    torch.cuda._sleep(2**62)  # noqa: SLF001  no public function keeps a GPU busy
    print("spinning", flush=True)
    torch.cuda.synchronize()


def job_of_torch() -> tuple[ModuleType, ModuleType, int, str]:
    torch = the_torch()
    import torch.distributed as dist

    if torch.cuda.device_count() < int(os.environ["WORLD_SIZE"]):  # NCCL compares the host and the GPU of each rank
        os.environ.setdefault("NCCL_HOSTID", f"rank {os.environ['RANK']}")
    device = f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    return torch, dist, dist.get_rank(), device


def part_stuck() -> None:
    """All-reduce twenty times; then rank 1 stays away, and rank 0 waits for it."""
    torch, dist, rank, device = job_of_torch()
    data = torch.ones(2**20, device=device)
    for _ in range(20):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    if rank == 1:
        print("rank 1 stands still", flush=True)
        time.sleep(600)
    dist.all_reduce(data)
    torch.cuda.synchronize()


def part_allreduce(*sizes: str) -> None:
    """Print algbw in GB/s for each size in MiB: the median of 20 after 5 for warming up, of the slowest rank."""
    torch, dist, rank, device = job_of_torch()
    found = {}
    for size in map(int, sizes):
        data = torch.ones(size * MIB // 4, device=device)
        seconds = torch.tensor(timed(torch, lambda data=data: dist.all_reduce(data)), device=device)
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        found[size * MIB] = size * MIB / seconds.item() / 1e9
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def timed(torch: ModuleType, do: Callable[[], object], repeats: int = 20) -> float:
    """Return the median of seconds by the device's own clock, after 5 for warming up."""
    for _ in range(5):
        do()
    found = []
    for _ in range(repeats):
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        do()
        after.record()
        torch.cuda.synchronize()
        found.append(before.elapsed_time(after) / 1000)
    return statistics.median(found)


def part_speed() -> None:
    torch = the_torch()
    found, side, size = {}, 8192, 1024 * MIB
    for name, kind in (("BF16 matmul, TFLOPS", torch.bfloat16), ("FP32 matmul, TFLOPS", torch.float32)):
        one, two = torch.randn(2, side, side, device="cuda", dtype=kind)
        found[name] = 2 * side**3 / timed(torch, lambda one=one, two=two: torch.matmul(one, two)) / 1e12
    here, there = (
        torch.empty(size, dtype=torch.uint8, device="cuda"),
        torch.empty(size, dtype=torch.uint8, device="cuda"),
    )
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    found["device to device, GB/s read and written"] = 2 * size / timed(torch, lambda: there.copy_(here)) / 1e9
    found["host to device, pinned, GB/s"] = size / timed(torch, lambda: here.copy_(host, non_blocking=True)) / 1e9
    found["device to host, pinned, GB/s"] = size / timed(torch, lambda: host.copy_(here, non_blocking=True)) / 1e9
    one = torch.ones(1, device="cuda")
    found["small kernel, microseconds"] = 1e6 * timed(torch, lambda: one.add_(1))
    for index in range(1, torch.cuda.device_count()):
        other = torch.empty(size, dtype=torch.uint8, device=f"cuda:{index}")
        found[f"GPU 0 to {index}, GB/s"] = size / timed(torch, lambda other=other: other.copy_(here)) / 1e9
    print(json.dumps(found))


PARTS: dict[str, Callable[..., None]] = {
    "facts": part_facts, "torch": part_torch, "load": part_load, "hang": part_hang, "stuck": part_stuck,
    "allreduce": part_allreduce, "speed": part_speed,
}  # fmt: skip


def section(name: str, bench: Bench, until: float) -> str:
    """Return a step's section of the page, whatever happens in it."""
    step = STEPS[name]
    began = time.monotonic()
    bench.until = min(began + step.limit, until)
    parts = [f"## {name}: {step.title}"]
    try:
        if bench.until <= began:
            raise SkipError("no time was left")  # noqa: TRY301  said in the page like the others
        parts += step.paragraphs(bench)
    except SkipError as why:
        parts.append(f"Skipped: {why}")
    except Exception as error:  # noqa: BLE001  said in the page; the next step begins
        parts.append(f"**Failed**: {type(error).__name__}: {error}")
    parts.append(f"({time.monotonic() - began:.1f} s)")
    return "\n\n".join(parts)


def main() -> None:
    """Write the page."""
    if sys.argv[1:2] == ["--part"]:
        return PARTS[sys.argv[2]](*sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ncheck", default="dist/ncheck.pyz", help="the single file, or a folder; for PYTHONPATH")
    parser.add_argument("--python", default=sys.executable, help="the job's Python, with torch")
    parser.add_argument("--out", default="gpu.md", help="the page")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--sizes", default="64,256,1024", help="of the all-reduce, in MiB")
    parser.add_argument("--rounds", type=int, default=3, help="how often each tool is run in turn")
    parser.add_argument("--only", default=",".join(STEPS), help=f"of {', '.join(STEPS)}")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(STEPS):
        parser.error(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    if not all(Path(part).exists() for part in options.ncheck.split(os.pathsep)):
        parser.error(f"{options.ncheck} is not here; type: make pyz")
    until = time.monotonic() + options.minutes * 60
    sizes = tuple(map(int, options.sizes.split(",")))
    ncheck = os.pathsep.join(str(Path(part).resolve()) for part in options.ncheck.split(os.pathsep))
    page = [f"# ncheck on a GPU\n\n{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}"]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(ncheck, options.python, Path(folder), until, sizes, options.rounds)
        for name in names:
            print(f"gpu: {name}", file=sys.stderr)
            page.append(section(name, bench, until))
            Path(options.out).write_text("\n\n".join(page) + "\n", encoding="utf-8")
        page.append("## What ncheck took\n\n" + table(("command", "time and memory"), bench.price))
    Path(options.out).write_text("\n\n".join(page) + "\n", encoding="utf-8")
    print(f"gpu: {options.out}", file=sys.stderr)
    return None


if __name__ == "__main__":
    main()
