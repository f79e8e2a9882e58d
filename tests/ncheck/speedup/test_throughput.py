"""The throughput of a log: the lines of each framework, the window of steps, ranks, and what a log may lack."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.speedup.throughput import NoThroughputError, Throughput, throughput

# By framework: a line of step {n}, its number of 250.0, 0.25 or 250 ms, and what is read.
LINES = {
    "Megatron-LM": ((" iteration {n:8}/  500 | consumed samples: 9 | elapsed time per iteration (ms): 250.0 |"
                    " learning rate: 1E-04 | global batch size:   64 | lm loss: 8.1E+00 |"), 256.0, "samples/s"),
    "DeepSpeed": (("[2026-11-24 10:00:00,123] [INFO] [timer.py:260:stop] epoch=0/micro_step={n}/global_step={n}, "
                  "RunningAvgSamplesPerSec=199.5, CurrSamplesPerSec=250.0, MemAllocated=1.9GB"), 250.0, "samples/s"),
    "PaddlePaddle": (("[2026/11/24 10:00:00] INFO: [Train][Epoch 0/10][Iter: {n}/900]lr: 0.1, batch_cost: 0.49s, "
                     "reader_cost: 0.01, ips: 250.0 samples/s, eta: 0:10:00"), 250.0, "samples/s"),
    "OneFlow": (("[11/24 10:00:00 lb.utils.events]: eta: 0:01:00  iter: {n}/900  loss: 7.2  data_time: 0.002 s/iter "
                "total_throughput: 250.0 samples/s lr: 1e-4"), 250.0, "samples/s"),
    "tf_cnn_benchmarks": ("{n}\timages/sec: 250.0 +/- 0.3 (jitter = 0.4)\t7.9", 250.0, "images/s"),
    "fairseq": ("2026-11-24 10:00:00 | INFO | train_inner | epoch 001: {n} / 900 loss=9.1, wps=250.0, ups=3.2", 250.0,
                "tokens/s"),
    "Horovod": ("Iter #{n}: 250.0 img/sec per GPU", 250.0, "images/s"),
    "torchtitan": ("2026-11-24 - INFO - step: {n:2}  loss:  8.1  memory: 30.1GiB  tps: 250  mfu: 41%", 250.0,
                   "tokens/s"),
    "NeMo": ("Epoch 0: {n}/900, v_num=0, reduced_train_loss=2.1, train_step_timing in s=0.25", 4.0, "steps/s"),
    "PyTorch's ImageNet example": ("Epoch: [0][{n:4}/5005]\tTime  0.250 (  0.512)\tData  0.011", 4.0, "steps/s"),
    "MMEngine": (("11/24 10:00:00 - mmengine - INFO - Epoch(train)  [1][{n:3}/900]  lr: 1.0e-03  eta: 0:10:00  "
                 "time: 0.2500  data_time: 0.0123  memory: 3099"), 4.0, "steps/s"),
    "nanoGPT": ("iter {n}: loss 2.3456, time 250.00ms, mfu 41.20%", 4.0, "steps/s"),
    "tqdm": ("\rEpoch 0:  12%|#         | {n}/900 [00:30<03:00,  4.00it/s, v_num=0]", 4.0, "steps/s"),
    "samples, images or tokens a second": ("step {n} | loss 2.1 | 250.0 tokens/sec", 250.0, "tokens/s"),
}  # fmt: skip


def rounded(found: Throughput) -> Throughput:
    return replace(found, value=round(found.value, 6))


def test_each_framework_is_read() -> None:
    for name, (line, value, unit) in LINES.items():
        lines = [line.format(n=step) + "\n" for step in range(1, 131)]
        found = throughput("job.log", lines)
        per_gpu = name in ("Horovod", "torchtitan")
        assert rounded(found) == Throughput(value, unit, name, 100, 20, per_gpu), name
    whole = throughput("job.log", ["{'train_runtime': 9.4, 'train_samples_per_second': 45.6, 'epoch': 1.0}\n"])
    assert whole == Throughput(45.6, "samples/s", "Hugging Face Trainer", 0, 0)
    epochs = [f"469/469 [==============================] - 5s {time}ms/step - loss: 0.1\n" for time in (30, 10, 10)]
    assert rounded(throughput("job.log", epochs)) == Throughput(100.0, "steps/s", "Keras, by epoch", 0, 1)
    slow = ["\r".join(f" 9%|# | {step}/900 [00:30<03:00,  4.00s/it]" for step in range(1, 131))]
    assert rounded(throughput("job.log", slow)) == Throughput(0.25, "steps/s", "tqdm", 100, 20)


def test_the_first_20_steps_are_left_out_and_the_next_100_count() -> None:
    rates = [1.0] * 20 + [100.0] * 50 + [200.0] * 50 + [9.0] * 30
    lines = [f"step {step} {rate} samples/s" for step, rate in enumerate(rates)]
    assert throughput("job.log", lines).value == pytest.approx(150.0)
    every_tenth = [f"{step}\timages/sec: {1.0 if step <= 20 else 50.0} +/- 0.0" for step in range(10, 200, 10)]
    assert throughput("job.log", every_tenth) == Throughput(50.0, "images/s", "tf_cnn_benchmarks", 100, 20)
    short = throughput("job.log", lines[:40])
    assert (short.value, short.steps, short.dropped) == (100.0, 20, 20)
    assert throughput("job.log", lines, drop=0, steps=20).value == 1.0


def test_of_many_ranks_one_is_read_and_a_step_counts_once() -> None:
    line = LINES["DeepSpeed"][0]
    for form in ("[1,{rank}]<stdout>:{line}", "[rank{rank}]:{line}", " {rank}: {line}"):
        lines = [form.format(rank=rank, line=line.format(n=step)) for step in range(1, 131) for rank in range(4)]
        assert throughput("job.log", lines).steps == 100
    same = [line.format(n=step) for step in range(1, 131) for _ in range(4)]  # each rank, and no word which
    assert throughput("job.log", same) == Throughput(250.0, "samples/s", "DeepSpeed", 100, 20)


def test_the_number_of_gpus_is_read_where_the_log_has_it() -> None:
    lines = ["Number of GPUs: 8", *(LINES["Horovod"][0].format(n=step) for step in range(130))]
    found = throughput("job.log", lines)
    assert (found.per_gpu, found.gpus) == (True, 8)


def test_what_a_log_lacks_is_said_with_its_name() -> None:
    wrong: dict[str, tuple[list[str], str]] = {
        "job.log: no throughput in a form that is known; give its form with --pattern '([0-9.]+) samples/s'": (
            ["hello\n"], "",
        ),
        "job.log: only 23 steps; the first 20 are left out (--drop), and 5 must be left": (["5 samples/s"] * 23, ""),
        "job.log: throughput in several units: images/s, tokens/s; choose one with --pattern": (
            ["5 images/s", "9 tokens/s"], "",
        ),
        "--pattern: it has no group: put the number in brackets, as in '([0-9.]+) samples/s'": ([], "samples"),
        "--pattern: missing ), unterminated subpattern at position 0": ([], "("),
    }  # fmt: skip
    for message, (lines, pattern) in wrong.items():
        with pytest.raises(NoThroughputError) as raised:
            throughput("job.log", lines, pattern)
        assert str(raised.value) == message
    own = throughput("job.log", [f"speed<{one}>" for one in range(1, 131)], r"speed<(\d+)>")
    assert rounded(own) == Throughput(70.5, "by --pattern", "--pattern", 100, 20)
