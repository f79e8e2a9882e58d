"""What a process is doing, read from a stack: the innermost frame that has a meaning, and where in the user's code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import cache, lru_cache

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable
from ncheck.triage.facts.stacks import Frame, Task


class Kind(Enum):
    """What a position means. The value follows "rank 3 ", with the position's name in the place of {}."""

    # It waits for other ranks, or for the GPU, which may wait for other ranks.
    COLLECTIVE = "waits in {}"
    RENDEZVOUS = "waits for the other ranks in {}"
    GPU = "waits for its GPU"
    BACKWARD = "waits in backward()"
    # It waits for something of its own.
    LOADER = "waits for its data loader"
    LOCK = "waits for a lock, a queue or a thread"
    CHILD = "waits for a program that it started"
    SLEEP = "sleeps"
    PERSON = "waits for a person, in a debugger or for input"
    OUTPUT = "waits for the reader of its output"
    STORAGE = "waits for a file system"
    ENDING = "is ending"
    SERVICE = "serves requests"
    BLOCKED = "is blocked in {}"
    # It works.
    CHECKPOINT = "writes a checkpoint"
    LOADING = "loads a checkpoint"
    COMPILING = "compiles"
    DOWNLOADING = "talks to a server outside the job ({})"
    IMPORTING = "imports modules"
    EVALUATION = "evaluates"
    CODE = "is"


WAITS_FOR_RANKS = frozenset({Kind.COLLECTIVE, Kind.RENDEZVOUS, Kind.GPU, Kind.BACKWARD})
# Library code that waits may look again and again: what happens inside of it is no motion.
_WAITS = WAITS_FOR_RANKS | {
    Kind.LOADER, Kind.LOCK, Kind.CHILD, Kind.SLEEP, Kind.PERSON, Kind.ENDING, Kind.SERVICE, Kind.OUTPUT, Kind.STORAGE,
}  # fmt: skip


@dataclass(frozen=True)
class Position:
    """What a thread is at. `name` is the operation ("all_reduce"); `frame` the innermost frame of the user's own code,
    or if no frame is its `own`, what called the library.

    `path` are the frames that must stay the same if it does not move: (function, file, line), innermost first.
    """

    kind: Kind
    name: str = ""
    frame: Frame | None = None
    path: tuple[tuple[str, str, int], ...] = ()
    own: bool = False

    @property
    def where(self) -> str:
        """Return the place for people: "train.py:40 in train"."""
        return f"{self.frame.short}:{self.frame.line} in {_plain(self.frame.function)}" if self.frame else ""

    @property
    def shown(self) -> str:
        """Return what follows the name of a rank: "waits in all_reduce at train.py:40 in train"."""
        doing = self.kind.value.format(self.name)
        if self.kind is Kind.LOCK and self.name:
            doing = f"waits for the lock on {self.name}"
        if self.kind is Kind.STORAGE and self.name:
            doing = f"waits for a file system, in {self.name}"
        return f"{doing} at {self.where}" if self.where else "is in unknown code" if self.kind is Kind.CODE else doing

    @property
    def source(self) -> str:
        """Return the line of code in brackets, "" if it could not be read."""
        line = self.frame.source if self.frame else ""
        return f' ("{printable(line, 80)}")' if line else ""


def position_of(frames: Sequence[Frame]) -> Position:
    """Return what a thread with these frames is at; the innermost frame comes first."""
    frames = frames[: next((at for at, frame in enumerate(frames) if _is_start_of_process(frame)), len(frames))]
    inner = next((at for at, frame in enumerate(frames) if _is_own(frame)), None)
    kind, name, at = _meaning(frames, inner)
    # The program itself may be installed like a library: then it is the caller of the frame that has a meaning.
    user = frames[inner] if inner is not None else frames[min(at + 1, len(frames) - 1)] if frames else None
    first = (inner if inner is not None else at) if kind in _WAITS else 0
    path = tuple((frame.function, frame.short, frame.line) for frame in frames[first:])
    return Position(kind, name, user, path, inner is not None)


