"""Which setting limits a wait for other ranks: of each framework, and by the line that says that it was reached."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass

MINUTE = 60


@dataclass(frozen=True)
class Setting:
    """What limits a wait. `change`: how to set it, {n} is the number, in units of so many seconds; `typed`: a command.

    `words` are in lines, paths and command lines of the framework: in lower case, without digits. `given` finds its
    value, group 1, where a command line, a variable or the list of arguments in a log has it.
    """

    framework: str
    name: str
    change: str
    unit: int = 1
    typed: bool = False
    words: tuple[str, ...] = ()
    given: re.Pattern[str] | None = None


_PYTORCH = Setting(
    "PyTorch", "init_process_group(timeout=)",
    "pass timeout=timedelta(seconds={n}) to init_process_group(), or set what your framework passes to it",
)  # fmt: skip

# --ddp_timeout 5400 | ddp_timeout=5400, | "ddp_timeout": 5400
_DDP_TIMEOUT = expression(r"\bddp[_-]timeout[\"']?(?:=|: ?| )(\d{1,9})\b")

# The time limit of process groups, by who calls init_process_group(). The first whose words are seen: a framework that
# stands on another one makes the groups itself. Sources: the documentation of TrainingArguments; llamafactory 0.9.3;
# ray.train.torch.TorchConfig; lightning.pytorch.strategies.DDPStrategy; Megatron-LM, training/arguments.py; accelerate
# 1.11, utils/dataclasses.py; DeepSpeed 0.14.4, constants.py and launcher/runner.py, which passes no such variable on;
# torchtune 0.6.1, recipes/*_distributed.py; PyTorch 2.13, distributed_c10d.py.
FRAMEWORKS = (
    Setting("Ray Train", "TorchConfig(timeout_s=)", "give the trainer torch_config=TorchConfig(timeout_s={n})",
            words=("ray/train/", "raytrainworker", "ray.train.")),
    Setting("LLaMA-Factory", "ddp_timeout", "set ddp_timeout: {n} in the YAML of the job, or --ddp_timeout {n}",
            words=("llamafactory", "llmtuner", "llama_factory", "llama-factory"), given=_DDP_TIMEOUT),
    Setting("torchtune", "init_process_group(timeout=)", "copy the recipe with tune cp, and pass"
            " timeout=timedelta(seconds={n}) to its init_process_group()", words=("torchtune",)),
    Setting("transformers", "--ddp_timeout", "start the job with --ddp_timeout {n}, or pass"
            " ddp_timeout={n} to TrainingArguments",
            words=("transformers/trainer", "transformers/training_args", "transformers/hf_argparser", "ddp_timeout",
                   "ddp-timeout", "training_args.main_process_first"), given=_DDP_TIMEOUT),
    Setting("Lightning", "DDPStrategy(timeout=)", "give the trainer"
            " strategy=DDPStrategy(timeout=timedelta(seconds={n})); other strategies take the same argument",
            words=("pytorch_lightning", "lightning/pytorch", "lightning.pytorch", "lightning_fabric",
                   "lightning/fabric")),
    Setting("Megatron", "--distributed-timeout-minutes", "start the job with --distributed-timeout-minutes {n}",
            unit=MINUTE, words=("megatron/core", "megatron/training", "megatron.core", "megatron.training",
                                "distributed-timeout-minutes", "distributed_timeout_minutes"),
            # --distributed-timeout-minutes 30 |   distributed_timeout_minutes ..................... 10
            given=expression(r"\bdistributed[_-]timeout[_-]minutes[\"']?[ .=:]{1,80}(\d{1,6})\b")),
    Setting("Accelerate", "InitProcessGroupKwargs(timeout=)", "create the Accelerator with"
            " kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(seconds={n}))]",
            words=("accelerate/", "accelerate launch", "accelerate.commands")),
    Setting("DeepSpeed", "DEEPSPEED_TIMEOUT", "set DEEPSPEED_TIMEOUT={n} (minutes) on every node, as in"
            " ~/.deepspeed_env, or pass timeout= to deepspeed.init_distributed()", unit=MINUTE,
            words=("deepspeed/runtime", "deepspeed/comm", "deepspeed.initialize", "[deepspeed", "deepspeed info",
                   "deepspeed.launcher", "deepspeed/launcher", "bin/deepspeed", "deepspeed_timeout"),
            given=expression(r"\bDEEPSPEED_TIMEOUT[\"']?(?:=|: ?)(\d{1,6})\b")),
)  # fmt: skip
WORDS = tuple(word for one in FRAMEWORKS for word in one.words)

# What a line has that says how a setting is set.
WORDS_OF_SETTINGS = (
    "ddp_timeout", "ddp-timeout", "distributed_timeout_minutes", "distributed-timeout-minutes", "deepspeed_timeout",
    "join_timeout", "heartbeat_timeout_sec", "horovod_gloo_timeout", "nccl_timeout",
)  # fmt: skip

WAITS_FOR_A_RANK = frozenset({"slow_rank_timeout", "checkpoint_write", "data_loader", "slow_rank"})
_MEETS = frozenset({"rendezvous_misconfig", "rank_missing"})
_CONNECTS = frozenset({"firewall", "routing", "wrong_nic", "rank_missing", "rendezvous_misconfig", "rank_crashed"})


@dataclass(frozen=True)
class Reached:
    """A line that says which limit was reached. Its groups: s, ms, clock or retries. No setting: the framework's."""

    pattern: re.Pattern[str]
    causes: frozenset[str]
    setting: Setting | None = None


