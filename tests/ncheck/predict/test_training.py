"""ncheck predict --model: published models by hand, the formulas of their papers, the output, and bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.facts.environment import EnvironmentFacts
from ncheck.pipeline import look_again
from ncheck.predict.cluster import FACTS
from ncheck.predict.step_time import predict_step
from ncheck.predict.training import Group, StepPrediction, exchanges, training_run


def sent(model: str) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return the calls and the size of each exchange, by what it is, its operation and its group."""
    return {
        (each.what, each.op, f"{each.group.name}={each.group.size}"): (each.calls, each.size)
        for each in exchanges(training_run(model))
    }


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(("predict", *args))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_trillion_parameter_model_of_megatron_lm() -> None:
    """Table 1 of arXiv 2104.04473: 3072 GPUs, batch 3072; 3.2: 8bsh(t-1)/t a layer and micro-batch, bsh by pipeline."""
    model = "params=1008B,layers=128,hidden=25600,seq=2048,dp=6,tp=8,pp=64,micro=512"
    run = training_run(model)
    activations = 2048 * 25600 * 2  # bsh in bf16
    assert (run.gpus, run.batch * run.micro * run.dp) == (3072, 3072)
    assert sent(model) == {
        ("activations of each layer", "all-reduce", "tp=8"): (512 * 2 * 4, activations),
        ("activations between stages", "send-recv", "pp=64"): (512 * 2, activations),
        ("gradients", "all-reduce", "dp=6"): (2, 1008 * 10**9 // 64 // 8 * 2 // 2),
    }
    tensors = next(each for each in exchanges(run) if each.group.name == "tp")
    assert tensors.sent == 512 * 2 * 8 * 2048 * 25600 * 7 // 8 * 2


@pytest.mark.parametrize(("zero", "volume"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_zero_sends_twice_or_thrice_the_parameters(zero: int, volume: int) -> None:
    """Section 7.2 of arXiv 1910.02054: 2 Psi up to stage 2, 3 Psi with stage 3; here of 7.5B parameters on 64 GPUs."""
    found = exchanges(training_run(f"params=7.5B,layers=50,hidden=3072,seq=1024,dp=64,zero={zero}"))
    assert sum(each.sent for each in found) == volume * 15 * 10**9 * 63 // 64


def test_micro_batches_repeat_what_their_stage_of_zero_does_for_each() -> None:
    model = "params=7.5B,layers=50,hidden=3072,seq=1024,dp=64,micro=4,grads=fp32,zero="
    grads, values = 7500 * 10**6 // 50 * 4, 7500 * 10**6 // 50 * 2
    scatter, gather = ("gradients", "reduce-scatter", "dp=64"), ("parameters", "all-gather", "dp=64")
    calls = {
        "0": {("gradients", "all-reduce", "dp=64"): (50, grads)},
        "1": {scatter: (50, grads), gather: (50, values)},
        "2": {scatter: (200, grads), gather: (50, values)},
        "3": {scatter: (200, grads), gather: (400, values)},
    }
    assert {zero: sent(model + zero) for zero in calls} == calls


def test_sequence_parallel_sends_what_tensor_parallel_does_and_one_gather_more_for_each_half_of_a_layer() -> None:
    """Section 4.2.2 of arXiv 2205.05198; the gather is done again in the backward pass."""
    model, size = "params=530B,layers=105,hidden=20480,seq=2048,tp=8", 2048 * 20480 * 2
    whole, split = sent(model), sent(f"{model},sp=1")
    assert whole == {("activations of each layer", "all-reduce", "tp=8"): (105 * 4, size)}
    assert split == {
        ("activations of each layer", "all-gather", "tp=8"): (105 * 6, size),
        ("activations of each layer", "reduce-scatter", "tp=8"): (105 * 4, size),
    }
    assert sent(f"{model},recompute=1") == {("activations of each layer", "all-reduce", "tp=8"): (105 * 6, size)}


def test_llama_3_405b_at_its_long_context() -> None:
    """Table 4 of arXiv 2407.21783: 16,384 GPUs, tp 8, cp 16, pp 16, dp 8, 131,072 tokens; 8 key heads of 128. That run
    gathered keys and values; here they go round in a ring, as Megatron-LM does it by default.
    """
    model = "params=405B,layers=126,hidden=16384,seq=131072,kv=1024,tp=8,cp=16,pp=16,dp=8,micro=16,sp=1"
    assert training_run(model).tokens == 16 * 2**20  # table 4: 16M tokens a batch
    found = sent(model)
    assert found["keys and values", "send-recv", "cp=16"] == (16 * 8 * 3 * 15, 2 * 8192 * 128 * 2)
    assert found["activations between stages", "send-recv", "pp=16"] == (16 * 2, 8192 * 16384 * 2 // 8)
    assert ("gradients", "all-reduce", "dp x cp=128") in found


def test_mixtral_8x7b_and_its_experts() -> None:
    """46.7B parameters, 12.9B of a token: 45.1B are in 32 x 8 experts of 3 x 4096 x 14336 (its config.json)."""
    found = sent("params=46.7B,active=12.9B,layers=32,hidden=4096,seq=4096,experts=8,top_k=2,ep=8,dp=16")
    assert found["tokens to experts and back", "all-to-all", "ep=8"] == (32 * 4, 4096 * 2 * 4096 * 2)
    calls, size = found["gradients of experts", "all-reduce", "expert dp=2"]
    assert calls * size / 2 == pytest.approx(32 * 3 * 4096 * 14336, rel=0.002)  # one expert of each layer
    assert found["gradients", "all-reduce", "dp=16"][0] == 32


def test_experts_with_tensor_parallel_gather_their_tokens() -> None:
    model = "params=46.7B,active=12.9B,layers=32,hidden=4096,seq=4096,experts=8,top_k=2,ep=4,tp=2,dp=4"
    tokens = 4096 // 2 * 2 * 4096 * 2
    assert {key: value for key, value in sent(model).items() if "gradients" not in key[0]} == {
        ("activations of each layer", "all-gather", "tp=2"): (32 * 3, 4096 * 4096 * 2),  # attention alone
        ("activations of each layer", "reduce-scatter", "tp=2"): (32 * 2, 4096 * 4096 * 2),
        ("tokens to experts and back", "all-to-all", "ep=4"): (32 * 4, tokens),
        ("tokens of split experts", "all-gather", "etp=2"): (32 * 2, 2 * tokens),
        ("tokens of split experts", "reduce-scatter", "etp=2"): (32 * 2, 2 * tokens),
    }
    whole = sent(f"{model.replace('ep=4', 'ep=8')},etp=1")  # as Megatron-LM advises
    assert whole["tokens to experts and back", "all-to-all", "ep=8"] == (32 * 4, tokens)
    assert not [key for key in whole if "etp" in key[2]]


def test_embeddings_belong_to_the_first_and_the_last_stage() -> None:
    model = "params=8B,layers=32,hidden=4096,seq=8192,dp=2,pp=4,vocab=128256"
    embedding = 128256 * 4096
    stage = (8 * 10**9 - 2 * embedding) // 4 + embedding
    assert sent(model)["gradients", "all-reduce", "dp=2"] == (8, stage * 2 // 8)
    tied = sent(f"{model},tied=1")
    assert tied["gradients of the tied embedding", "all-reduce", "first and last stage=2"] == (1, embedding * 2)
    assert sent(f"{model.replace('pp=4', 'tp=4')}")["activations of each layer", "all-reduce", "tp=4"][0] == 32 * 4 + 2


@pytest.mark.parametrize(
    ("split", "gathers", "scatters"), [("dp=1", 32 * 6 + 3, 32 * 4 + 2), ("pp=4", 8 * 6 + 2, 8 * 4 + 1)]
)
def test_sequence_parallel_embeddings_gather_in_both_passes(split: str, gathers: int, scatters: int) -> None:
    """Megatron Core, tensor_parallel/layers.py. The embedding: scattered, and gathered in the backward pass. The output
    layer: gathered, and in the backward pass again for its weights, and scattered. With pp the last stage has that one.
    """
    found = sent(f"params=8B,layers=32,hidden=4096,seq=8192,vocab=128256,tp=4,sp=1,{split}")
    assert found["activations of each layer", "all-gather", "tp=4"][0] == gathers
    assert found["activations of each layer", "reduce-scatter", "tp=4"][0] == scatters


def test_a_group_lies_on_the_nodes_that_the_order_of_ranks_gives_it() -> None:
    assert Group("tp", 8, 1).placed(32, 8) == (((0, 8),), ((1, 8),), ((2, 8),), ((3, 8),))
    assert Group("dp", 4, 8).placed(32, 8) == (((0, 1), (1, 1), (2, 1), (3, 1)),)
    assert Group("dp", 8, 2).placed(32, 8) == (((0, 4), (1, 4)), ((2, 4), (3, 4)))
    assert Group("tp", 12, 1).placed(24, 8) == (((0, 8), (1, 4)), ((1, 4), (2, 8)))
    assert Group("first and last stage", 2, 24).placed(32, 8) == (((0, 1), (3, 1)),)


def test_text_names_bytes_formulas_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "--model", "params=70B,layers=80,hidden=8192,seq=8192,micro=8,dp=4,tp=8,pp=2,zero=1")
    assert (code, err) == (0, "")
    assert out.splitlines()[:13] == [
        "70B parameters on 64 GPUs (dp 4 x tp 8 x pp 2), 32 x 8,192 tokens a step",
        "",
        "In one step, the busiest GPU:",
        "",
        "what                        operation       group  calls  of each  one GPU sends",
        "activations of each layer   all-reduce      tp=8   1,280   134 MB         301 GB",
        "activations between stages  send-recv       pp=2       8   134 MB        1.07 GB",
        "gradients                   reduce-scatter  dp=4      40   219 MB        6.56 GB",
        "parameters                  all-gather      dp=4      40   219 MB        6.56 GB",
        "",
        "all-reduce: 301 GB a step",
        "send-recv: 1.07 GB a step",
        "reduce-scatter: 6.56 GB a step",
    ]
    assert "    Narayanan et al. 2021, arXiv 2104.04473, 3.2\n" in out
    assert max(map(len, out.splitlines())) <= 120


def test_one_gpu_exchanges_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "--model", "params=124M,layers=12,hidden=768,seq=1024")
    assert (code, out) == (
        0, "124M parameters on 1 GPU, 1 x 1,024 tokens a step\n\nNothing is exchanged: every group has one GPU.\n",
    )  # fmt: skip


def test_json_has_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    model = "params=7.5B,layers=50,hidden=3072,seq=1024,dp=64,zero=3"
    code, out, _ = told(capsys, "--model", model, "-o", "json")
    read = json.loads(out)
    assert (code, read["schema"], read["gpus"], read["tokens"]) == (0, "ncheck.predict-model/1", 64, 65536)
    assert read["sent"] == {"reduce-scatter": 15 * 10**9 * 63 // 64, "all-gather": 30 * 10**9 * 63 // 64}
    assert read["exchanges"][0] == {
        "what": "gradients", "op": "reduce-scatter", "group": {"name": "dp", "size": 64, "stride": 1}, "calls": 50,
        "size": 300 * 10**6, "formula": "once a micro-batch, all gradients of the GPU",
        "source": "Rajbhandari et al. 2020, arXiv 1910.02054, 7.2", "sent": 15 * 10**9 * 63 // 64, "time": None,
    }  # fmt: skip


LARGE = "params is a number such as 70B, 1.5T or 350M, at most 1000T, not"
GOOD = "params=70B,layers=80,hidden=8192,seq=8192"


@pytest.mark.parametrize(("model", "reason"), [
    ("params=70B,layers=80,hidden=8192", "seq is missing, as in: --model params=70B,layers=80,hidden=8192,seq=8192"),
    (f"{GOOD},dp=8,dp=4", "dp is given twice"),
    (f"{GOOD},nodes=4", "'nodes=4' has none of the keys params, layers, "),
    (f"{GOOD},", "expected keys with values, as in params=70B,layers=80, not ''"),
    ("params", "expected keys with values, as in params=70B,layers=80, not 'params'"),
    ("params=1e30,layers=80,hidden=8192,seq=8192", f"{LARGE} '1e30'"),
    ("params=999999999999999999T,layers=80,hidden=8192,seq=8192",
     f"{LARGE} '999999999999999999T'"),
    ("params=-70B,layers=80,hidden=8192,seq=8192", f"{LARGE} '-70B'"),
    ("params=70B,layers=0,hidden=8192,seq=8192", "layers is a whole number from 1 to 1,000,000, not '0'"),
    ("params=70B,layers=1,hidden=1,seq=1", "params=70,000,000,000 are too many for 1 layers of 1"),
    (f"{GOOD},dp=999999999", "dp is a whole number from 1 to 1,000,000, not '999999999'"),
    (f"{GOOD},dp=99999,tp=8,pp=80", "dp x tp x pp x cp = 63,999,360 GPUs are more than 10,000,000"),
    (f"{GOOD},dp=8,batch=999999,micro=999999",
     "batch x micro x dp = 7,999,984,000,008 sequences are more than 1,000,000,000"),
    ("params=70b,layers=80,hidden=8192,seq=8192", f"{LARGE} '70b'"),
    ("params=1e9,layers=80,hidden=8192,seq=8192", f"{LARGE} '1e9'"),
    ("params=70B,layers=80,hidden=8192,seq=8K", "seq is a whole number from 1 to 100,000,000, not '8K'"),
    (f"{GOOD},tp=0", "tp is a whole number from 1 to 1,000,000, not '0'"),
    (f"{GOOD},tp=-1", "tp is a whole number from 1 to 1,000,000, not '-1'"),
    (f"{GOOD},tp=٨", "tp is a whole number from 1 to 1,000,000, not '٨'"),
    (f"{GOOD},zero=4", "zero is 0, 1, 2 or 3, not '4'"),
    (f"{GOOD},sp=yes", "sp is 0 or 1, not 'yes'"),
    (f"{GOOD},dtype=fp8", "dtype is one of bf16, fp16, fp32, not 'fp8'"),
    ("params=70M,layers=80,hidden=8192,seq=8192", "params=70,000,000 are too few for 80 layers of 8192"),
    (f"{GOOD},kv=819200", "params=70,000,000,000 are too few for kv=819200"),
    (f"{GOOD},pp=96", "pp x vp = 96 stages are more than layers=80"),
    (f"{GOOD},vp=2", "vp=2 needs pp"),
    (f"{GOOD},tp=3", "hidden=8192 cannot be divided by tp=3"),
    (f"{GOOD},cp=3", "seq=8192 cannot be divided by cp=3"),
    (f"{GOOD},sp=1", "sp=1 needs tp"),
    (f"{GOOD},ep=8", "ep needs experts"),
    (f"{GOOD},experts=8,top_k=2,ep=8", "active is missing: experts needs it, the parameters that a token uses"),
    (f"{GOOD},experts=8,top_k=8,active=10B", "top_k=8 is not less than experts=8"),
    (f"{GOOD},experts=8,top_k=2,active=70B", "active=70,000,000,000 is not less than params=70,000,000,000"),
    (f"{GOOD},experts=8,top_k=2,active=1B", "active=1,000,000,000 is too few for top_k=2 of 8 experts"),
    (f"{GOOD},experts=8,top_k=2,active=30B,ep=3,dp=3", "experts=8 cannot be divided by ep=3"),
    (f"{GOOD},experts=8,top_k=2,active=30B,ep=8,dp=4", "dp x cp x tp = 4 cannot be divided by ep x etp = 8"),
])  # fmt: skip
def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str], model: str, reason: str) -> None:
    code, out, err = told(capsys, "--model", model)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"ncheck: --model: {reason}")


HEALTHY = str(Path(__file__).parents[3] / "fixtures" / "healthy-4x8-h100")  # 8 H100 and 8 x 400 Gb/s on each node
SMALL = "params=8B,layers=32,hidden=4096,seq=8192,micro=4"


def timed(model: str, **variables: str) -> StepPrediction:
    """Time a step on the four nodes, on which these variables are set."""
    cluster = look_again(HEALTHY, FACTS)
    known = {
        name: {**facts, EnvironmentFacts: EnvironmentFacts(variables, {})} for name, facts in cluster.known.items()
    }
    return predict_step(replace(cluster, known=known), training_run(model), None, None)


def test_each_group_is_timed_where_it_lies() -> None:
    step = timed(f"{SMALL},dp=4,tp=8,zero=1")
    found = {each.what: one for each, one in zip(step.exchanges, step.timed, strict=True)}
    activations, gradients = found["activations of each layer"], found["gradients"]
    assert (activations.nodes, activations.ranks, gradients.nodes, gradients.ranks) == (1, 8, 4, 1)
    assert "NVL" in activations.limited_by
    assert gradients.limited_by == "one NIC: 1 x 400 Gb/s"
    carried = 2 * 8e9 / 8 * 3 / 4 / 50e9  # the parameters of a GPU in bf16, by a ring of four, over 400 Gb/s
    assert (gradients.seconds or 0) - (gradients.start_up or 0) == pytest.approx(carried, rel=0.01)
    assert step.seconds == sum(one.seconds or 0 for one in step.timed)


def test_groups_of_a_node_share_its_nics() -> None:
    model = f"{SMALL},dp=4,tp=8,zero=1"
    alone = timed(model, NCCL_IB_HCA="=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1").timed[
        1
    ]
    crowded = timed(model, NCCL_IB_HCA="=mlx5_0:1,mlx5_1:1").timed[1]
    assert (alone.seconds or 0) - (alone.start_up or 0) == pytest.approx(
        ((crowded.seconds or 0) - (crowded.start_up or 0)) / 4
    )
    assert crowded.limited_by == "one NIC: 1 x 400 Gb/s, shared by 8 groups"


def test_what_is_not_known_of_a_link_leaves_the_step_unknown() -> None:
    step = timed(f"{SMALL},dp=4,tp=8", NCCL_NET="Socket")
    assert [(one.seconds is None, bool(one.unknown)) for one in step.timed] == [(False, False), (True, True)]
    assert step.seconds is None


def test_nothing_known_is_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    bare = str(Path(HEALTHY).parent / "veth-without-infiniband")
    code, out, _ = told(capsys, "--from", bare, "--model", f"{SMALL},dp=16", "--compute", "1.2s")
    assert (code, out.splitlines()[7:9]) == (
        1, ["communication: unknown", "with 1.2 s of computing: a step takes at least 1.2 s"],
    )  # fmt: skip


def test_start_up_that_is_not_known_is_said_not_to_be_counted(capsys: pytest.CaptureFixture[str]) -> None:
    mixed = str(Path(HEALTHY).parent / "mixed-nccl")  # releases differ: NCCL's choice is not known
    _, out, _ = told(capsys, "--from", mixed, "--model", f"{SMALL},dp=32")
    assert out.splitlines()[-1] == "Start-up is not counted of gradients."
    assert [one.start_up is None for one in timed(f"{SMALL},dp=32").timed] == [False]


def test_the_share_of_communication_and_what_it_goes_to(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "--from", HEALTHY, "--model", f"{SMALL},dp=4,tp=8,zero=1", "--compute", "1.2s")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[4].endswith("one GPU sends  nodes x ranks     time")
    assert lines[6].split()[-5:-2] == ["4", "x", "1"]
    assert any(line.startswith("with 1.2 s of computing: a step takes 1.2 s to 1.") for line in lines)
    assert any("gradients, reduce-scatter: " in line and "limited by one NIC" in line for line in lines)
    tiny = "params=124M,layers=12,hidden=768,seq=64,dp=32,tp=1,zero=0"
    _, out, _ = told(capsys, "--from", HEALTHY, "--model", tiny)
    assert "is start-up: larger and fewer calls would help" in out


@pytest.mark.parametrize(("args", "reason"), [
    (("--from", HEALTHY, "--model", f"{SMALL},dp=8"), "--model: dp x tp x pp x cp needs 8 GPUs, and the nodes have 32"),
    (("--from", HEALTHY, "--model", f"{SMALL},dp=32", "--compute", "1.2"),
     "--compute: expected a time such as 1.2s or 800ms, at most a day, not '1.2'"),
    (("--from", HEALTHY, "--model", f"{SMALL},dp=32", "--compute", "86401s"),
     "--compute: expected a time such as 1.2s or 800ms, at most a day, not '86401s'"),
    (("--model", f"{SMALL},dp=32", "--compute", "1s"), "--model without nodes counts bytes alone: remove --compute"),
    (("--model", f"{SMALL},dp=32", "--slots", "8"), "--model without nodes counts bytes alone: remove --slots"),
    (("--from", HEALTHY, "--model", f"{SMALL},dp=32", "--op", "all-gather"),
     "--model says which operations and sizes there are: remove --op"),
    (("--from", HEALTHY, "--compute", "1s"), "--compute is about a model: add --model"),
])  # fmt: skip
def test_a_time_that_cannot_be_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], args: tuple[str, ...], reason: str
) -> None:
    code, out, err = told(capsys, *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"ncheck: {reason}")
