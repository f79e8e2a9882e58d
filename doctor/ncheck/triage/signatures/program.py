"""The program itself: exceptions, host memory, files, NaN, assertions, signals. `kind` says which."""

from __future__ import annotations

import re
from dataclasses import replace

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.signals import of_signal
from ncheck.triage.signature import NO_LIBRARY, REGISTER, LineClue, Signature, row

# What may stand before a message: [rank3]:, [1,5]<stderr>:, 12: of srun -l, (Worker pid=77), a time, a pod's name.
_BEFORE = r"(?:^|[\]\)>|:] ?|\d(?:Z|[+-]\d\d:?\d\d)? |ERROR ?-? ?|[\w/.-]\s)"

# Exceptions of connections and of other processes: another rank ended first, or the network failed.
_ECHOES = expression(
    r"Connection|BrokenPipe|EOFError|Timeout|ChildFailed|CalledProcess|ProcessRaised|ProcessExited|DistBackend|"
    r"DistStore|"
    r"DistNetwork|HorovodInternal|WorkerCrashed|ActorDied|RayActor|RayTask|EngineDead|Interrupt|SystemExit|"
    r"StopIteration|"
    r"Cancelled|SignalException"
)

# Exceptions that Python itself raises for the program's own mistakes and for the machine.
_OWN = expression(
    r"(?:Value|Key|Index|Type|Attribute|Assertion|Name|UnboundLocal|UnicodeDecode|UnicodeEncode|ZeroDivision|"
    r"JSONDecode|"
    r"NotImplemented|Recursion|Syntax|Indentation|Overflow|FloatingPoint|Lookup|FileNotFound|FileExists|IsADirectory|"
    r"NotADirectory|Permission|ModuleNotFound|Import|Memory)Error$"
)


def _exception(match: re.Match[str]) -> LineClue | None:
    """Return the clue of the last line of a traceback."""
    name = match["exception"].rpartition(".")[2]
    if name == "SystemExit" and match.string[match.end() :].strip() in ("0", "None"):
        return None
    if name == "KeyboardInterrupt":
        return replace(of_signal("SIGINT"), grade=Grade.ECHO, passing=True, fallback=True)
    if _ECHOES.search(name):
        return LineClue(
            "rank_crashed", Grade.ECHO, ("firewall",), "gone", kind="exception", passing=True, fallback=True
        )
    grade = Grade.LIKELY if _OWN.search(name) else Grade.POSSIBLE
    kind = "assertion" if name == "AssertionError" else "exception"
    return LineClue("rank_crashed", grade, kind=kind, passing=True, fallback=True,
                    meaning=f"a rank stopped with {name} in its own program")  # fmt: skip


_LOCKED = (
    "a process waits for a lock file, of a cache or a build: one that no living process holds was left by an earlier"
    " run, and can be removed"
)

_SHM = r"(?!.{0,200}(?:/dev/shm|nccl-|torch_|inotify))"

# Libraries whose names come and go with their versions.
_LIBRARIES = (
    r"(?:torch|torchvision|tensorflow|keras|numpy|scipy|jax|jaxlib|flax|mxnet|paddle|oneflow|horovod|deepspeed|apex|"
    r"transformers|accelerate|datasets|lightning|pytorch_lightning|megatron|ray|vllm|triton|PIL|pandas|nvidia)"
)


def _other_version(match: re.Match[str]) -> LineClue:
    """Return the clue of a name that a library does not have."""
    library = (match["attribute"] or match["module"]).partition(".")[0]
    return LineClue(
        "version_mismatch", Grade.LIKELY, ("rank_crashed",), kind="exception", passing=True,
        meaning=f"the installed version of {library} lacks a name that the program uses: which version does it expect?",
        look=f"python3 -m pip show {library}",
    )  # fmt: skip