# The first that a log has counts. Defaults: PyTorch 2.13, rendezvous/; NCCL 2.30, misc/socket.cc; Horovod,
# common/stall_inspector.cc and common/gloo/gloo_context.cc.
LINES = (
    # WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800008 milliseconds
    Reached(expression(r"\bTimeout\(ms\)=(?P<ms>\d{1,12})\b"), WAITS_FOR_A_RANK),
    # RuntimeError: [.../unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete
    Reached(expression(r"Timed out waiting (?P<ms>\d{1,12})ms for (?:recv|send) operation"), WAITS_FOR_A_RANK),
    # RuntimeError: Rank 3 failed to pass monitoredBarrier in 1800000 ms
    Reached(expression(r"failed to pass monitoredBarrier in (?P<ms>\d{1,12}) ?ms"), WAITS_FOR_A_RANK,
            Setting("PyTorch", "monitored_barrier(timeout=)",
                    "pass timeout=timedelta(seconds={n}) to monitored_barrier()")),
    # Timed out initializing process group in store based barrier (world_size=2, worker_count=1, timeout=0:30:00)
    Reached(expression(r"worker_count=\d{1,9}, .{0,40}?timeout=(?P<clock>\d{1,5}:\d\d:\d\d)"), _MEETS),
    # torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/3 clients joined.
    Reached(expression(r"[Tt]imed out after (?P<s>90[0-5]) seconds waiting for clients"), _MEETS,
            Setting("torchrun", "--rdzv-conf timeout=", "start torchrun with --rdzv-conf timeout={n}")),
    Reached(expression(r"[Tt]imed out after (?P<s>\d{1,9}) seconds waiting for clients"), _MEETS),
    # torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError
    Reached(expression(r"RendezvousTimeoutError|rendezvous timeout of (?P<s>\d{1,9}) ?s"), _MEETS,
            Setting("torchrun", "--rdzv-conf join_timeout=", "start torchrun with --rdzv-conf join_timeout={n}",
                    given=expression(r"\bjoin_timeout=(\d{1,9})\b"))),
    # torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//0
    Reached(expression(r"wait timeout after (?P<ms>\d{1,12})ms"), WAITS_FOR_A_RANK | _MEETS),
    # [PG 0 Rank 5] Heartbeat monitor timed out! Process will be terminated
    # ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring collectives.
    Reached(expression(r"Heartbeat monitor timed out|"
                       r"watchdog got stuck for (?:(?P<s>\d{1,9}) ?s|(?P<ms>\d{1,12}) ?m)"),
            WAITS_FOR_A_RANK,
            Setting("PyTorch", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC={n}",
                    typed=True, given=expression(r"\bTORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=(\d{1,9})\b"))),
    # One or more rank (marked by "!") is stalled for longer than 120 seconds. Will shutdown.
    Reached(expression(r"stalled for longer than (?P<s>\d{1,9}) seconds\. Will shutdown"),
            WAITS_FOR_A_RANK | {"collective_mismatch"},
            Setting("Horovod", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "export HOROVOD_STALL_SHUTDOWN_TIME_SECONDS={n}",
                    typed=True)),
    # Gloo context initialization timed out
    Reached(expression(r"Gloo (?:context|rendezvous) .{0,100}timed out"), _MEETS,
            Setting("Horovod", "HOROVOD_GLOO_TIMEOUT_SECONDS", "export HOROVOD_GLOO_TIMEOUT_SECONDS={n}", typed=True,
                    given=expression(r"\bHOROVOD_GLOO_TIMEOUT_SECONDS=(\d{1,9})\b"))),
    # socketPollConnect: connect to 10.1.0.3<4000> returned Connection timed out, exceeded error retry count (34)
    Reached(expression(r"exceeded error retry count (?:\(|after )(?P<retries>\d{1,6})\b"), _CONNECTS,
            Setting("NCCL", "NCCL_SOCKET_RETRY_CNT, and NCCL_SOCKET_RETRY_SLEEP_MSEC", "")),
)  # fmt: skip
_RETRY_STEP = 0.1  # seconds by which each pause is longer than the one before (NCCL_SOCKET_RETRY_SLEEP_MSEC)


def seconds_of(match: re.Match[str]) -> float | None:
    """Return the limit that a line names, None if it names none."""
    found = {name: value for name, value in match.groupdict().items() if value}
    if "clock" in found:
        hours, minutes, seconds = map(int, found["clock"].split(":"))
        return float((hours * MINUTE + minutes) * MINUTE + seconds)
    if "retries" in found:
        return round(int(found["retries"]) * (int(found["retries"]) + 1) / 2 * _RETRY_STEP, 1)
    if "ms" in found:
        return int(found["ms"]) / 1000
    return float(int(found["s"]) // 10 * 10) if "s" in found else None  # 901 seconds: a limit of 900 was reached


def framework_of(names: Collection[str], words: Iterable[str], seconds: float | None) -> Setting:
    """Return whose setting it is. Of two frameworks in one log it is that whose value in it is the limit reached."""
    held = [one for one in FRAMEWORKS if one.framework in names]
    exact = [one for one in held if seconds is not None and seconds in set(given(one, words))]
    return next(iter((*exact, *held)), _PYTORCH)


def frameworks_in(text: str) -> Iterator[str]:
    """Yield the names of the frameworks of which a text in lower case has a word."""
    return (one.framework for one in FRAMEWORKS if any(word in text for word in one.words))


def given(setting: Setting, words: Iterable[str]) -> Iterator[float]:
    """Yield the values of a setting, in seconds, that these texts give it."""
    if setting.given:
        yield from (float(value) * setting.unit for text in words for value in setting.given.findall(text))
