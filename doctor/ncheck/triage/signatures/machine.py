"""The machine: shared memory, open files, killed and crashed processes, clocks."""

from __future__ import annotations

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.signals import NAMES, of_exit_code, of_signal
from ncheck.triage.signature import Signature, row

SIGNATURES = (
    # NCCL WARN Error: failed to extend /dev/shm/nccl-a1b2c3 to 9637892 bytes, error: No space left on device (28)
    row(r"(?:/dev/shm|posix_fallocate|shared memory segment|nccl-shm).*No space left on device", "shm_too_small",
        Grade.CERTAIN),
    # NCCL WARN Error: failed to extend /dev/shm/nccl-a1b2c3 to 9637892 bytes
    row(r"failed to extend /dev/shm/\S+ to \d+ bytes|posix_fallocate failed|Error while creating shared memory segment",
        "shm_too_small", Grade.LIKELY, "software_bug"),
    # NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-a1 (size 9637888), error: No such file
    row(r"Error while attaching to shared memory segment", "container_isolation", Grade.POSSIBLE, "same_hostname",
        "software_bug", meaning="a rank with the same hostname does not see the shared memory of the other"),
    # RuntimeError: unable to write to file </torch_1034_2891>: No space left on device (28)
    row(r"</torch_\w+>.*No space left on device|out of shared memory|insufficient shared memory|"
        r"not enough space for /dev/shm|not enough free space in /dev/shm",
        "shm_too_small", Grade.CERTAIN),
    # RuntimeError: DataLoader worker (pid 2117) is killed by signal: Bus error.
    row(r"Bus error", "shm_too_small", Grade.LIKELY, "rank_crashed", "gpu_fault"),
    # NCCL WARN socketTryAccept: Accept failed: Too many open files
    row(r"[Tt]oo many open files", "nofile_limit", Grade.CERTAIN, explains=frozenset({"port", "own-port"})),
    # kernel: Out of memory: Killed process 31337 (python3) total-vm:512000000kB
    row(r"Out of memory: Kill|oom-kill:|oom_reaper:|[Dd]etected \d+ oom.kill event|OOMKilled|out-of-memory handler",
        "rank_crashed", Grade.CERTAIN, "gpu_oom", kind="memory",
        meaning="the machine ran out of memory and killed a rank",
        look="sudo journalctl -k -g oom"),
    # command terminated with exit code 137
    Signature(expression(r"[Ee]xit(?:ed)?(?: with)?(?: (?:exit|return))?[ _]?(?:[Ss]tatus|[Cc]ode)?[:=]? {1,8}"
                         r"(1[2-4]\d)\b"),
              lambda match: of_exit_code(int(match[1]))),
    # train.service: Main process exited, code=killed, status=9/KILL
    Signature(expression(r"code=(?:killed|dumped), status=(\d{1,2})/"), lambda match: of_signal(match[1])),
    # the process got signal: killed
    row(r"signal 9\b|signal: killed|"
        r"\bSIGKILL\b(?! by OOM killer due to high)", "rank_crashed", Grade.LIKELY, "gpu_oom",
        meaning="a rank was killed, usually because memory ran out", kind="killed", look="sudo journalctl -k -g oom"),
    # [0]<stderr>:Killed
    row(r"(?:^|[:\s])Killed\s*$", "rank_crashed", Grade.LIKELY, "gpu_oom", kind="killed",
        meaning="a rank was killed",
        look="sudo journalctl -k -g oom"),
    # python3[4021]: segfault at 10 ip 00007f3a sp 00007ffc error 4 in libnccl.so.2.18.3[7f3a+200000]
    row(r"segfault at .{0,300} in libnccl", "software_bug", Grade.POSSIBLE, "rank_crashed", "version_mismatch"),
    # [node03:04021] *** Process received signal: Segmentation fault (11)
    row(r"Segmentation fault|\bsegfault at |Caught signal 11|\bSIGSEGV\b(?! or other)|"
        r"signal 11\b", "rank_crashed", Grade.LIKELY,
        "software_bug", "version_mismatch", kind="segfault"),
    # -> 10.1.0.3:6783 failed host clock skew of 33166s exceeds 900s limit
    row(r"clock skew of \d+|clock difference against peer|[Cc]lock skew too great|(?:Rewound|Expired) credential|"
        r"certificate .*is not yet valid", "clock_skew",
        Grade.CERTAIN),
    # /var/spool/slurmd/job812/slurm_script: line 28:  8156 Killed                  python3 train.py
    Signature(expression(rf"line \d+:\s{{1,9}}\d+ (?P<signal>{NAMES}|已杀死)"),
              lambda match: of_signal(match["signal"])),
    # ./run.sh: line 28:  8156 Trace/breakpoint trap   (core dumped) ./train
    row(r"line \d+:\s{1,9}\d+ (?:已放弃|Trace/breakpoint trap)|SIGILL\b|signal 4 ",
        "rank_crashed", Grade.LIKELY, "software_bug", "arch_unsupported", kind="segfault",
        meaning="a rank crashed in native code", look="sudo journalctl -k -g segfault"),
    # ./run.sh: 行 28:  8156 总线错误               (核心已转储) ./train
    row(r"总线错误", "shm_too_small", Grade.LIKELY, "rank_crashed", "gpu_fault"),
    # socket: 打开的文件过多
    row(r"打开的文件过多", "nofile_limit", Grade.CERTAIN, explains=frozenset({"port", "own-port"})),
    # bind: 地址已在使用
    row(r"地址已在使用|地址已被使用|端口.{0,12}被占用|端口冲突", "port_in_use", Grade.LIKELY, tag="port"),
    # OSError: [Errno 28] No space left on device: '/dev/shm/psm_77'
    row(r"No space left on device.{0,200}/dev/shm", "shm_too_small", Grade.CERTAIN),
    # RuntimeError: unable to open shared memory object </torch_77_88> in read-write mode
    row(r"unable to open shared memory object", "shm_too_small", Grade.POSSIBLE, "nofile_limit", "container_isolation"),
    # kernel: Killed process 4021 (python3), UID 1000, total-vm:9000kB, anon-rss:8000kB
    row(r"Killed process \d+ \(.{1,40}total-vm", "rank_crashed", Grade.CERTAIN, "gpu_oom", kind="memory",
        meaning="the machine ran out of memory and killed a rank", look="sudo journalctl -k -g oom"),
    # OSError: inotify_add_watch: No space left on device
    row(r"inotify.{0,80}(?:No space left|[Tt]oo many|limit (?:was )?(?:reached|exceeded))", "nofile_limit",
        Grade.LIKELY,
        fix="sudo sysctl fs.inotify.max_user_watches=1048576", look="sysctl fs.inotify"),
)  # fmt: skip