# What only shows the state of the machine: a job does without it.
_SHOWS = r"ib(?:stat|status|v_\w{1,40}|dev2netdev|linkinfo|netdiscover|hosts)\b|sminfo\b|mlxlink\b|show_gids\b"

# The packages with which a program is built that uses the library: in Debian's words, and in Red Hat's.
_TO_BUILD = {
    "ibverbs": ("libibverbs-dev", "rdma-core-devel"), "mpi": ("libopenmpi-dev", "openmpi-devel"),
    "nccl": ("libnccl-dev", "libnccl-devel"), "numa": ("libnuma-dev", "numactl-devel"),
    "rdmacm": ("librdmacm-dev", "rdma-core-devel"),
}  # fmt: skip


def _not_linked(match: re.Match[str]) -> LineClue:
    """Return the clue of a library that a linker does not find."""
    deb, rpm = _TO_BUILD.get(match["name"], ("", ""))
    return LineClue(
        "version_mismatch", Grade.CERTAIN, kind="file", passing=True,
        meaning=f"a program cannot be built: the linker finds no lib{match['name']}; its development package has it",
        fix=f"sudo apt-get install {deb} || sudo dnf install {rpm}" if deb else "",
        look=f"ldconfig -p | grep lib{match['name']}",
    )  # fmt: skip


