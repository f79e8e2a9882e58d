"""The throughput of a log: the lines of each framework, the window of steps, ranks, and what a log may lack."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.speedup.throughput import NoThroughputError, Throughput, throughput

UNNUMBERED = ", each line counted as a step"

# By framework: a line of step {n}, its number of 250.0, 0.25 or 250 ms, and what is read.
LINES = {
    "Megatron-LM": ((" iteration {n:8}/  500 | consumed samples: 9 | elapsed time per iteration (ms): 250.0 |"
                    " learning rate: 1E-04 | global batch size:   64 | lm loss: 8.1E+00 |"), 256.0, "samples/s"),
    "DeepSpeed": (("[2026-11-24 10:00:00,123] [INFO] [timer.py:260:stop] epoch=0/micro_step={n}/global_step={n}, "
                  "RunningAvgSamplesPerSec=199.5, CurrSamplesPerSec=250.0, MemAllocated=1.9GB"), 250.0, "samples/s"),
    "OneFlow ": ("[rank:0] [train], iter: {n}/900, loss: 6.9, throughput: 250.00 | 2026-11-24", 250.0,
                 "samples/s"),
    "PaddlePaddle ": (("[2026-11-24 10:00:00] [    INFO] - [train] epoch: [0/9], batch: [{n}/900], speed: 2.00 step/s, "
                      "ips_total: 250 tokens/s, ips: 31 tokens/s, learning rate: 1e-5"), 250.0, "tokens/s"),
    "PaddlePaddle": (("[2026/11/24 10:00:00] INFO: [Train][Epoch 0/10][Iter: {n}/900]lr: 0.1, batch_cost: 0.49s, "
                     "reader_cost: 0.01, ips: 250.0 samples/s, eta: 0:10:00"), 250.0, "samples/s"),
    "OneFlow": (("[11/24 10:00:00 lb.utils.events]: eta: 0:01  iteration: {n}/900  loss: 7.2  data_time: 0.002 s/iter "
                "total_throughput: 250.0 samples/s lr: 1e-4"), 250.0, "samples/s"),
    "tf_cnn_benchmarks": ("{n}\timages/sec: 250.0 +/- 0.3 (jitter = 0.4)\t7.9", 250.0, "images/s"),
    "fairseq": ("2026-11-24 10:00:00 | INFO | train_inner | epoch 001: {n} / 900 loss=9.1, wps=250.0, ups=3.2", 250.0,
                "tokens/s"),
    "Horovod": ("Iter #{n}: 250.0 img/sec per GPU", 250.0, "images/s"),
    "torchtitan": ("2026-11-24 - INFO - step: {n:2}  loss:  8.1  memory: 30.1GiB  tps: 250  mfu: 41%", 250.0,
                   "tokens/s"),
    "NeMo": ("Epoch 0: {n}/900, v_num=0, reduced_train_loss=2.1, train_step_timing in s=0.25", 4.0, "steps/s"),
    "PyTorch's ImageNet example": ("Epoch: [0][{n:4}/5005]\tTime  0.250 (  0.512)\tData  0.011", 4.0, "steps/s"),
    "NeMo ": (("Training epoch 0, iteration {n}/900 | global_batch_size: 64 | global_step: {n} | "
              "train_step_timing in s: 0.250 | consumed_samples: 64"), 256.0, "samples/s"),
    "torchvision": (("Epoch: [0]  [{n:5}/10009]  eta: 1:02:33  lr: 0.1  img/s: 250.000  loss: 6.9  time: 0.1024  "
                    "data: 0.0002  max mem: 9331"), 250.0, "images/s"),
    "DeepLearningExamples": (("DLL 2026-11-24 - Epoch: 0 Iteration: {n}  train.compute_ips : 299.00 "
                             "images/s train.total_ips : 250.00 images/s train.lr : 0.1"), 250.0, "images/s"),
    "MosaicML Composer": (("[batch={n}/4800]:\n\t Train throughput/batches_per_sec: 2.1\n"
                          "\t Train throughput/samples_per_sec: 250.0\n"
                          "\t Train throughput/device/samples_per_sec: 31.2\n\t Train throughput/tokens_per_sec: 5123"),
                         250.0, "samples/s"),
    "Detectron2": (("[11/24 10:00:00 d2.utils.events]:  eta: 2:03:04  iter: {n}  total_loss: 1.2  time: 0.2500  "
                   "last_time: 0.3600  data_time: 0.0123   lr: 0.02  max_mem: 3900M"), 4.0, "steps/s"),
    "fairseq ": ('2026-11-24 | INFO | train_inner | {{"wps": "250", "num_updates": "{n}"}}', 250.0, "tokens/s"),
    "torchtitan ": ("[rank0]:2026 - \x1b[31mstep: {n:2}\x1b[0m  \x1b[32mloss:  8.1\x1b[0m  \x1b[34mtps: 250\x1b[0m",
                    250.0, "tokens/s"),
    "samples, images or tokens a second ": (("11/24 [INFO|DP=0|PP=0]: iteration: {n} / 500 | consumed_tokens: 1.05M | "
                                            "tokens_per_sec: 2.1M | tokens_per_sec_per_gpu: 262K"), 2.1e6, "tokens/s"),
    "Megatron-LM ": (" iteration {n:8}/  500 | elapsed time per iteration (ms): 250.0 | lm loss: 8 |", 4.0, "steps/s"),
    "throughput of one GPU": ("Step {n} | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:250.0", 250.0, "tokens/s"),
    "throughput of one GPU ": ("completed step: {n}, seconds: 1.2, Tokens/s/device: 250.0, loss: 9",
                                                       250.0, "tokens/s"),
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
        lines = "\n".join(line.format(n=step) for step in range(1, 131)).splitlines(keepends=True)
        found = throughput("job.log", lines)
        kind = name.rstrip()
        how = {"tqdm": ", the bar of 900 steps", "NeMo": UNNUMBERED, "fairseq": UNNUMBERED}
        shown = f"{kind}{how.get(name, '')}"
        per_gpu = "GPU" in name or kind in ("Horovod", "torchtitan", "torchvision") or name == "PaddlePaddle"
        assert rounded(found) == Throughput(value, unit, shown, 100, 20, per_gpu), name
    whole = throughput("job.log", ["{'train_runtime': 9.4, 'train_samples_per_second': 45.6, 'epoch': 1.0}\n"])
    assert whole == Throughput(45.6, "samples/s", "Hugging Face Trainer", 0, 0)
    epochs = [f"469/469 [==============================] - 5s {time}ms/step - loss: 0.1\n" for time in (30, 10, 10)]
    assert rounded(throughput("job.log", epochs)) == Throughput(100.0, "steps/s", "Keras, by epoch", 0, 1)
    colored = [
        f"\x1b[1m469/469\x1b[0m \x1b[32m━━━\x1b[0m \x1b[1m5s\x1b[0m {time}ms/step - loss: 0.1" for time in (30, 10)
    ]
    assert rounded(throughput("job.log", colored)) == Throughput(100.0, "steps/s", "Keras, by epoch", 0, 1)
    slow = ["\r".join(f" 9%|# | {step}/900 [00:30<03:00,  4.00s/it]" for step in range(1, 131))]
    assert rounded(throughput("job.log", slow)) == Throughput(0.25, "steps/s", "tqdm, the bar of 900 steps", 100, 20)


def test_a_bar_is_read_by_time_and_not_that_of_a_validation_or_of_files() -> None:
    def bar(step: int, total: int, rate: str, name: str = "") -> str:
        return f"{name}  9%|# | {step}/{total} [00:30<03:00,  {rate}]"

    lines = [bar(step, 4, "9.00it/s", "Loading checkpoint shards:") for step in range(1, 5)]
    for step in range(1, 131):
        lines.append(bar(step, 900, "2.00s/it" if step % 2 else "1.00it/s"))
        if step % 10 == 0:
            lines += [bar(part, 2000, "50.0it/s", "Validation DataLoader 0:") for part in range(1, 9)]
            lines += [bar(part, 63, "50.0it/s") for part in range(1, 63)]
    assert rounded(throughput("job.log", lines)) == Throughput(
        0.666667, "steps/s", "tqdm, the bar of 900 steps", 100, 20
    )  # fmt: skip


def test_no_other_number_is_taken_for_the_throughput() -> None:
    with pytest.raises(NoThroughputError, match="no throughput in a form that is known"):
        throughput(
            "job.log",
            [
                "lr: 0.1  img/s: nan  loss: nan",
                "samples/s: inf",
                "throughput/device/samples_per_sec: 5",
                "Throughput: 150 TFLOPS",
                "TFLOP/s/device: 300",
            ],
        )
    mixed = [f"step {step} | tokens_per_sec: {'1000K' if step % 2 else '1.00M'}" for step in range(1, 131)]
    assert throughput("job.log", mixed).value == pytest.approx(1e6)
    ramped = [LINES["Megatron-LM"][0].format(n=step).replace("   64", "  128" if step > 70 else "   64")
              for step in range(1, 131)]  # fmt: skip
    assert throughput("job.log", ramped).value == pytest.approx(384.0)
    one_gpu = ["Variables:   horovod", *(LINES["tf_cnn_benchmarks"][0].format(n=step) for step in range(1, 131))]
    assert throughput("job.log", one_gpu).per_gpu
    drifting = [LINES["tqdm"][0].format(n=step + ahead) for step in range(1, 131) for ahead in (1, 0)]
    assert throughput("job.log", drifting).steps == 100


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
    timed = throughput("job.log", ["took 250 of it"] * 130, r"took (?P<ms>\d+)")
    assert rounded(timed) == Throughput(4.0, "steps/s", f"--pattern{UNNUMBERED}", 100, 20)
    own = throughput("job.log", [f"speed<{one}>" for one in range(1, 131)], r"speed<(\d+)>")
    assert rounded(own) == Throughput(70.5, "by --pattern", f"--pattern{UNNUMBERED}", 100, 20)
