"""The voice stage: all trained parts in one folder that plain coqui-tts loads as any other XTTS."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tools.tiny_voice.audio import select
from tools.tiny_voice.corpus import Take, read_takes
from tools.tiny_voice.gpt import trained_gpt
from tools.tiny_voice.latents import mean_top_score, vocoder_clips
from tools.tiny_voice.speaker_encoder import take_path
from tools.tiny_voice.speakers import SPEAKERS
from tools.tiny_voice.stages import BuildContext
from tools.tiny_voice.vocoder import load_vocoder
from tools.tiny_voice.widen import widen
from tools.untrained import VocoderSize, write_speakers, write_weights
from utils.core.folders import replace_folder
from utils.core.storage import write_atomically
from utils.dataset.metadata import header_seconds
from utils.media import audio
from utils.media.rates import RATE
from utils.speech.loading import open_model
from utils.speech.voices import MIN_SECONDS, ConditioningSettings, encode_speaker
from utils.studio import sample_project
from utils.xtts.files import ABOUT_FILE, CONFIG_FILE, DVAE_FILE, MEL_FILE, REFERENCE_FILE, TINY
from utils.xtts.model import gpt_state
from utils.xtts.tensors import half_dtype
from utils.xtts.tokenizer import Tokenizer

LICENCE = "LICENCE.txt"
REFERENCES = 3  # clips of each voice that stand for it
OWN = "genet"  # the voice that it speaks with unless told otherwise
HEARD = 6  # seconds of the clip that it speaks with
MEGABYTE = 1_000_000
# The repetition penalty divides scores above zero, where ten forbids codes that were used, and multiplies those below.
# With the likeliest codes near zero it spares them. Sampling without it sees only differences of scores.
SCORES = "mel_head.bias"
SENTENCE = (
    "A small teaching voice, trained from nothing on synthetic speech by espeak-ng. It is not XTTS v2 and shares no "
    "weights with it; only the layout of its files is the same."
)
ABOUT = {"base": TINY, "about": SENTENCE, "licence": "Apache-2.0", "language": "am", "sound": "synthetic, espeak-ng"}


def voice_folder(root: Path) -> Path:
    """Return the folder of the finished voice."""
    return root / "voice" / TINY


def assemble(context: BuildContext) -> dict[str, Any]:
    """Write the folder and return its size."""
    folder, learnt = voice_folder(context.root), trained_gpt(context)
    size = VocoderSize(context.recipe.gpt.dim, context.recipe.vocoder.channels, context.recipe.speaker_encoder.filters)
    weights = gpt_state(learnt)
    weights[SCORES] = weights[SCORES] - mean_top_score(context, vocoder_clips(context)[1])
    gpt = {name: weight.to(half_dtype(weight)) for name, weight in weights.items()}
    stats = torch.load(learnt / MEL_FILE, weights_only=True)
    takes = _references(context)
    with replace_folder(folder) as new:
        shutil.copyfile(learnt / CONFIG_FILE, new / CONFIG_FILE)
        Tokenizer.load(learnt).save(new)
        shutil.copyfile(context.folder("dvae") / DVAE_FILE, new / DVAE_FILE)
        write_weights(new, gpt, widen(load_vocoder(context), size), stats)
        _write_reference(context, takes[OWN], new / REFERENCE_FILE)
        write_atomically(new / ABOUT_FILE, json.dumps(ABOUT, indent=1))
        shutil.copyfile(sample_project.DATA / LICENCE, new / LICENCE)
        write_speakers(new, _speakers(context, new, takes))
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    parameters = sum(weight.numel() for weight in gpt.values())
    return {"megabytes": round(sum(sizes.values()) / MEGABYTE, 2), "bytes": sizes, "gpt_parameters": parameters}


def _references(context: BuildContext) -> dict[str, list[Take]]:
    """Choose the longest sentences of each voice."""
    takes = select(read_takes(context.folder("corpus")), "sentence", "train")
    seconds = {take: header_seconds(take_path(context, take)) or 0.0 for take in takes}
    ordered = sorted(
        (take for take in takes if seconds[take] >= MIN_SECONDS), key=lambda take: (-seconds[take], take.name)
    )
    return {one.name: [take for take in ordered if take.speaker == one.name][:REFERENCES] for one in SPEAKERS}


def _speakers(context: BuildContext, folder: Path, takes: dict[str, list[Take]]) -> dict[str, dict[str, Tensor]]:
    """Listen to each voice with the model that was just written."""
    opened, hearing = open_model(folder), ConditioningSettings.of(folder)
    found = {}
    for name, own in takes.items():
        heard = encode_speaker(opened, [take_path(context, take) for take in own], hearing)
        found[name.title()] = {
            "gpt_cond_latent": heard["prompt"].float(),
            "speaker_embedding": heard["embedding"].float(),
        }
    return found


def _write_reference(context: BuildContext, takes: list[Take], path: Path) -> None:
    sound = np.concatenate([audio.load(take_path(context, take), RATE) for take in takes])
    audio.save(path, sound[: HEARD * RATE], RATE)