SIGNATURES = (
    # /usr/bin/ld: cannot find -lnuma: No such file or directory
    Signature(expression(
        r"\bld(?:\.\w{1,8})?: (?:cannot|unable to) find (?:library )?-l(?P<name>[a-z][a-z0-9_]{1,40})"),
        _not_linked),
    # AttributeError: module 'tensorflow' has no attribute 'ConfigProto'
    Signature(expression(
        rf"AttributeError: (?:partially initialized )?module '(?P<attribute>{_LIBRARIES}(?:\.\w{{1,60}}){{0,8}})' has "
        r"no attribute|"
        rf"ImportError: cannot import name \S{{1,80}} from '(?P<module>{_LIBRARIES}(?:\.\w{{1,60}}){{0,8}})'"),
        _other_version),
    # numpy.core._exceptions._ArrayMemoryError: Unable to allocate 512. GiB for an array
    row(r"\bMemoryError\b|ArrayMemoryError|std::bad_alloc|DefaultCPUAllocator: "
        r"(?:can't|not enough memory)|Unable to allocate [\d.]+ [KMGTP]iB for an array|\bOutOfMemoryError: Java heap",
        "rank_crashed", Grade.LIKELY, kind="memory", passing=True,
        meaning="a rank could not allocate host memory", look="free -h"),
    # fork: Cannot allocate memory
    row(r"Cannot allocate memory|无法分配内存|内存不足|内存溢出", "rank_crashed", Grade.POSSIBLE, "memlock_limit",
        kind="memory",
        passing=True, fallback=True, meaning="a rank could not allocate host memory", look="free -h"),
    # OSError: [Errno 12] Cannot allocate memory: '/data/shard-3'
    row(r"\[Errno 12\] Cannot allocate memory", "rank_crashed", Grade.LIKELY, "memlock_limit", kind="memory",
        passing=True, meaning="a rank could not allocate host memory", look="free -h"),
    # Memory cgroup out of memory: Killed process 4021 (python3) total-vm:9000kB
    row(r"[Mm]emory cgroup out of memory|oom_kill_process|invoked oom-killer|reached its memory limit",
        "rank_crashed", Grade.CERTAIN, "gpu_oom", kind="memory",
        meaning="the machine or its container ran out of memory and killed a rank", look="sudo journalctl -k -g oom"),
    # NaN detected in loss, aborting
    row(r"\b(?:[Nn]a[Nn]|NAN|[Ii]nf(?:inite|inity)?|INF|non-finite|Non-finite)\b.{0,60}\b(?:detected|found|encountered|"
        r"in (?:the )?(?:loss|grad\w*|tensor|output|activations?))\b|"
        r"(?<!best )(?<!val )\b[Ll]oss (?:is|became|diverged to|=|:|was)? ?"
        r"(?:[Nn]a[Nn]|NAN|[Ii]nf(?:inity)?|non-finite)\b|"
        r"(?<!best )(?<!best_)(?<!best_val_)(?<!val )\b[Ll]oss\W{1,4}(?:nan|NaN|inf)\b|"
        r"(?:returned|contains|has|have|got|produced) (?:nan|NaN)s?\b(?: values?)?|[Tt]raining (?:has )?diverged|"
        r"found NaN in (?:local )?(?:forward )?(?:grad|loss)|"
        r"probability tensor contains either .inf|found invalid values:.{0,40}\bnan|NanLossDuringTraining|"
        r"Function '\w+' returned nan values in its",
        "diverged", Grade.LIKELY, "rank_crashed", kind="nan", passing=True),
    # FloatingPointError: Loss is infinite or NaN!
    row(r"FloatingPointError: .{0,100}(?:[Nn]a[Nn]|[Ii]nf)|[Ll]oss scale.{0,60}(?:minimum|too small|decreased to 1e)|"
        r"[Cc]urrent loss scale already at minimum",
        "diverged", Grade.CERTAIN, "rank_crashed", kind="nan", passing=True),
    # ModuleNotFoundError: No module named 'flash_attn'
    row(r"(?:^|[\s:>\])])(?:ModuleNotFound|Import)Error: (?!lib(?!nccl|cuda|cudart|cublas|torch|c10|ibverbs|mlx|"
        r"rdmacm|efa)"
        r"[\w.+-]{1,80}: cannot open)(?!cannot import name \S{1,80} from '(?:" + _LIBRARIES + r")\b)|DLL load"
        r" failed while importing", "rank_crashed",
        Grade.LIKELY, "version_mismatch", kind="import", passing=True,
        meaning="the Python interpreter of a rank cannot import a module", look="python3 -m pip check"),
    # FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'
    row(r"FileNotFoundError: |IsADirectoryError: |NotADirectoryError: |OSError: \[Errno 2\]|"
        r"can't open file '?[^\s']{1,300}'?: \[Errno 2\]|OSError: Can't load (?:tokenizer|config|model|the)|"
        r"does not appear to have a file named|Can't find '?[\w.-]{1,100}\.json'? ",
        "rank_crashed", Grade.LIKELY, kind="file", passing=True, meaning="a rank does not find a file", look="df -h"),
    # PermissionError: [Errno 13] Permission denied: '/scratch/out'
    row(r"PermissionError: |\[Errno 13\] Permission denied|\[Errno 1\] Operation not permitted|"
        r"\[Errno 30\] |[Rr]ead-only file system|只读文件系统",
        "rank_crashed", Grade.LIKELY, kind="permission", passing=True,
        meaning="a rank has no permission for a file", look="id"),
    # bash: ./train.sh: Permission denied
    row(r"(?:bash|sh|zsh): (?:line \d+: )?\S{1,300}: (?:Permission denied|权限不够|权限被拒绝)|execve\(\): \S{1,300}: "
        r"Permission denied|exec: \S{1,200}: permission denied",
        "rank_crashed", Grade.LIKELY, "ssh_auth", kind="permission",
        meaning="the program may not be executed", look="ls -l"),
    # bash: line 1: python3: command not found
    row(r"(?:bash|sh|zsh|env|slurm_script|execve\(\)|timeout|nohup)['\"]?: (?:line \d+: |\d+: )?(?!orted|prted|hydra|"
        + _SHOWS + r"|/\S{1,200}(?:orted|prted))\W?[\w./+-]{1,200}\W?: (?:command not found|not found|"
        r"No such file or directory|未找到命令|没有那个文件或目录)|"
        r"^(?!zsh:|\S{0,200}(?:orted|prted|hydra)|" + _SHOWS + r")[\w./+-]{1,100}: command not found|"
        r"zsh: command not found: (?!orted|prted|" + _SHOWS + r")|"
        r"找不到命令",
        "rank_crashed", Grade.LIKELY, "mpi_daemon_missing", kind="file", meaning="a program or file of the job was not "
        "found on a node: another PATH, or no such path there", look="command -v python3"),
    # python3: error while loading shared libraries: libmpi.so.40: cannot open shared object file
    row(r"error while loading shared libraries: (?P<library>lib[\w.+-]{1,100}): cannot open shared object",
        "version_mismatch", Grade.LIKELY, "mpi_daemon_missing", "rank_crashed", kind="import",
        meaning=NO_LIBRARY, fix=REGISTER, look="ldconfig -p | grep {library}"),
    # OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_100.pt'
    row(r"^" + _SHM + r".{0,2000}(?:No space left on device|设备上没有空间|磁盘空间不足|磁盘已满)", "disk_full",
        Grade.LIKELY,
        "shm_too_small", "rank_crashed", kind="disk", passing=True),
    # OSError: [Errno 122] Disk quota exceeded
    row(r"Disk quota exceeded|\[Errno 122\]|超出磁盘限额", "disk_full", Grade.CERTAIN, "rank_crashed", kind="disk",
        meaning="a quota is used up", look="quota -s"),
    # RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 64 vs 0
    row(r"\. unexpected pos \d+ vs \d+|PytorchStreamWriter failed writing", "disk_full", Grade.LIKELY, "rank_crashed",
        kind="disk", passing=True, meaning="a checkpoint could not be written: usually the disk is full",
        look="df -h ."),
    # RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory
    row(r"inline_container\.cc:\d+\](?!.{0,40}unexpected pos)|PytorchStreamReader failed reading|"
        r"SafetensorError|unexpected EOF, expected \d+ more bytes|file may be corrupted|"
        r"(?<!no )[Cc]heckpoint .{0,100}\bis corrupt(?:ed)?\b",
        "rank_crashed", Grade.LIKELY, "disk_full", kind="file", passing=True,
        meaning="a checkpoint or data file could not be written or read", look="df -h ."),
    # OSError: [Errno 5] Input/output error
    row(r"\[Errno (?:5|116)\] |[Ss]tale (?:NFS )?file handle|过[时期]的文件句柄|失效文件句柄|输入/输出错误|"
        r"Input/output error|\[Errno 70\]", "storage_hang", Grade.LIKELY,
        "disk_full", "rank_crashed", kind="disk", meaning="a file system failed: a disk, or the server of a mount",
        look="dmesg | tail"),
    # OSError: [Errno 37] No locks available
    row(r"\[Errno 37\]|\bNo locks available|\bENOLCK\b|File locking failed in ADIOI",
        "storage_hang", Grade.LIKELY, "rank_crashed", kind="disk",
        meaning="the file system has no locks, or its lock service does not answer, as on NFS", look="mount -t nfs4"),
    # BlockingIOError: [Errno 11] Unable to create file (unable to lock file, errno = 11, error message = 'Resource
    row(r"unable to lock file, errno", "storage_hang", Grade.POSSIBLE, "deadlock", "rank_crashed", kind="lock",
        meaning="HDF5 cannot lock its file: another process has it open, or the file system has no locks",
        fix="export HDF5_USE_FILE_LOCKING=FALSE"),
    # filelock._error.Timeout: The file lock '/nfs/cache/.lock' could not be acquired.
    row(r"The file lock '(?P<lock>[\w./-]{1,200})' could not be acquired", "deadlock", Grade.POSSIBLE, "storage_hang",
        "rank_crashed", kind="lock", meaning=_LOCKED, look="fuser -v {lock}"),
    #   File "/opt/torch/utils/file_baton.py", line 42, in wait
    row(r"torch/utils/file_baton\.py\S{0,3} line \d+, in wait", "deadlock", Grade.POSSIBLE, "slow_rank_timeout",
        "storage_hang", kind="lock", meaning=_LOCKED, look="find ~/.cache/torch_extensions -name lock"),
    #     Blocking waiting for file lock on build directory
    row(r"waiting for file lock\b|[Ww]aiting (?:for|to acquire) (?:the |a )?(?:file )?lock\b|sqlite3\.\w{1,40}: "
        r"database is locked|(?:[Cc]ould not|[Ff]ailed to|[Uu]nable to) (?:acquire|obtain|get) (?:the |a )?"
        r"(?:\w{1,20} )?lock\b",
        "deadlock", Grade.POSSIBLE, "storage_hang", "slow_rank_timeout", kind="lock", passing=True, meaning=_LOCKED,
        look="lslocks"),
    # python3: malloc.c:2617: sysmalloc: Assertion `(old_top == initial_top (av)' failed.
    row(r"Assertion [`'\"].{0,300} failed\b|"
        r"^(?!.{0,100}NVRM: ).{0,2000}Assertion failed(?:: | in file )|Assertion `|assertion failed: |"
        r"corrupted (?:size vs\. prev_size|double-linked list)|double free or corruption|free\(\): invalid|"
        r"malloc\(\): |double free detected|"
        r"libc\+\+abi: terminating|munmap_chunk\(\)|stack smashing detected|pure virtual method called",
        "rank_crashed", Grade.LIKELY, "software_bug", "version_mismatch", kind="assertion",
        meaning="a rank stopped in native code: an assertion, or damaged memory", look="ulimit -c unlimited"),
    # F1122 13:50:47.079073 63928 user_op.cpp:299] Check failed: it != arg2tensor_desc_.end() Cannot find input
    row(r"\bF\d{4,8} .{0,80}\] Check failed: (?!.{0,300}(?:Machine \d+ lost|nccl|cuda|CUDA|No route to|"
        r"Connection |unreachable|already in use|Cannot assign|bound_port))|"
        r"terminate called after throwing an instance of '(?!c10|std::bad_alloc|gloo)",
        "rank_crashed", Grade.POSSIBLE, "software_bug", kind="assertion",
        meaning="a rank stopped in native code: a check of its own failed", look="ulimit -c unlimited"),
    # Fatal Python error: Segmentation fault
    row(r"Fatal Python error: (?!Aborted)", "rank_crashed", Grade.LIKELY, "software_bug", "version_mismatch",
        kind="segfault", meaning="the Python interpreter of a rank crashed", look="export PYTHONFAULTHANDLER=1"),
    # 段错误 (核心已转储)
    row(r"段错误|浮点数例外|吐核|(?<!总线错误 )(?<!已放弃 )(?<!已中止 )\(核心已转储\)|"
        r"(?<!Bus error )(?<!Aborted )\(core dumped\)|Illegal instruction|"
        r"[Ff]loating point exception",
        "rank_crashed", Grade.LIKELY, "software_bug", "arch_unsupported", kind="segfault",
        meaning="a rank crashed in native code", look="sudo journalctl -k -g segfault"),
    # 已杀死
    row(r"(?:^|[\s:>])已(?:被)?杀死\s*$", "rank_crashed", Grade.LIKELY, "gpu_oom", kind="killed",
        meaning="a rank was killed, usually because memory ran out", look="sudo journalctl -k -g oom"),
    # RuntimeError: DataLoader worker (pid(s) 2117, 2118) exited unexpectedly
    row(r"DataLoader worker \(pid(?:\(s\))? [\d, ]{1,200}\) (?:exited unexpectedly|is killed by signal: (?:Killed|Term"
        r"inated|Aborted))",
        "rank_crashed", Grade.LIKELY, "shm_too_small", kind="killed",
        meaning="a data loader's process died, usually because memory ran out", look="sudo journalctl -k -g oom"),
    # RuntimeError: Caught KeyError in DataLoader worker process 3.
    row(r"Caught \w{1,60} in (?:DataLoader worker process|replica) \d+", "rank_crashed", Grade.LIKELY,
        kind="exception", passing=True, meaning="the data loader of a rank stopped with an error", look="df -h"),
    # RuntimeError: Error(s) in loading state_dict for GPT:
    row(r"Error\(s\) in loading state_dict|size mismatch for [\w.]{1,200}: copying a param|Missing key\(s\) in state_"
        r"dict|mat1 and mat2 shapes cannot be multiplied|The size of tensor a \(\d+\) must match|"
        r"Expected all tensors to be on the same device|element \d+ of tensors does not require grad|"
        r"Trying to backward through the graph a second time|"
        r"Expected to have finished reduction in the prior iteration|"
        r"one of the variables needed for gradient computation has been modified|Input type \([\w.]{1,60}\) and weight",
        "rank_crashed", Grade.LIKELY, kind="exception", passing=True,
        meaning="a rank stopped with an error in its own program", look="export TORCH_DISTRIBUTED_DEBUG=DETAIL"),
    # train.py: error: unrecognized arguments: --local-rank=0
    row(r"\S{1,100}: error: unrecognized arguments: .{0,300}--local[-_]rank\b", "launcher_mismatch", Grade.LIKELY,
        "rank_crashed", kind="exception", meaning="torch.distributed.launch passes --local-rank, which the"
        " program does not"
        ' know: start it with torchrun, and read os.environ["LOCAL_RANK"]',
        look="python3 -m torch.distributed.run --help"),
    # train.py: error: unrecognized arguments: --lr=0.1
    row(r"\S{1,100}: error: (?:unrecognized arguments(?!: .{0,300}--local[-_]rank\b)|the following arguments are"
        r" required|argument |ambiguous option)|"
        r"^[Uu]nrecognized arguments:",
        "rank_crashed", Grade.LIKELY, "launcher_mismatch", kind="exception",
        meaning="the program does not know an option of its command line", look="ps -fC python3"),
    # huggingface_hub.errors.HfHubHTTPError: 401 Client Error: Unauthorized for url
    row(r"\b40[134] Client Error: |HfHubHTTPError|GatedRepoError|RepositoryNotFoundError|LocalEntryNotFoundError|"
        r"Max retries exceeded with url|NewConnectionError",
        "rank_crashed", Grade.LIKELY, "dns_failure", "firewall", kind="file", passing=True,
        meaning="a rank could not download a file", look="curl -sI https://huggingface.co"),
    # cp: 无法创建普通文件: 权限不够
    row(r"权限不够|权限被拒绝", "rank_crashed", Grade.POSSIBLE, "ssh_auth", kind="permission", passing=True,
        fallback=True, meaning="a rank has no permission for a file", look="id"),
    # [rank3]: RuntimeError: no more data
    # my.package.errors.DataError
    Signature(expression(
        _BEFORE + r"(?P<exception>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Failure))"
        r"(?::|\s*$)"), _exception),
    # Aborted (core dumped)
    row(r"(?:Aborted|已放弃|已中止) \((?:core dumped|核心已转储)\)", "", Grade.ECHO, tag="gone"),
    # RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xe
    row(r"compiled against A[BP]I version .{1,40} but this version of numpy", "version_mismatch", Grade.LIKELY,
        "rank_crashed"),
    # torch._dynamo.exc.Unsupported: call_function
    row(_BEFORE + r"(?:[A-Za-z_]\w{0,60}\.){1,8}(?:exc|_?exceptions?|_?errors?|lib)\.[A-Z]\w{0,60}: ", "rank_crashed",
        Grade.POSSIBLE, kind="exception", passing=True, fallback=True,
        meaning="a rank stopped with an exception in its own program"),
)  # fmt: skip
