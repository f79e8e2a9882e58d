"""torch.distributed: gloo, the c10d rendezvous, the watchdog (which shows only the ranks that wait) and torchrun."""

from __future__ import annotations

import re
from dataclasses import replace

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.signals import HANGUP, of_exit_code, of_signal
from ncheck.triage.signature import LineClue, Signature, row

_GLOO = frozenset({"gloo"})

_HOSTNAME_IS_LOOPBACK = LineClue("hostname_loopback", Grade.CERTAIN, ("gloo_bad_address", "wrong_nic"), explains=_GLOO,
                                 look='getent hosts "$(hostname)"')  # fmt: skip

_UNREACHABLE = LineClue("gloo_bad_address", Grade.POSSIBLE, ("hostname_loopback", "wrong_nic", "firewall"), "gloo",
                   meaning="gloo's ranks cannot reach each other's addresses", look="ip -br address")  # fmt: skip

_FILTERED = LineClue("firewall", Grade.LIKELY, ("gloo_bad_address", "routing", "wrong_nic"), "gloo")


def _gloo_pair(match: re.Match[str]) -> LineClue:
    """Return the clue of the address and the error of a connection that gloo could not make."""
    if match["address"].startswith(("127.", "::1", "::ffff:127.")):
        return _HOSTNAME_IS_LOOPBACK
    return _FILTERED if re.search(r"No route|timed out", match["error"]) else _UNREACHABLE


_WAITS = frozenset({"waits"})

_EXITED = LineClue("rank_crashed", Grade.ECHO)


def _exit(match: re.Match[str]) -> LineClue | None:
    code = int(match[1])
    if code == 0:
        return None
    return of_exit_code(code) or _EXITED


_HANGUP_OF_AGENT = replace(HANGUP, meaning=f"{HANGUP.meaning}; torchrun handles this signal itself, so that nohup alone"
                           " does not keep it away")  # fmt: skip


def _of_agent(match: re.Match[str]) -> LineClue:
    """Return the clue of a signal that ended torchrun, which has handlers of its own (elastic/multiprocessing)."""
    clue = of_signal(match["signal"])
    return _HANGUP_OF_AGENT if clue is HANGUP else clue


def _barrier(match: re.Match[str]) -> LineClue:
    """Return the clue of a store's barrier: more workers than the world size are those of an earlier run."""
    world, workers = int(match[1]), int(match[2])
    stale = "more ranks joined than the world size: the store of an earlier run was used again"
    missing = f"{world - workers} of {world} ranks never joined: did they start, and do they reach rank 0?"
    return LineClue("rendezvous_misconfig", Grade.LIKELY if workers > world else Grade.POSSIBLE, ("rank_crashed",
        "firewall"), "store",
                   meaning=stale if workers > world else missing)  # fmt: skip


def _clients(match: re.Match[str]) -> LineClue:
    missing = int(match["all"]) - int(match["came"])
    return LineClue("rendezvous_misconfig", Grade.POSSIBLE, ("rank_missing", "rank_crashed", "firewall"), "store",
                    meaning=f"{missing} of {match['all']} processes did not come to the rendezvous: did they start, and"
                    " do they reach rank 0?")  # fmt: skip


