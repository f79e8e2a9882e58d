"""predict: what NCCL will do on these nodes, or what a training run will exchange, before it starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace

import click

from ncheck.cli.examine import nodes_file, observer_for, print_in, refuse_nodes, say, settings_of
from ncheck.cli.options import (
    CONFIG,
    JOB,
    NODES,
    PREDICTED,
    SSH,
    TIME,
    WHICH,
    GroupedCommand,
    options,
)
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS


@click.command(cls=GroupedCommand, short_help="Predict what NCCL will do, or what a training run exchanges.")
@NODES
@options(PREDICTED, WHICH, SSH, JOB, TIME, CONFIG)
@click.pass_context
def predict(  # noqa: PLR0913, PLR0917  the options
    context: click.Context,
    /,
    nodes: tuple[str, ...],
    model: str | None,
    compute: str | None,
    recording: str | None,
    outputs: tuple[str, ...],
    link_speed: float | None,
    **flags: object,
) -> int:
    """Predict what NCCL will do on the nodes of a file, before it runs: which algorithm, protocol, channels and NICs it
    takes for each size, the time and bus bandwidth to expect, what limits it, and what one change would bring.

    \b
    ncheck predict nodes.txt
    ncheck predict nodes.txt --op training --sizes 1M,256M,8G -o json
    ncheck predict --from DIR         from what --record DIR saved

    The nodes are asked what they have; nothing is measured. The choice is that of NCCL's own cost model, by the release
    that the nodes load; where no node has a GPU, gloo takes its place. What is not known is said to be unknown. Exit
    code: 1 if that is a bandwidth or a node.

    With --model it predicts what one GPU exchanges in one training step instead: bytes by collective, with the formulas
    and their sources; with nodes also the seconds on them. How long a step computes is given, or left out.

    \b
    ncheck predict nodes.txt --model params=8B,layers=32,hidden=4096,seq=8192,dp=32,zero=3 --compute 1.2s
    ncheck predict --model params=70B,layers=80,hidden=8192,seq=8192,micro=16,dp=8,tp=8,pp=4,zero=1
    ncheck predict --model params=8B,layers=32,hidden=4096,seq=8192,dp=64,zero=3 -o json

    \b
    params layers hidden seq     the model; params as 70B or 1.5T
    dp tp pp cp                  the groups: data, tensor, pipeline, context parallel  [1]
    zero                         0, or the ZeRO stage 1, 2 or 3 (3: FSDP)  [0]
    batch micro                  sequences of a micro-batch; micro-batches per step and replica  [1]
    sp vp recompute              sequence parallel; virtual stages per GPU; full recomputation
    dtype grads                  bf16, fp16 or fp32: of weights and activations, of gradients  [bf16]
    vocab tied                   the words; 1 if input and output share the embedding
    kv                           the width of all key heads together  [hidden]
    experts top_k active ep      mixture of experts: active is the parameters that a token uses
    moe_layers etp               layers with experts; tensor parallel in an expert  [layers, tp]
    """  # noqa: D301  click ends a paragraph's folding at \b
    if model is not None and not (nodes or recording or flags["hosts"] or flags["slurm"]):
        return _training(context, model, outputs, {**flags, "compute": compute, "link_speed": link_speed})
    if compute is not None and model is None:
        raise click.UsageError("--compute is about a model: add --model", context)
    if model is not None and (own := next((name for name in ("ops", "sizes") if flags[name]), None)):
        raise click.UsageError(
            f"--model says which operations and sizes there are: remove {_flag(context, own)}", context
        )
    if recording is not None:
        refuse_nodes(context, recording, nodes, flags)
    from ncheck.pipeline import look, look_again
    from ncheck.plan.inputs import unreachable
    from ncheck.predict.cluster import FACTS, predict_cluster
    from ncheck.predict.table import FORMS
    from ncheck.predict.training import seconds_of, training_run

    run, seconds = (training_run(model) if model is not None else None), seconds_of(compute)
    if recording is not None:
        settings = settings_of({**flags, "local": True})
        cluster = look_again(recording, FACTS)
    else:
        settings = settings_of({**flags, "nodes_file": nodes_file(context, nodes)})
        cluster = look(settings, observer_for(sys.stderr, os.environ, settings.longest), FACTS)
    if len(unreachable(cluster)) == len(cluster):
        say("nothing is predicted: no node could be asked")
        return EXIT_FINDINGS
    if flags["slots"] is not None:  # what if: it counts more than the list, which a recording has, and than the GPUs
        cluster = replace(cluster, nodes=tuple(replace(node, slots=settings.slots) for node in cluster.nodes))
    if run is not None:
        from ncheck.predict.show import FORMS as OF_MODEL
        from ncheck.predict.step_time import predict_step

        step = predict_step(cluster, run, settings.slots, seconds, link_speed)
        print_in(OF_MODEL, outputs, step)
        return EXIT_FINDINGS if step.exchanges and step.seconds is None else EXIT_CLEAN
    prediction = predict_cluster(cluster, settings.ops, settings.sizes, settings.slots, link_speed)
    print_in(FORMS, outputs, prediction)
    return EXIT_CLEAN if prediction.whole else EXIT_FINDINGS


def _training(context: click.Context, model: str, outputs: tuple[str, ...], given: Mapping[str, object]) -> int:
    from ncheck.predict.show import FORMS
    from ncheck.predict.training import StepPrediction, exchanges, training_run

    if other := next((name for name, value in given.items() if value not in (None, (), "")), None):
        flag = _flag(context, other)
        raise click.UsageError(f"--model without nodes counts bytes alone: remove {flag}, or name the nodes", context)
    run = training_run(model)
    print_in(FORMS, outputs, StepPrediction(run, exchanges(run)))
    return EXIT_CLEAN


def _flag(context: click.Context, name: str) -> str:
    return next(parameter.opts[-1] for parameter in context.command.params if parameter.name == name)
