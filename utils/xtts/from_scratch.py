"""A model to train from nothing: coqui's classes in a size of ours, begun such that text and sound can find each other.

Where attention begins decides how long a model of this size searches. coqui begins tokens with a deviation of 1 and
their places with 0.02, so at first nobody can tell where a token stands; and nothing says that the tenth code has to do
with the sixth letter rather than with the first. Here tokens and places begin equally loud, and the places of text and
of sound begin as the same waves, stretched by the pace at which letters become codes: what belongs together looks alike
from the first update on. All of it is learnt further.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from utils.xtts.files import CONFIG_FILE, MEL_FILE, MODEL_FILE, SPEAKERS_FILE
from utils.xtts.model import GPT_PREFIX, VOCODER_PREFIX, new_gpt
from utils.xtts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from TTS.tts.configs.xtts_config import XttsConfig

LOUD = 0.05  # deviation of tokens and of places
PLACES = {"text": "text_pos_embedding.emb.weight", "audio": "mel_pos_embedding.emb.weight"}
TOKENS = ("text_embedding.weight", "mel_embedding.weight")
LONGEST_WAVE = 400.0  # places, about the longest text


@dataclass(frozen=True)
class Size:
    """How large the GPT is.

    Attributes:
        layers: Its layers.
        dim: Its width.
        heads: Heads of its attention.
        codes: Codes of the DVAE.
        heard: Seconds of a reference that it hears at once.
    """

    layers: int
    dim: int
    heads: int
    codes: int
    heard: int = 4  # as published


def new_config(size: Size, vocabulary: Vocabulary) -> "XttsConfig":
    """Write down the published settings with our sizes."""
    from TTS.tts.configs.xtts_config import XttsArgs, XttsConfig

    args = XttsArgs(
        gpt_layers=size.layers,
        gpt_n_model_channels=size.dim,
        gpt_n_heads=size.heads,
        gpt_number_text_tokens=vocabulary.size,
        gpt_num_audio_tokens=size.codes + 2,
        gpt_start_audio_token=size.codes,
        gpt_stop_audio_token=size.codes + 1,
        gpt_use_perceiver_resampler=True,
        decoder_input_dim=size.dim,
    )
    return XttsConfig(model_args=args, gpt_cond_chunk_len=size.heard)


def begun_gpt(config: "XttsConfig", vocabulary: Vocabulary, pace: float) -> dict[str, Tensor]:
    """Draw the weights of a GPT.

    Args:
        config: Its sizes.
        vocabulary: What it reads.
        pace: Tokens of text for each code.
    """
    weights = new_gpt(config.model_args, vocabulary).state_dict()
    for name in TOKENS:
        weights[name] = weights[name] * LOUD
    for kind, name in PLACES.items():
        places, dim = weights[name].shape
        weights[name] = waves(places, dim, 1.0 if kind == "text" else pace)
    return weights


def waves(places: int, dim: int, pace: float) -> Tensor:
    """Return sines and cosines of a place times a pace, from short waves to long ones."""
    lengths = 2 * math.pi * torch.exp(torch.linspace(0, math.log(LONGEST_WAVE / (2 * math.pi)), dim // 2))
    angles = 2 * math.pi * pace * torch.arange(places)[:, None] / lengths
    return LOUD * math.sqrt(2) * torch.cat([angles.sin(), angles.cos()], dim=1)


def write_weights(folder: Path, gpt: Mapping[str, Tensor], vocoder: Mapping[str, Tensor], stats: Tensor) -> None:
    """Write model.pth and mel_stats.pth."""
    weights = {GPT_PREFIX + name: weight for name, weight in gpt.items()}
    weights |= {VOCODER_PREFIX + name: weight for name, weight in vocoder.items()}
    torch.save({"model": weights | {"mel_stats": stats}}, folder / MODEL_FILE)
    torch.save(stats, folder / MEL_FILE)


def write_speakers(folder: Path, speakers: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write speakers_xtts.pth: by name, what the GPT and what the vocoder hear of a voice."""
    torch.save({name: dict(speaker) for name, speaker in speakers.items()}, folder / SPEAKERS_FILE)


def write_config(folder: Path, config: "XttsConfig", vocabulary: Vocabulary) -> None:
    """Write config.json and vocab.json."""
    config.save_json(folder / CONFIG_FILE)
    vocabulary.save(folder)