SIGNATURES = (
    # timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:14215
    Signature(expression(r"SO_ERROR: (?P<error>[^,]{0,80}),? remote=\[(?P<address>[^\]]{0,80})\]"), _gloo_pair),
    # [.../gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:19033: Connection refused
    Signature(expression(r"pair\.cc:\d+\] connect \[(?P<address>[^\]]*)\]:\d+: (?P<error>.*)"), _gloo_pair),
    # remote=[127.0.0.1]:14215
    row(r"^\s*remote=\[127\.", "hostname_loopback", Grade.CERTAIN, "gloo_bad_address", "wrong_nic", context=True,
        explains=_GLOO),
    # RuntimeError: Gloo connectFullMesh failed with [.../pair.cc:144] no error
    row(r"Gloo connectFullMesh failed", "gloo_bad_address", Grade.POSSIBLE, "hostname_loopback", "wrong_nic",
        "firewall", tag="gloo", look="ip -br address"),
    # [W ProcessGroupGloo.cpp:721] Warning: Unable to resolve hostname to a (local) address. Using the loopback address
    row(r"Unable to resolve hostname to a \(local\) address", "hostname_loopback", Grade.LIKELY, "gloo_bad_address",
        "wrong_nic", context=True, explains=_GLOO),
    # RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth9
    row(r"Unable to find address for:", "no_interface", Grade.CERTAIN, "gloo_bad_address", "wrong_nic"),
    # [enforce fail at gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find interface for: [10.1.0.9]
    row(r"Unable to find interface for:|makeDeviceForHostname\(\)|gloo/transport/tcp/device\.cc.*(?:bind|rv != -1)",
        "gloo_bad_address", Grade.CERTAIN, "hostname_loopback", "wrong_nic"),
    # [enforce fail at gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 256000 vs 128000
    row(r"op\.preamble\.length <= op\.nbytes|op\.getOpcode\(\) ==", "collective_mismatch", Grade.CERTAIN),
    # [enforce fail at gloo/transport/tcp/pair.cc:211] ss1.ss_family == ss2.ss_family. 2 vs 10
    row(r"ss1\.ss_family == ss2\.ss_family", "gloo_bad_address", Grade.LIKELY, "wrong_nic",
        meaning="one rank has an IPv4 address and another one an IPv6 address"),
    # [.../pair.cc:589] Read error [10.1.0.3]:3977: Connection reset by peer
    row(r"(?:Read|Write) error \[.{0,300}(?:reset by peer|Broken pipe)|Connection closed by peer \[", "rank_crashed",
        Grade.ECHO, "firewall", tag="gone"),
    # RuntimeError: [.../unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete
    row(r"Timed out waiting \d+ms for (?:recv|send) operation|Application timeout caused pair closure",
        "slow_rank_timeout", Grade.ECHO, "rank_crashed", "collective_mismatch", tag="waits"),
    # RuntimeError: Every node should have a unique IP address. Got 2 nodes with 1 unique IP addresses
    row(r"Every node should have a unique IP address", "wrong_nic", Grade.LIKELY, "gloo_bad_address", "same_hostname"),
    # [E socket.cpp:472] [c10d] The server socket has failed to listen on any local network address.
    row(r"failed to listen on any local network address|EADDRINUSE", "port_in_use", Grade.CERTAIN, tag="port"),
    # OSError: [Errno 98] Address already in use
    row(r"(?:RuntimeError|OSError|error|Error): (?:\[Errno 98\] )?Address already in use", "port_in_use", Grade.CERTAIN,
        tag="port"),
    # [W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29400 (errno: 98 - Address already in use).
    row(r"(?<!Call to bind failed: )(?<!Call to bind failed : )Address already in use",
        "port_in_use", Grade.POSSIBLE, tag="port", passing=True),
    # Timed out initializing process group in store based barrier (world_size=2, worker_count=1, timeout=0:30:00)
    Signature(expression(r"world_size=(\d{1,9}), worker_count=(\d{1,9}),"), _barrier),
    # torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/3 clients joined.
    Signature(expression(r"waiting for clients\. (?P<came>\d{1,6})/(?P<all>\d{1,6}) clients joined"), _clients),
    # torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients
    row(r"[Tt]imed out (?:after .{1,30} )?waiting for clients(?!\. \d+/\d+ clients joined)|"
        r"RendezvousTimeoutError|RendezvousClosedError",
        "rendezvous_misconfig", Grade.POSSIBLE, "rank_crashed", "firewall", tag="store",
        meaning="not all ranks came to the rendezvous: did they start, and do they reach rank 0?"),
    # ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected
    row(r"environment variable \w+ expected, but not set|error initializing torch\.distributed using|"
        r"Error initializing torch\.distributed using",
        "rendezvous_misconfig", Grade.CERTAIN),
    # [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store, got error: ...
    row(r"ncclUniqueId from \[0\] via c10d.*got error", "rank_crashed", Grade.ECHO, "rendezvous_misconfig",
        tag="store",
        meaning="rank 0 did not publish its address: see the log of rank 0"),
    # [c10d] The IPv4 network addresses of (node01, 29500) cannot be retrieved (gai error: -2 - ...).
    row(r"The IPv4 network addresses of .* cannot be retrieved|getaddrinfo failed|gaierror", "dns_failure",
        Grade.CERTAIN, "rendezvous_misconfig", look='getent hosts "$MASTER_ADDR"'),
    # [c10d] The IPv6 network addresses of (node01, 29500) cannot be retrieved (gai error: -2 - ...).
    row(r"The IPv6 network addresses of .* cannot be retrieved", "dns_failure", Grade.POSSIBLE, "rendezvous_misconfig",
        passing=True),
    # RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(
    row(r"Detected mismatch between collectives on ranks|Collectives differ in the following aspects",
        "collective_mismatch", Grade.CERTAIN),
    # Culprit rank 22; Error type: SIZE_OR_SYNTAX_MISMATCH
    row(r"Error type: \w*MISMATCH", "collective_mismatch", Grade.LIKELY, "slow_rank_timeout"),
    # ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 974) of binary: ...
    # [launch.py:321:sigkill_handler] ['/usr/bin/python3', '-u', 'train.py'] exits with return code = -9
    Signature(expression(r"\b(?:exitcode ?:|exits with return code =) (-?\d{1,5})\b"), _exit),
    # [E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, ...)
    row(r"[Cc]aught collective operation timeout|Timeout at NCCL work|timed out in blocking wait",
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
        meaning="one rank works alone for longer than the timeout of the others"),
    # [W ProcessGroupNCCL.cpp:1745] [PG 0 Rank 1] Failed to check the "should dump" flag on TCPStore
    row(r"Failed to check the .{0,20}should.?dump.{0,5} flag|TCPStore server has shut down too early|"
        r"(?:recvValue|sendBytes|recvBytes|recvVector|recvString|waitForInput|sendValue|getStore|"
        r"check)\w* failed on Socket"
        r"|failed to recv, got 0 bytes|Failed to recv, got 0 bytes|"
        r"failed to (?:shutdown the rendezvous|send a keep-alive heartbeat)|keep-alive heartbeat .{0,80}failed due to",
        "rank_crashed", Grade.ECHO, "firewall", tag="gone"),
    # [E ProcessGroupNCCL.cpp:690] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA
    row(r"Some NCCL operations have failed or timed out|"
    r"To avoid data inconsistency, we are taking the entire process down|"
        r"watchdog got stuck for \d+ ?(?:ms|s|seconds|milliseconds)|Received a (?:dump|global timeout) signal|"
        r"Observed (?:flight recorder dump|.{0,30}timeout) signal from another rank|"
        r"failure detected by watchdog at work sequence|detected by watchdog at work: \d+",
        "slow_rank_timeout", Grade.ECHO, "rank_crashed", "collective_mismatch", tag="waits"),
    # [E] watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error
    row(r"remote process exited or there was a network error|"
        r"[Ww]atchdog thread terminated with exception: (?!.{0,200}[Tt]imeout)", "rank_crashed", Grade.ECHO, "firewall",
        "ib_fabric", tag="gone"),
    #     - [3] joined but didn't finish collective #12 (count from 1)
    row(r"\[(?P<rank>\d{1,6})[\d, ]{0,400}\] (?:never joined any|joined but didn't finish|finished) collectives?",
        "slow_rank_timeout", Grade.POSSIBLE, "rank_crashed", "collective_mismatch",
        meaning="a rank did not join the collective that the others wait in"),
    # Rendezvous'ing worker group: The rendezvous state is corrupt. See inner exception for details.
    row(r"rendezvous state is corrupt|RendezvousParameterError|[Ii]nvalid (?:value for )?--?-?rdzv|"
        r"The (?:rdzv|rendezvous) endpoint .{0,80}(?:invalid|not valid|must)|"
        r"--nnodes .{0,60}(?:invalid|must)|node_rank .{0,40}(?:should be|must be) less than",
        "rendezvous_misconfig", Grade.LIKELY),
    # torch.distributed.DistStoreError: use_libuv was requested but PyTorch was built without libuv support
    row(r"use_libuv was requested but PyTorch was built without", "version_mismatch", Grade.CERTAIN,
        "rendezvous_misconfig", fix="export USE_LIBUV=0"),
    # [E socket.cpp] [c10d] The server could not be initialized on any address: Cannot assign requested address
    row(r"(?:server could not be initialized|server socket).{0,200}(?:Cannot assign requested address|EADDRNOTAVAIL)|"
        r"name: EADDRNOTAVAIL|\[c10d\] (?!The client).{0,200}Cannot assign requested address|无法指定被请求的地址",
        "rendezvous_misconfig", Grade.LIKELY, "container_isolation", "hostname_loopback",
        meaning="rank 0 does not have the rendezvous address: it is that of another machine", look="ip -br address"),
    # [../third_party/gloo/gloo/transport/tcp/pair.cc:534] writev [10.1.0.3]:4021: Connection reset by peer
    row(r"(?:writev|readv|read|write) \[[^\]]{1,80}\]:\d+: (?:Connection|Broken|Success|"
    r"No)", "rank_crashed", Grade.ECHO,
        "firewall", tag="gone"),
    # torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL
    Signature(expression(r"process (?P<rank>\d{1,6}) terminated with signal (?P<signal>SIG\w{1,10})"),
              lambda match: of_signal(match["signal"])),
    # torch.multiprocessing.spawn.ProcessRaisedException: -- Process 3 terminated with the following error:
    row(r"[Pp]rocess (?P<rank>\d{1,6}) terminated with (?:the following error|"
    r"exit code \d+)", "rank_crashed", Grade.ECHO,
        tag="gone"),
    # CPU/gloo: RuntimeError: No backend type associated with device type cpu
    row(r"No backend type associated with device type|Tensors must be (?:CUDA and dense|contiguous)|"
        r"ProcessGroup\w+ does not support|is not (?:supported|implemented) (?:for|by) (?:backend )?(?:gloo|nccl|"
        r"mpi)\b|"
        r"Invalid (?:scalar|data) type|Unconvertible NCCL type",
        "rank_crashed", Grade.LIKELY, "collective_mismatch", kind="exception",
        meaning="a collective was called with a tensor that the backend cannot send"),
    # WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers
    Signature(expression(r"Received (?P<signal>[\w.]{1,20}) death signal, shutting down"), _of_agent),
    # torch.distributed.elastic.multiprocessing.api.SignalException: Process 4021 got signal: 1
    Signature(expression(r"SignalException: Process \d+ got signal: (?P<signal>\w{1,20})"), _of_agent),
    # torch/distributed/elastic/multiprocessing/api.py:897] Sending process 18562 closing signal SIGTERM
    Signature(expression(r"Sending process \d+ closing signal (?P<signal>SIG\w{1,10})"),
              lambda match: of_signal(match["signal"])),
    # ERROR:torch.distributed.elastic.agent.server.api:Error waiting on exit barrier. Elapsed: 300.1 seconds
    row(r"Error waiting on exit barrier|The worker group failed|attempts to join the next round of a rendezvous", "",
        Grade.ECHO, tag="gone"),
    # RuntimeError: Ping failed, invalid value returned from server. Expected: 71, Got: 0
    row(r"Ping failed, invalid value returned from server|(?:[Ii]nvalid|[Uu]nexpected|wrong) magic (?:number )?.{0,40}"
        r"(?:client|handshake|store)|(?:Stop_waiting|wait_canceled|ready or not_ready) response (?:is )?expected",
        "rendezvous_misconfig", Grade.POSSIBLE, "version_mismatch", "port_in_use", tag="store",
        meaning="the program at the rendezvous address is not this job's store: another version, or another program"),
    # [gloo/transport/tcp/pair.cc:144] Connect timeout [10.1.0.3]:4021
    row(r"\bConnect timeout \[", "firewall", Grade.POSSIBLE, "gloo_bad_address", "wrong_nic", tag="gloo"),
    # [gloo/transport/tcp/pair.cc:144] Read timeout [10.1.0.3]:4021
    row(r"\b(?:Read|Write|Send) timeout \[|Socket (?:unexpectedly )?closed \[", "rank_crashed", Grade.ECHO, "firewall",
        tag="gone"),
    # RuntimeError: Rank 3 failed to pass monitoredBarrier in 1800000 ms
    row(r"[Rr]anks? (?P<rank>\d{1,6})[\d, ]{0,400} failed to pass monitoredBarrier", "slow_rank_timeout",
        Grade.POSSIBLE, "rank_crashed", "collective_mismatch", meaning="a rank did not reach a barrier in time"),
    # RuntimeError: The rendezvous timeout of 900s was exceeded
    row(r"rendezvous timeout .{0,40}exceeded|You need to manually pass in .{0,3}main_process_\w{2,8}",
        "rendezvous_misconfig", Grade.LIKELY, "rank_crashed", "firewall", tag="store"),
    # RuntimeError: The detected CUDA version (11.8) mismatches the version that was used to compile PyTorch (12.1).
    row(r"detected CUDA version .{1,40} mismatches the version|"
        r"were compiled with different (?:CUDA )?(?:major )?versions",
        "version_mismatch", Grade.LIKELY, "rank_crashed"),
)  # fmt: skip
