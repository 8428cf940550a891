"""The voice stage: all trained parts in one folder that plain coqui-tts loads as any other XTTS."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tools.tiny_voice.audio_stage import chosen
from tools.tiny_voice.corpus import SENTENCES, Take, read_takes
from tools.tiny_voice.gpt_stage import taught
from tools.tiny_voice.speaker_encoder import path_of
from tools.tiny_voice.speakers import SPEAKERS
from tools.tiny_voice.stages import Workshop
from tools.tiny_voice.vocoder import trained_vocoder
from utils.core.folders import replace_folder
from utils.core.storage import write_atomically
from utils.dataset.lengths import header_seconds
from utils.media import audio
from utils.media.rates import RATE
from utils.speech.open_model import open_model
from utils.speech.speaker_conditioning import SHORTEST, Hearing, hear
from utils.xtts.files import ABOUT_FILE, CONFIG_FILE, DVAE_FILE, MEL_FILE, REFERENCE_FILE, TINY
from utils.xtts.from_scratch import write_speakers, write_weights
from utils.xtts.model import gpt_state
from utils.xtts.narrow import Width, widened
from utils.xtts.tensors import half_dtype
from utils.xtts.tokenizer import Tokenizer

LICENCE = "LICENCE.txt"
REFERENCES = 3  # clips of each voice that stand for it
OWN = "genet"  # the voice that it speaks with unless told otherwise
HEARD = 6  # seconds of the clip that it speaks with
MEGABYTE = 1_000_000
SENTENCE = (
    "A small teaching voice, trained from nothing on synthetic speech by espeak-ng. It is not XTTS v2 and shares no "
    "weights with it; only the layout of its files is the same."
)
ABOUT = {"base": TINY, "about": SENTENCE, "licence": "Apache-2.0", "language": "am", "sound": "synthetic, espeak-ng"}


def voice_folder(root: Path) -> Path:
    """Return the folder of the finished voice."""
    return root / "voice" / TINY


def assemble(shop: Workshop) -> dict[str, Any]:
    """Write the folder and return its size."""
    folder, learnt = voice_folder(shop.root), taught(shop)
    width = Width(shop.recipe.gpt.dim, shop.recipe.vocoder.channels, shop.recipe.ears.filters)
    gpt = {name: weight.to(half_dtype(weight)) for name, weight in gpt_state(learnt).items()}
    stats = torch.load(learnt / MEL_FILE, weights_only=True)
    takes = _references(shop)
    with replace_folder(folder) as new:
        shutil.copyfile(learnt / CONFIG_FILE, new / CONFIG_FILE)
        Tokenizer.load(learnt).save(new)
        shutil.copyfile(shop.folder("dvae") / DVAE_FILE, new / DVAE_FILE)
        write_weights(new, gpt, widened(trained_vocoder(shop), width), stats)
        _write_reference(shop, takes[OWN], new / REFERENCE_FILE)
        write_atomically(new / ABOUT_FILE, json.dumps(ABOUT, indent=1))
        shutil.copyfile(SENTENCES.with_name(LICENCE), new / LICENCE)
        write_speakers(new, _speakers(shop, new, takes))
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    parameters = sum(weight.numel() for weight in gpt.values())
    return {"megabytes": round(sum(sizes.values()) / MEGABYTE, 2), "bytes": sizes, "gpt_parameters": parameters}


def _references(shop: Workshop) -> dict[str, list[Take]]:
    """Choose the longest sentences of each voice."""
    takes = chosen(read_takes(shop.folder("corpus")), "sentence", "train")
    seconds = {take: header_seconds(path_of(shop, take)) or 0.0 for take in takes}
    ordered = sorted(
        (take for take in takes if seconds[take] >= SHORTEST), key=lambda take: (-seconds[take], take.name)
    )
    return {one.name: [take for take in ordered if take.speaker == one.name][:REFERENCES] for one in SPEAKERS}


def _speakers(shop: Workshop, folder: Path, takes: dict[str, list[Take]]) -> dict[str, dict[str, Tensor]]:
    """Listen to each voice with the model that was just written."""
    opened, hearing = open_model(folder), Hearing.of(folder)
    found = {}
    for name, own in takes.items():
        heard = hear(opened, [path_of(shop, take) for take in own], hearing)
        found[name.title()] = {
            "gpt_cond_latent": heard["prompt"].half(),
            "speaker_embedding": heard["embedding"].half(),
        }
    return found


def _write_reference(shop: Workshop, takes: list[Take], path: Path) -> None:
    sound = np.concatenate([audio.load(path_of(shop, take), RATE) for take in takes])
    audio.save(path, sound[: HEARD * RATE], RATE)