def _meaning(frames: Sequence[Frame], inner: int | None) -> tuple[Kind, str, int]:
    """Return the kind and name of a position, and the number of the frame that has this meaning."""
    found = next(((*known, at) for at, frame in enumerate(frames) if (known := _specific(frame))), None)
    if found and found[0] is Kind.IMPORTING and inner is not None and _runs_code(frames[: found[2]]):
        found = None
    ending = next((at for at, frame in enumerate(frames) if _ends(frame)), None)
    if ending is not None and (not found or found[0] not in WAITS_FOR_RANKS):
        done = any(_plain(frame.function) == DESTROYS for frame in frames)
        return Kind.ENDING, DESTROYS if done else "", ending
    if found and found[0] is Kind.RENDEZVOUS:
        called = next((name for frame in frames[found[2] :] if (name := _plain(frame.function)) in OF_ALL), "")
        return (Kind.COLLECTIVE, called, found[2]) if called else found
    if found:
        return found
    for at, frame in enumerate(frames[: 1 if inner is None else inner + 1]):
        if known := _general(frame) or (_of_source(frame) if at == 0 else None):
            return (*known, at)
    if any(_EVALUATION.fullmatch(_plain(frame.function)) for frame in frames if _is_own(frame)):
        return Kind.EVALUATION, "", 0
    return Kind.CODE, PATTERN if frames and _matches_text(frames[0]) else "", 0


DESTROYS = "destroy_process_group"
OF_ALL = frozenset({"new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group"})  # all ranks call them
STORE = "the store"
PATTERN = "a regular expression"
# re.match(r"(a+)+$", text) | WORDS.findall(text)
_MATCHES = expression(
    r"\b(?:re|regex|\w*(?:[Pp]attern|PATTERN|[Rr]egex|REGEX)\w*)\.(?:match|search|fullmatch|sub|findall|split)\("
)
_OF_PATTERNS = expression(r"^(?:re|re/__init__|regex/\w+)\.py$")


def _matches_text(frame: Frame) -> bool:
    return bool(_OF_PATTERNS.match(_in_library(frame)) or _MATCHES.search(frame.source))


def of_task(task: Task) -> Position | None:
    """Return what a thread waits for, as far as the kernel says it; None if it does not."""
    own_file = task.file.startswith("/") and not task.file.startswith(("/dev/", "/proc/", "/sys/"))
    own_file = own_file and "pipe" not in task.wchan  # a named pipe looks like a file
    if own_file and task.call in ("flock", "fcntl") and task.state != "D":
        return Position(Kind.LOCK, task.file)
    if (own_file and task.call in _ON_FILE) or (task.state == "D" and task.call in _ON_PATH):
        return Position(Kind.STORAGE, task.file)
    if task.state == "D" and _FILE_SYSTEM.search(" ".join((task.wchan, *task.stack))):
        return Position(Kind.STORAGE, "")
    if task.call in ("write", "writev") and task.file.startswith(("pipe:", "/dev/pts", "/dev/tty")):
        return Position(Kind.OUTPUT)
    if task.call in ("read", "readv") and task.file.startswith(("/dev/pts", "/dev/tty")):
        return Position(Kind.PERSON)
    kinds = {"wait4": Kind.CHILD, "waitid": Kind.CHILD, "nanosleep": Kind.SLEEP, "clock_nanosleep": Kind.SLEEP}
    return Position(kinds[task.call]) if task.call in kinds else None


_ON_FILE = frozenset({
    "read", "write", "pread64", "pwrite64", "readv", "writev", "fsync", "fdatasync", "flock", "fcntl", "getdents64",
    "ftruncate", "close", "fstat", "fallocate", "sync_file_range", "sendfile", "splice", "lseek",
})  # fmt: skip
_ON_PATH = frozenset({
    "open", "openat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "readlink", "readlinkat", "rename",
    "renameat2", "mkdir", "mkdirat", "unlink", "unlinkat", "sync", "mount",
})  # fmt: skip
# rpc_wait_bit_killable | nfs_wait_bit_killable | [<0>] cl_sync_io_wait+0x1f0/0x400 [obdclass] | fuse_dev_do_read
_FILE_SYSTEM = expression(
    r"nfs|rpc_wait|lustre|ll_\w+|cl_sync|osc_|ptlrpc|fuse|request_wait_answer|ceph|gpfs|cxi\w*wait|beegfs|cifs|smb2?_|"
    r"folio_wait|wait_on_page|io_schedule|jbd2|ext4|xfs|btrfs|filemap_|blk_|bdev_"
)


