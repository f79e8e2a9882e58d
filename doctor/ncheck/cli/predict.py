"""predict: what a training run will exchange between its GPUs, before it starts."""

from __future__ import annotations

import click

from ncheck.cli.examine import print_in
from ncheck.errors import EXIT_CLEAN


@click.command(short_help="Predict what a training run exchanges between its GPUs.")
@click.option("--model", required=True, metavar="KEY=VALUE,...", help="The model, and how it is split over GPUs.")
@click.option("-o", "outputs", multiple=True, metavar="FORMAT[=FILE]", help="text or json. Can be repeated.  [text]")
def predict(model: str, outputs: tuple[str, ...]) -> int:
    """Predict what one GPU exchanges in one training step: bytes by collective, with the formulas and their sources.

    \b
    ncheck predict --model params=70B,layers=80,hidden=8192,seq=8192,micro=16,dp=8,tp=8,pp=4,zero=1
    ncheck predict --model params=8B,layers=32,hidden=4096,seq=8192,dp=64,zero=3 -o json

    \b
    params layers hidden seq     the model; params as 70B or 1.5T
    dp tp pp cp                  the groups: data, tensor, pipeline, context parallel  [1]
    zero                         0, or the ZeRO stage 1, 2 or 3 (3: FSDP)  [0]
    batch micro                  sequences of a micro-batch; micro-batches a step and replica  [1]
    sp vp recompute              sequence parallel; virtual stages a GPU; full recomputation
    dtype grads                  bf16, fp16 or fp32: of weights and activations, of gradients  [bf16]
    vocab tied                   the words; 1 if input and output share the embedding
    kv                           the width of all key heads together  [hidden]
    experts top_k active ep      mixture of experts: active is the parameters that a token uses
    moe_layers etp               layers with experts; tensor parallel in an expert  [layers, tp]

    Nothing is guessed of computing.
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.predict.show import FORMS
    from ncheck.predict.training import training_run

    print_in(FORMS, outputs, training_run(model))
    return EXIT_CLEAN
