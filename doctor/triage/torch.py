"""torch.distributed and torchrun: the rendezvous, the watchdog (which only says who waited), and how ranks ended."""

from __future__ import annotations

import re

from doctor.triage.signature import Grade, Reading, Signature, row

_WAITS = frozenset({"waits"})
_SIGNALS = {
    -6: Reading("", Grade.ECHO, tag="gone"),  # abort: the watchdog's own way to end a process
    -15: Reading("", Grade.ECHO, tag="gone"),  # ended by the launcher, after another one
    -7: Reading("shm_too_small", Grade.LIKELY, ("rank_crashed",)),  # SIGBUS: memory that the file system has not
}
_KILLED = Reading("rank_crashed", Grade.LIKELY, ("gpu_oom",), meaning="a rank was killed, most often because the"
                  " machine or its container ran out of memory", fix="sudo journalctl -k -g oom")  # fmt: skip
_LEFT = Reading("rank_crashed", Grade.ECHO)


def _exit(found: re.Match[str]) -> Reading:
    code = int(found[1])
    return _SIGNALS.get(code, _KILLED if code < 0 else _LEFT)


def _joined(found: re.Match[str]) -> Reading:
    """Return what a barrier of the store says: more workers than the world has are those of an earlier run."""
    world, workers = int(found[1]), int(found[2])
    stale = "more ranks joined than the world has: the store of an earlier run was used again"
    missing = f"{world - workers} of {world} ranks never joined"
    return Reading("rendezvous_misconfig", Grade.LIKELY, ("rank_crashed", "firewall"), "store",
                   meaning=stale if workers > world else missing)  # fmt: skip


SIGNATURES = (
    # [E socket.cpp:472] [c10d] The server socket has failed to listen on any local network address.
    row(r"failed to listen on any local network address|EADDRINUSE", "port_in_use", Grade.CERTAIN, tag="port"),
    # OSError: [Errno 98] Address already in use
    row(r"(?:RuntimeError|OSError|error|Error): (?:\[Errno 98\] )?Address already in use", "port_in_use", Grade.CERTAIN,
        tag="port"),
    # [W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29400 (errno: 98 - Address already in use).
    row(r"(?<!Call to bind failed: )(?<!Call to bind failed : )Address already in use",
        "port_in_use", Grade.POSSIBLE, tag="port", passing=True),
    # Timed out initializing process group in store based barrier (world_size=2, worker_count=1, timeout=0:30:00)
    Signature(re.compile(r"world_size=(\d{1,9}), worker_count=(\d{1,9}),"), _joined),
    # torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 1/2 clients joined.
    row(r"waiting for clients\. \d+/\d+ clients joined|RendezvousTimeoutError|RendezvousClosedError",
        "rendezvous_misconfig", Grade.LIKELY, "rank_crashed", "firewall", tag="store"),
    # ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected
    row(r"environment variable \w+ expected, but not set|error initializing torch\.distributed using|"
        r"Error initializing torch\.distributed using",
        "rendezvous_misconfig", Grade.CERTAIN),
    # [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store, got error: ...
    row(r"ncclUniqueId from \[0\] via c10d.*got error", "rank_crashed", Grade.ECHO, "rendezvous_misconfig",
        tag="store",
        meaning="rank 0 never told the others where to meet: its own log says why"),
    # [c10d] The IPv4 network addresses of (node01, 29500) cannot be retrieved (gai error: -2 - ...).
    row(r"The IPv4 network addresses of .* cannot be retrieved|getaddrinfo failed|gaierror", "dns_failure",
        Grade.CERTAIN, "rendezvous_misconfig", fix="getent hosts NODE"),
    # [c10d] The IPv6 network addresses of (node01, 29500) cannot be retrieved (gai error: -2 - ...).
    row(r"The IPv6 network addresses of .* cannot be retrieved", "dns_failure", Grade.POSSIBLE, "rendezvous_misconfig",
        passing=True),
    # RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(
    row(r"Detected mismatch between collectives on ranks|Collectives differ in the following aspects",
        "collective_mismatch", Grade.CERTAIN),
    # Culprit rank 22; Error type: SIZE_OR_SYNTAX_MISMATCH
    row(r"Error type: \w*MISMATCH", "collective_mismatch", Grade.LIKELY, "slow_rank_timeout"),
    # ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 974) of binary: ...
    Signature(re.compile(r"\bexitcode ?: (-?\d{1,5})\b"), _exit),
    # [E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, ...)
    row(r"(?:Watchdog caught|caught) collective operation timeout|Timeout at NCCL work|timed out in blocking wait",
        "slow_rank_timeout", Grade.ECHO, "rank_crashed", "collective_mismatch", tag="waits"),
    # [E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 5] Heartbeat monitor timed out!
    row(r"Heartbeat monitor timed out|RuntimeError: Socket Timeout|wait timeout after \d+ms", "slow_rank_timeout",
        Grade.ECHO, "rank_crashed", "collective_mismatch", tag="waits"),
    # with training_args.main_process_first(desc="dataset map pre-processing"):
    row(r"main_process_first\(|rank_zero_first\(|torch_distributed_zero_first\(", "slow_rank_timeout"),
    # Running tokenizer on dataset:  88%|########  | 383700/433643 [29:55<03:25, 2432.70 examples/s]
    row(r"(?:^|\s)(?:Map|Filter|[Tt]okeniz|[Pp]repar|[Pp]re-?process|[Dd]ownload|Generating|[Ss]aving|[Cc]ach|Extract|"
        r"Building|Convert|Evaluat|Validat|Running tokenizer)[^|]{0,80}\d%\|",
        "slow_rank_timeout", Grade.LIKELY, context=True, explains=_WAITS,
        meaning="one rank works on its own longer than the others wait for it"),
)  # fmt: skip