def _plain(function: str) -> str:
    """Return a function without its class: py-spy prints "DataLoader.__next__" from Python 3.11 on, before __next__."""
    return function.rpartition(".")[2]


# /opt/conda/lib/python3.10/threading.py | <frozen importlib._bootstrap>
_LIBRARY = expression(r"/lib(?:64)?/python\d[\d.]*/|/(?:site|dist)-packages/|^<frozen|^<attrs|^<__array_function__")


@lru_cache(maxsize=65536)
def _is_own(frame: Frame) -> bool:
    """Whether a frame is the user's own code, and no library's."""
    return (frame.file.endswith((".py", ".ipynb")) or frame.file.startswith("<")) and not _LIBRARY.search(frame.file)


def in_worker(frames: Sequence[Frame]) -> bool:
    """Whether a process is a worker of a data loader."""
    return any(_plain(frame.function) in _WORKERS for frame in frames)


_WORKERS = ("_worker_loop", "worker_loop_v1", "_worker_fn")  # of torch and Paddle, and of MXNet


def _is_start_of_process(frame: Frame) -> bool:
    """Whether a forked process began here: the frames around are those of its parent."""
    return _plain(frame.function) == "_bootstrap" and frame.file.endswith("multiprocessing/process.py")


def _runs_code(frames: Sequence[Frame]) -> bool:
    """Whether one of the frames is a function of the user's: a module that is imported runs the program itself."""
    return any(_is_own(frame) and _plain(frame.function) != "<module>" for frame in frames)


def _row(kind: Kind, file: str, *functions: str, name: str = "") -> tuple[Kind, str, re.Pattern[str], re.Pattern[str]]:
    """Return a row: the file of a frame, its function, and what both mean; no name: that of the function."""
    return kind, name, re.compile(file), re.compile("|".join(functions) or ".*")


