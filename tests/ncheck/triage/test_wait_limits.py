"""What ends a wait: the setting that the job's framework reads, its value, and whether the work fits into it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.model.cluster import FactType
from ncheck.model.job import Target
from ncheck.triage.diagnosis import WaitLimit
from ncheck.triage.facts.flight_recorder import DumpFile, FlightRecorderFacts
from ncheck.triage.facts.jobs import job_of
from ncheck.triage.facts.log_tails import LogTail, LogTailsFacts
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.join import examine_job
from ncheck.triage.logs import LogReport, examine_logs
from ncheck.triage.parse.flight_recorder import Dump
from ncheck.triage.wait_limits import sentence, settings_of, shown_of
from ncheck.triage.wait_settings import FRAMEWORKS

from tests.ncheck.triage.dumps import dump, steps
from tests.ncheck.triage.live.jobs import cluster, process

WATCHDOG = (
    "[rank1]:[E822 10:30:00.1 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)={}) ran for 1800008 milliseconds before"
)
BAR = "Running tokenizer on dataset:  88%|########8 | 383700/433643 [29:55<03:25, 2432.70 examples/s]"
TRACEBACK = '  File "/opt/site-packages/{}.py", line 14, in main'


def report(folder: Path, *lines: str) -> LogReport:
    (folder / "job.log").write_text("\n".join((*lines, "")), encoding="utf-8")
    return examine_logs([str(folder / "job.log")], io.BytesIO())


def limit(folder: Path, *lines: str) -> tuple[WaitLimit | None, str]:
    """Return the limit of the best diagnosis of a log, and what it proposes."""
    best = report(folder, *lines).diagnoses[0]
    return best.limit, best.do


@pytest.mark.parametrize(
    ("lines", "framework", "setting", "do"),
    [
        ((TRACEBACK.format("llamafactory/train/tuner"),), "LLaMA-Factory", "ddp_timeout",
         "set ddp_timeout: 3600 in the YAML of the job, or --ddp_timeout 3600"),
        ((TRACEBACK.format("transformers/trainer"), TRACEBACK.format("accelerate/state")), "transformers",
         "--ddp_timeout", "start the job with --ddp_timeout 3600, or pass ddp_timeout=3600 to TrainingArguments"),
        (("  distributed_timeout_minutes ..................... 30", "[INFO] [DeepSpeed info version=0.14.4"),
         "Megatron", "--distributed-timeout-minutes", "start the job with --distributed-timeout-minutes 60"),
        (("  distributed_timeout_minutes ..................... 10", "export DEEPSPEED_TIMEOUT=30"), "DeepSpeed",
         "DEEPSPEED_TIMEOUT", (
            "set DEEPSPEED_TIMEOUT=60 (minutes) on every node, as in ~/.deepspeed_env, or pass timeout= to"
            " deepspeed.init_distributed()")),
        (("(RayTrainWorker pid=77, ip=10.1.0.3) Setting up process group", TRACEBACK.format("transformers/trainer")),
         "Ray Train", "TorchConfig(timeout_s=)", "give the trainer torch_config=TorchConfig(timeout_s=3600)"),
        ((TRACEBACK.format("torch/utils/data"),), "PyTorch", "init_process_group(timeout=)", (
            "pass timeout=timedelta(seconds=3600) to init_process_group(), or set what your framework passes to it")),
    ],
)  # fmt: skip
def test_a_framework_is_given_its_own_setting(
    tmp_path: Path, lines: tuple[str, ...], framework: str, setting: str, do: str
) -> None:
    expected = WaitLimit(framework, setting, 1800.0, 2000.0, helps=True)
    assert limit(tmp_path, BAR, *lines, WATCHDOG.format(1800000)) == (expected, do)
    assert sentence(expected) == f"30 min, set by {setting} ({framework}); the work takes about 33 min"


def test_work_that_is_seen_without_a_line_of_the_limit_has_the_setting_all_the_same(tmp_path: Path) -> None:
    frame = "    with training_args.main_process_first(desc='dataset map pre-processing'):"
    known = WaitLimit("transformers", "--ddp_timeout", None, helps=True)
    do = "start the job with --ddp_timeout {0}, or pass ddp_timeout={0} to TrainingArguments"
    assert limit(tmp_path, frame) == (known, do.format("SECONDS"))
    given = replace(known, seconds=5400.0)
    assert limit(tmp_path, frame, "torchrun train.py --ddp_timeout 5400") == (given, do.format(10800))
    assert sentence(given) == "90 min, set by --ddp_timeout (transformers)"


@pytest.mark.parametrize(
    ("line", "framework", "setting", "seconds"),
    [
        ("RuntimeError: [.../unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
         "PyTorch", "init_process_group(timeout=)", 1800.0),
        ("RuntimeError: Rank 3 failed to pass monitoredBarrier in 300000 ms",
         "PyTorch", "monitored_barrier(timeout=)", 300.0),
        (("Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1"
         " (world_size=2, worker_count=1, timeout=0:30:00)"), "PyTorch", "init_process_group(timeout=)", 1800.0),
        ("torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/3 clients joined.",
         "torchrun", "--rdzv-conf timeout=", 900.0),
        ("torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 1/3 clients joined.",
         "PyTorch", "init_process_group(timeout=)", 300.0),
        ("torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//0",
         "PyTorch", "init_process_group(timeout=)", 300.0),
        ("[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 5] Heartbeat monitor timed out! Process will be terminated",
         "PyTorch", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", None),
        ("[E ProcessGroupNCCL.cpp:1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
         "PyTorch", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", 480.0),
        (('[E] One or more rank (marked by "!") is stalled for longer than 120 seconds. Will shutdown.\n'
         "[W] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are"
         " waiting for remainder of ranks for more than 60 seconds. remain stalled for more than 60"),
         "Horovod", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", 120.0),
        ("Gloo context initialization timed out", "Horovod", "HOROVOD_GLOO_TIMEOUT_SECONDS", None),
        (("n1:7:8 [0] NCCL WARN socketPollConnect: connect to 10.1.0.3<4000> returned Connection timed out, exceeded"
         " error retry count (34)"), "NCCL", "NCCL_SOCKET_RETRY_CNT, and NCCL_SOCKET_RETRY_SLEEP_MSEC", 59.5),
    ],
)  # fmt: skip
def test_a_wait_that_may_be_for_a_rank_that_died_is_given_no_more_time(
    tmp_path: Path, line: str, framework: str, setting: str, seconds: float | None
) -> None:
    known = WaitLimit(framework, setting, seconds)
    assert limit(tmp_path, line) == (known, "")
    assert sentence(known).endswith("; more time helps only if the late rank still comes")


def test_a_rank_that_died_is_no_matter_of_time(tmp_path: Path) -> None:
    died = "[rank3]: ValueError: no more data"
    found = report(tmp_path, WATCHDOG.format(1800000), died).diagnoses
    assert [(one.cause, one.limit) for one in found] == [("rank_crashed", None)]
    beside = {one.cause: (one.limit, one.do) for one in report(tmp_path, BAR, WATCHDOG.format(1800000), died).diagnoses}
    bare = WaitLimit("PyTorch", "init_process_group(timeout=)", 1800.0, 2000.0)
    assert beside == {"slow_rank_timeout": (bare, ""), "rank_crashed": (None, "")}


def test_work_that_ended_in_time_or_before_the_training_is_not_what_the_others_wait_for(tmp_path: Path) -> None:
    quick = "Running tokenizer on dataset: 100%|##########| 433643/433643 [03:20<00:00, 2432.70 examples/s]"
    step = "{'loss': 2.51, 'grad_norm': 1.1, 'learning_rate': 5e-05, 'epoch': 0.02}"
    bare = WaitLimit("PyTorch", "init_process_group(timeout=)", 1800.0), ""
    assert limit(tmp_path, quick, WATCHDOG.format(1800000)) == bare
    stuck = "[PG 0 Rank 5] Heartbeat monitor timed out! Process will be terminated"
    for other in (quick, "Saving: 50%|#####     |"):
        assert limit(tmp_path, other, stuck) == (WaitLimit("PyTorch", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", None), "")
    assert limit(tmp_path, BAR, step, WATCHDOG.format(1800000)) == bare


IN_VAIN = "NCCL_TIMEOUT=3600 has no effect: neither NCCL nor PyTorch reads it; {} sets how long a rank waits"


@pytest.mark.parametrize(
    "words", ["export NCCL_TIMEOUT=3600", "n1:7:8 [0] NCCL INFO NCCL_TIMEOUT set by environment to 3600."]
)
def test_nccl_timeout_is_said_to_have_no_effect(tmp_path: Path, words: str) -> None:
    assert report(tmp_path, words, WATCHDOG.format(600000)).notes == (IN_VAIN.format("init_process_group(timeout=)"),)
    assert report(tmp_path, words, WATCHDOG.format(3600000)).notes == ()  # this program reads it itself
    assert report(tmp_path, words, "[rank3]: ValueError: no more data").notes == ()


def shown(
    argv: tuple[str, ...], recorded: Dump | None = None, **variables: str
) -> tuple[str, float | None, str] | None:
    """Return what limits the waits of a job of one rank: the setting, its value, and what was set in vain."""
    own = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "n0", **variables}
    known: dict[FactType, object] = {ProcessesFacts: ProcessesFacts((process(4000, argv=argv, variables=own),), {})}
    if recorded:
        known[FlightRecorderFacts] = FlightRecorderFacts({4000: DumpFile("dump", 1.0, recorded)})
    of = cluster({"n0": known})
    job = job_of(of, Target())
    assert job
    found = shown_of(job, of, settings_of(job, of))
    return (found.setting.name, found.seconds, found.note) if found else None


def test_the_limit_of_a_running_job_is_read_off_its_command_its_variables_and_its_dumps() -> None:
    train = ("python3", "train.py")
    assert shown((*train, "--ddp_timeout", "5400")) == ("--ddp_timeout", 5400.0, "")
    assert shown((*train, "--distributed-timeout-minutes=30"), NCCL_TIMEOUT="3600") == (
        "--distributed-timeout-minutes", 1800.0, IN_VAIN.format("--distributed-timeout-minutes"),
    )  # fmt: skip
    assert shown(("python3", "/opt/bin/deepspeed"), DEEPSPEED_TIMEOUT="60") == ("DEEPSPEED_TIMEOUT", 3600.0, "")
    assert shown(train, dump(steps(4, "started"))) == ("init_process_group(timeout=)", 600.0, "")


def test_what_the_log_of_a_running_job_says_of_its_settings_counts() -> None:
    log = "step 1\nTrainingArguments(ddp_timeout=1800,\nn0:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\nstep 2"
    ranks = (process(4000, variables={"RANK": "0", "WORLD_SIZE": "1", "NCCL_IB_HCAS": "mlx5_0"}),)
    tails = LogTailsFacts((LogTail("job.log", (4000,), log),), {})
    of = cluster({"n0": {ProcessesFacts: ProcessesFacts(ranks, {}), LogTailsFacts: tails}})
    found = examine_job(of, Target())
    assert found.notes == ("without effect: NCCL_IB_HCAS: NCCL 2.21.5 has no such variable, but NCCL_IB_HCA",)
    job = job_of(of, Target())
    assert job
    limit = shown_of(job, of, settings_of(job, of))
    assert limit
    assert (limit.setting.name, limit.seconds) == ("--ddp_timeout", 1800.0)


def test_of_a_job_that_shows_no_limit_none_is_named() -> None:
    assert shown(("./solver", "--nodes", "8")) is None
    assert shown(("python3", "train.py"), DEEPSPEED_TIMEOUT="60") is None  # set, and no sign of DeepSpeed
    assert shown(("python3", "train.py"), dump(steps(4))) is None  # whose collectives are all completed


def test_words_of_frameworks_are_as_templates_of_lines_have_them() -> None:
    words = [word for one in FRAMEWORKS for word in one.words]
    assert [word for word in words if word != word.lower() or any(letter.isdigit() for letter in word)] == []
