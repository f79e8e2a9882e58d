"""A stand-in for Slurm's programs, by the name that it is started with: srun's tasks are processes of this machine.

$STANDIN_SLURM names a JSON file that says what goes wrong:

    nodes          what squeue says of the job's nodes
    states         node -> [state, reason], as sinfo shows them
    controller     slurmctld does not answer: its words
    hangs          scontrol waits for a controller, without end
    reservations   lines of scontrol -o show reservation
    refused        the step cannot be created: srun's words
    dead           node -> why its task cannot be launched; srun then ends the step
    silent         nodes whose task is launched and never starts
    tasks          node -> a shell line to run in place of the task
    says           lines that srun prints on standard error before anything else
    later          lines that srun prints once its input has begun, after which it ends the step
    log            a file that gets each command line, and the bytes of each srun's input
"""

from __future__ import annotations

import json
import os
import queue
import re
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

Task = subprocess.Popen[bytes]
WHAT: dict[str, Any] = json.loads(Path(os.environ["STANDIN_SLURM"]).read_text())
PRINTING = threading.Lock()


def log(*words: object) -> None:
    with Path(WHAT["log"]).open("a") as file:
        file.write(json.dumps(words) + "\n")


def error(*lines: str) -> None:
    for line in lines:
        with PRINTING:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def squeue() -> int:
    if WHAT.get("controller"):
        error(WHAT["controller"])
        return 1
    sys.stdout.write(WHAT["nodes"] + "\n")
    return 0


def sinfo() -> int:
    for node, (state, reason) in WHAT["states"].items():
        sys.stdout.write(f"{node}|{state}|10.0.0.{node[1:]}|{reason}\n")
    return 0


def scontrol() -> int:
    log("scontrol", *sys.argv[1:], os.environ["TZ"], os.environ["SLURM_TIME_FORMAT"])
    if WHAT.get("hangs"):
        signal.pause()
    if WHAT.get("controller"):
        error(WHAT["controller"])
        return 1
    sys.stdout.write("".join(line + "\n" for line in WHAT["reservations"]) or "No reservations in the system\n")
    return 0


def relay(sources: dict[int, tuple[int, IO[bytes]]]) -> None:
    """Copy the tasks' output as srun --label does: each in turn, whole lines, broken at 1024 bytes."""
    rests = dict.fromkeys(sources, b"")
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN)
    while rests:
        for source, _ in poll.poll():
            number, target = sources[source]
            data = os.read(source, 4096)
            *lines, rest = (rests[source] + data).split(b"\n")
            whole = len(rest) - len(rest) % 1024
            lines += [rest[:whole]] if whole else []
            rests[source] = rest[whole:]
            pieces = [line[at : at + 1024] for line in lines for at in range(0, max(1, len(line)), 1024)]
            with PRINTING:
                target.write(b"".join(b"%2d: %s\n" % (number, piece) for piece in pieces))
                target.flush()
            if not data:
                poll.unregister(source)
                del rests[source]


def fed(task: Task, pieces: queue.SimpleQueue[bytes]) -> None:
    """Write to a task what comes for it: one that does not read holds up no other, as with srun for some MB."""
    assert task.stdin
    with suppress(OSError):
        while data := pieces.get():
            task.stdin.write(data)
        task.stdin.close()


def broadcast(tasks: dict[int, Task], count: list[int]) -> None:
    """Copy standard input to every task, and its end."""
    queues: list[queue.SimpleQueue[bytes]] = [queue.SimpleQueue() for _ in tasks]
    for task, pieces in zip(tasks.values(), queues, strict=True):
        threading.Thread(target=fed, args=(task, pieces), daemon=True).start()
    while data := os.read(0, 65536):
        count.append(len(data))
        for pieces in queues:
            pieces.put(data)
        if WHAT.get("later"):
            error(*WHAT["later"])
            os.kill(os.getpid(), signal.SIGTERM)
    for pieces in queues:
        pieces.put(b"")


def started(names: list[str], command: list[str]) -> tuple[dict[int, Task], dict[int, tuple[int, IO[bytes]]]]:
    """Start the tasks; return them, and which pipe is whose."""
    tasks: dict[int, Task] = {}
    sources: dict[int, tuple[int, IO[bytes]]] = {}
    for number, name in enumerate(names):
        if name in WHAT.get("dead", ()) or name in WHAT.get("silent", ()):
            continue
        line = WHAT.get("tasks", {}).get(name)
        environ = {**os.environ, "SLURMD_NODENAME": name, "SLURM_PROCID": str(number)}
        tasks[number] = task = subprocess.Popen(
            ["/bin/sh", "-c", line, "ncheck-command"] if line else command, env=environ, bufsize=0,
            start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert task.stdout
        assert task.stderr
        sources[task.stdout.fileno()] = number, sys.stdout.buffer
        sources[task.stderr.fileno()] = number, sys.stderr.buffer
    return tasks, sources


def srun() -> int:
    argv = sys.argv[1:]
    log("srun", *argv)
    options = [word for word in argv if word.startswith("--")]
    command = argv[len(options) :]
    (nodes,) = (word.partition("=")[2] for word in options if word.startswith("--nodelist="))
    names = unfolded(nodes)
    error(*WHAT.get("says", ()))
    if WHAT.get("refused"):
        error(f"srun: error: Unable to create step for job 7: {WHAT['refused']}")
        return 1
    error(*(f"srun: launching StepId=7.0 on host {name}, 1 tasks: {number}" for number, name in enumerate(names)))
    tasks, sources = started(names, command)
    count: list[int] = []
    printer = threading.Thread(target=relay, args=(sources,), daemon=True)
    printer.start()

    def end(*_: object) -> None:
        error(
            "srun: forcing job termination", "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."
        )
        for task in tasks.values():
            with suppress(OSError):
                os.killpg(task.pid, signal.SIGKILL)
        log("ended", sum(count))
        os._exit(143)

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=broadcast, args=(tasks, count), daemon=True).start()
    dead = {name: why for name, why in WHAT.get("dead", {}).items() if name in names}
    for name, why in dead.items():
        error(f"srun: error: Task launch for StepId=7.0 failed on node {name}: {why}")
    if dead:
        error(f"srun: error: Application launch failed: {next(iter(dead.values()))}")
        end()
    if any(name in names for name in WHAT.get("silent", ())):
        threading.Event().wait()
    for number, task in tasks.items():
        threading.Thread(target=waited, args=(number, names[number], task), daemon=True).start()
    for task in tasks.values():
        task.wait()
    printer.join()
    log("ended", sum(count))
    return 0


def waited(number: int, name: str, task: Task) -> None:
    status = task.wait()
    if status == 0:
        error(f"srun: launch/slurm: _task_finish: {name}: task {number}: Completed")
    elif status > 0:
        error(f"srun: error: {name}: task {number}: Exited with exit code {status}")
    else:
        error(f"srun: error: {name}: task {number}: Killed")


def unfolded(nodes: str) -> list[str]:
    """Return the names of n[1-3,5]."""
    found = re.fullmatch(r"(\w+)\[([\d,-]+)\]", nodes)
    if not found:
        return nodes.split(",")
    names = []
    for part in found[2].split(","):
        first, _, last = part.partition("-")
        names += [f"{found[1]}{number}" for number in range(int(first), int(last or first) + 1)]
    return names


PROGRAMS = {"srun": srun, "squeue": squeue, "sinfo": sinfo, "scontrol": scontrol}
sys.exit(PROGRAMS[Path(sys.argv[0]).name]())