BUILD, A_FILE = "a build of torch's extensions", "a file"  # what a lock is on whose file is not known
_COLLECTIVES = (
    r"(?:all_reduce|allreduce|all_gather|allgather|all_to_all|alltoall|reduce_scatter|broadcast|reduce|gather|scatter"
    r"|barrier|monitored_barrier|send|recv|isend|irecv|batch_isend_irecv|sendrecv|join|new_group|new_subgroups"
    r"|split_group|synchronize|wait_tensor|wait|grouped_\w+|sparse_allreduce)\w*"
)
_C10D = r"^torch/distributed/distributed_c10d\.py"
_NATIVE = r"\.so|^\?$|^$"  # where native frames were asked for
_TOP = "/"  # the name is that of the package
# The first row that fits a frame says what it means.
_SPECIFIC = (
    _row(Kind.RENDEZVOUS, _C10D, "init_process_group", "_new_process_group_helper", "rendezvous",
         "_store_based_barrier", name="init_process_group"),
    _row(Kind.RENDEZVOUS, r"^torch/distributed/(?:rendezvous\.py|elastic/(?:rendezvous/|utils/store\.py))",
         name="the rendezvous"),
    _row(Kind.COLLECTIVE, _C10D, _COLLECTIVES),
    _row(Kind.COLLECTIVE, r"^torch/distributed/(?:_functional_collectives|_dist2|nn/functional)\.py", _COLLECTIVES),
    _row(Kind.COLLECTIVE, r"^torch/(?:distributed/utils|nn/parallel/distributed)\.py", "_sync_module_states",
         r"_verify_params?_\w*across_processes", "_sync_params_and_buffers", name="DDP's comparison of the models"),
    _row(Kind.COLLECTIVE, r"^torch/nn/parallel/distributed\.py", "_sync_(?:buffers|module_buffers|final_model)",
         "_(?:default|distributed)_broadcast_coalesced", name="DDP's broadcast of buffers"),
    _row(Kind.COLLECTIVE, r"^torch/(?:nn/parallel/distributed|distributed/algorithms/join)\.py", r"_match_\w+",
         r"_check_global_\w+", "_notify_procs_to_terminate", "notify_join_context", name="DDP's join"),
    _row(Kind.COLLECTIVE, r"^torch/distributed/(?:fsdp|_composable/fsdp)/", "_?unshard", "_all_gather_flat_param",
         r"foreach_all_gather\w*", r"foreach_reduce\w*", "wait_for_unshard", r"_reduce_grad\w*", name="FSDP"),
    _row(Kind.COLLECTIVE, r"^torch/distributed/rpc/", "_wait_all", "_all_gather", "_barrier", "shutdown", "rpc_sync"),
    _row(Kind.RENDEZVOUS, r"^(?:deepspeed/comm/comm|horovod/common/basics|jax/_src/distributed"
         r"|paddle/distributed/parallel)\.py", "init_distributed", "init", "initialize", "init_parallel_env"),
    _row(Kind.COLLECTIVE, r"^(?:deepspeed/comm|horovod|paddle/distributed/(?:communication|collective)|oneflow/comm"
         r"|ray/util/collective|cupyx/distributed|byteps|bagua|jax/experimental/multihost_utils|megatron/core)\b",
         _COLLECTIVES, "_?communicate", "sync_global_devices", "process_allgather", "_?(?:batched_)?p2p_ops"),
    _row(Kind.COLLECTIVE, r"^(?:tensorflow/python/ops/collective_ops|mxnet/kvstore/\w+)\.py"),
    _row(Kind.COLLECTIVE, _NATIVE, r"P?MPI_\w+", r"p?nccl[A-Z]\w+"),
    _row(Kind.COLLECTIVE, _NATIVE, "c10d::.*[wW]ait.*", "gloo::.*", "c10d::ProcessGroup.*", "horovod::.*",
         name="a collective"),
    _row(Kind.GPU, _NATIVE, r"(?:cuda|cu|hip)(?:Stream|Event|Device|Ctx)Synchronize\w*", r"(?:cuda|hip|cu)Memcpy\w*"),
    _row(Kind.GPU, r"^torch/(?:cuda|xpu|npu|mps|accelerator|musa|hpu)/", "synchronize", "wait", "wait_event",
         "wait_stream"),
    _row(Kind.GPU, r"^(?:jax/_src/(?:array|api)|tensorflow/python/eager/execute)\.py", "block_until_ready", "_value",
         "__array__", "quick_execute"),
    _row(Kind.BACKWARD, r"^torch/autograd/(?:graph|__init__)\.py", "_engine_run_backward", "backward", "grad"),
    _row(Kind.LOADER, r"^torch/utils/data/(?:dataloader|_utils/(?:fetch|worker|pin_memory))\.py"),
    _row(Kind.LOADER, r"^(?:nvidia/dali|webdataset|ffcv/loader|streaming/base|petastorm|grain|litdata"
         r"|paddle/io/dataloader|mxnet/gluon/data|tensorflow_datasets|datasets/iterable_dataset\.py"
         r"|tensorflow/python/data/ops/(?:multi_device_)?iterator(?:_ops)?)"),
    _row(Kind.CHECKPOINT, r"^torch/serialization\.py", "save", "_save", "_legacy_save", "__exit__"),
    _row(Kind.LOADING, r"^torch/serialization\.py", "load", "_load", "_legacy_load", "load_tensor", "persistent_load"),
    _row(Kind.CHECKPOINT, r"^torch/distributed/checkpoint/(?:\w*filesystem|state_dict_saver|_async\w*)\.py",
         r"_?write\w*", r"_?save\w*", r"_finish_\w+", "async_save", "finish"),
    _row(Kind.LOADING, r"^torch/distributed/checkpoint/(?:\w*filesystem|state_dict_loader)\.py", r"_?(?:read|load)\w*"),
    _row(Kind.CHECKPOINT, r"^(?:safetensors|numpy/lib|h5py|orbax|tensorstore|tensorflow/python/(?:checkpoint|training)"
         r")/", r"_?save\w*"),
    _row(Kind.LOADING, r"^(?:safetensors|orbax|tensorflow/python/checkpoint)/", r"_?(?:load|restore)\w*"),
    _row(Kind.CHECKPOINT, "", r"_?save_(?:checkpoint|pretrained|state|model|snapshot|ckpt)\w*", "write_checkpoint"),
    _row(Kind.LOADING, "", r"_?load_(?:checkpoint|state|ckpt|snapshot|pretrained)\w*", "from_pretrained",
         "resume_from_checkpoint"),
    _row(Kind.COMPILING, r"^torch/_dynamo/(?:convert_frame|symbolic_convert|output_graph)\.py", r"_?compile\w*",
         "transform", "run", "step", "call_user_compiler"),
    _row(Kind.COMPILING, r"^torch/_inductor/(?:compile_fx|async_compile|codecache|graph)\.py", r"_?compile_fx\w*",
         "fx_codegen_and_compile", "codegen_and_compile", r"_?wait\w*", r"_?compile_\w+"),
    _row(Kind.LOCK, r"^torch/utils/file_baton\.py", "wait", name=BUILD),
    _row(Kind.LOCK, r"^(?:filelock|fasteners|portalocker)/", name=A_FILE),
    _row(Kind.COMPILING, r"^(?:torch/utils/cpp_extension|deepspeed/ops/op_builder/\w+"
         r"|numba/core/compiler|jax/_src/compiler)\.py", r"_?jit_\w+", "_run_ninja_build", r"_write_ninja\w*", "load",
         "load_inline", "wait", r"compile\w*", r"backend_compile\w*"),
    _row(Kind.COMPILING, r"^triton/(?:compiler|runtime/(?:build|autotuner))", "_?compile", r"make_\w+", "_build",
         "_bench"),
    _row(Kind.DOWNLOADING, r"^(?:huggingface_hub|requests|urllib3?|http|httpx|httpcore|aiohttp|botocore|s3transfer"
         r"|boto3|gdown|gcsfs|s3fs|wandb|mlflow|neptune|comet_ml|clearml|google/(?:cloud|api_core|auth)|azure)/",
         name=_TOP),
    _row(Kind.DOWNLOADING, r"^torch/hub\.py", "download_url_to_file", "load_state_dict_from_url", name="torch.hub"),
    _row(Kind.PERSON, r"^(?:pdb|bdb|code|getpass|cmd)\.py|^(?:IPython/(?:core/debugger|terminal)|ipdb|pudb|debugpy"
         r"|_?pydevd)"),
    _row(Kind.CHILD, r"^(?:subprocess|multiprocessing/(?:popen_\w+|process))\.py|^sh\.py", "_?wait", "_?communicate",
         "_try_wait", "join", "poll", "_execute_child"),
    _row(Kind.SERVICE, r"^(?:ray/_private/worker|asyncio/\w+|socketserver|tornado/\w+|ipykernel/\w+)\.py", "main_loop",
         "run_forever", "_run_once", "serve_forever"),
    _row(Kind.SERVICE, r"^(?:uvloop/|uvicorn/|grpc/_server\.py|hypercorn/|gunicorn/|waitress/|werkzeug/serving)"),
    _row(Kind.IMPORTING, r"^<frozen importlib|^importlib/"),
)  # fmt: skip


