"""The clock stage: the trained GPT gets a clock in the three dimensions that it can spare best."""

import shutil
from typing import Any

import torch

from tools.tiny_voice.clock import HANDS, add_clock, isolate
from tools.tiny_voice.gpt import trained_gpt
from tools.tiny_voice.latents import GptLatents, clocked_gpt, vocoder_clips
from tools.tiny_voice.stages import BuildContext
from tools.untrained import write_weights
from utils.core.folders import replace_folder
from utils.xtts.files import MEL_FILE, MODEL_FILE
from utils.xtts.model import VOCODER_PREFIX, read_state_dict, strip_prefix

CANDIDATES = 14  # dimensions that are tried


def give_clock(context: BuildContext) -> dict[str, Any]:
    """Write the GPT with the clock, and return its dimensions and what it costs."""
    learnt = trained_gpt(context)
    reader, clips = GptLatents(context, learnt), vocoder_clips(context)[1]
    weights = {name: weight.clone() for name, weight in reader.gpt.state_dict().items()}
    losses = {"before": reader.loss(clips)}
    without = {}
    for dim in context.progress("clock").over(_candidates(weights), CANDIDATES):
        reader.gpt.load_state_dict(isolate(weights, [dim]))
        without[dim] = reader.loss(clips)
    dims = sorted(without, key=lambda dim: without[dim])[: len(HANDS)]
    changed = add_clock(weights, dims)
    reader.gpt.load_state_dict(changed)
    losses["after"] = reader.loss(clips)
    with replace_folder(clocked_gpt(context)) as new:
        shutil.copytree(learnt, new, dirs_exist_ok=True, copy_function=shutil.copyfile)
        vocoder = strip_prefix(read_state_dict(learnt / MODEL_FILE), VOCODER_PREFIX)
        write_weights(new, changed, vocoder, torch.load(learnt / MEL_FILE, weights_only=True))
    return {"dims": dims, "loss": {name: round(loss, 4) for name, loss in losses.items()}}


def _candidates(weights: dict[str, torch.Tensor]) -> list[int]:
    """Return the dimensions that the scores and the layers weigh least."""
    scores = weights["mel_head.weight"].std(0) * weights["final_norm.weight"].abs()
    layers = torch.zeros_like(scores)
    for name, weight in weights.items():
        if name.endswith((".c_attn.weight", ".c_fc.weight")):
            norm = name.replace("attn.c_attn", "ln_1").replace("mlp.c_fc", "ln_2")
            layers += weight.norm(dim=1) * weights[norm].abs()
    weighed = scores / scores.median() + layers / layers.median()
    return [int(dim) for dim in weighed.argsort()[:CANDIDATES]]