@lru_cache(maxsize=65536)
def _specific(frame: Frame) -> tuple[Kind, str] | None:
    """Return what a frame means, wherever it is in the stack."""
    function, file = _plain(frame.function), _in_library(frame)
    for kind, name, files, functions in _SPECIFIC:
        if files.search(file) and (functions.fullmatch(function) or functions.fullmatch(frame.function)):
            return kind, name.replace(_TOP, file.partition("/")[0]) or function
    return None


# /usr/lib/python3.10/multiprocessing/queues.py
_STANDARD = expression(r"^.*/lib(?:64)?/python\d[\d.]*/(?!(?:site|dist)-packages/)")


@cache
def _standard(file: str) -> str:
    return _STANDARD.sub("", file)


def _in_library(frame: Frame) -> str:
    """Return a frame's file within its library: "multiprocessing/queues.py"; a file of the user's as a whole path."""
    if _is_own(frame):
        return frame.file
    return _standard(frame.file) if _STANDARD.match(frame.file) else frame.short


# _shutdown (threading.py) | _exit_function (multiprocessing/util.py) | destroy_process_group
_END = expression(
    r"threading\.py _shutdown|concurrent/futures/\w+\.py _python_exit|multiprocessing/util\.py _exit_function"
    r"|logging/__init__\.py shutdown|weakref\.py _exitfunc|torch/distributed/distributed_c10d\.py destroy_process_group"
    r"|torch/distributed/elastic/multiprocessing/errors/\S+ (?:record_exception|dump_error_file)"
    r"|traceback\.py print_\w+|torch/utils/data/dataloader\.py _clean_up_worker"
)


@lru_cache(maxsize=65536)
def _ends(frame: Frame) -> bool:
    return bool(_END.fullmatch(f"{_in_library(frame)} {_plain(frame.function)}"))


# wait (threading.py) | get (queue.py) | acquire (filelock/_api.py)
_LOCKS = expression(
    r"threading\.py (?:wait|wait_for|acquire|__enter__|join|_wait_for_tstate_lock)|queue\.py (?:get|put|join)"
    r"|multiprocessing/(?:queues|synchronize|connection|managers|pool)\.py \w+"
    r"|(?:filelock|fasteners|portalocker)/\S+ \w+|selectors\.py select"
    r"|concurrent/futures/_base\.py (?:result|wait|as_completed|exception|__exit__)"
)


@lru_cache(maxsize=65536)
def _general(frame: Frame) -> tuple[Kind, str] | None:
    """Return what a frame means that counts only if nothing around it is more special."""
    return (Kind.LOCK, "") if _LOCKS.fullmatch(f"{_in_library(frame)} {_plain(frame.function)}") else None


_EVALUATION = expression(
    r"(?:run_)?_?(?:eval|evaluate|evaluation|validate|validation|test)(?:_(?:model|loop|epoch|step))?"
)


def _line(kind: Kind, *patterns: str, name: str = "") -> tuple[Kind, str, re.Pattern[str]]:
    return kind, name, re.compile("|".join(patterns))


# What a line of code waits for if nothing that it calls is written in Python. A group is the name.
_LINES = (
    # comm.allreduce(x) | MPI.COMM_WORLD.Barrier()
    _line(Kind.COLLECTIVE, r"(?i)\b\w*(?:comm|world)\.(i?(?:all(?:reduce|gather|toall)v?w?|barrier|bcast|recv|scan"
          r"|reduce(?:_scatter\w*)?|gatherv?|scatterv?|s?send(?:recv)?|m?probe|exscan|split))\("),
    # PAIR.Barrier() | self.rows.Sendrecv(mine, dest=1)
    _line(Kind.COLLECTIVE, r"[\w\])]\.(I?(?:All(?:reduce|gather|toall)[vw]?|Barrier|Bcast|Reduce(?:_scatter\w*)?"
          r"|Gatherv?|Scatterv?|Scan|Exscan|[BSR]?send|Send(?:recv\w*)?|Recv|Mprobe|Probe))\("),
    _line(Kind.COLLECTIVE, r"\bMPI\.(Init\w*|Finalize)\("),
    # STORE.get("epoch") | self.store.wait(["ready"])
    _line(Kind.RENDEZVOUS, r"(?i)\b\w*store\.(?:get|multi_get|wait)\(", name=STORE),
    _line(Kind.COLLECTIVE, r"(?i)\.wait(?:all|any)?\(", name="wait()"),
    _line(Kind.PERSON, r"\b(?:input|breakpoint|set_trace|getpass)\("),
    _line(Kind.SLEEP, r"\bsleep\("),
    _line(Kind.CHECKPOINT, r"\b(?:torch|np|numpy|joblib)\.save\w*\(", r"\b(?:pickle|json)\.dump\(", r"\bsave_file\(",
          r"\.fsync\("),
    _line(Kind.CHILD, r"\bos\.(?:system|wait\w*)\(", r"\bsubprocess\."),
    _line(Kind.GPU, r"\.(?:item|cpu|tolist|numpy)\(\)", r"\bsynchronize\(\)"),
    _line(Kind.LOCK, r"\.(?:acquire|join)\(",
          r"^with [\w.\[\]]+:", r"^with\b.{0,80}(?:[lL]ock|LOCK|[mM]utex|[sS]emaphore)\w*\b",
          r"\b\w*(?:queue|_q|\bq)\.(?:get|put)\("),
)  # fmt: skip


@lru_cache(maxsize=65536)
def _of_source(frame: Frame) -> tuple[Kind, str] | None:
    """Return what the line of code waits for that a thread is at."""
    for kind, name, pattern in _LINES:
        if found := pattern.search(frame.source):
            return kind, name or (found[1] if pattern.groups else "")
    return None
