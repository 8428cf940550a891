"""Sizes of the model and of the longest clip, and a random model and batch of those sizes for memory estimates."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from torch import nn

from utils.config import AUTO_SECONDS, TrainConfig
from utils.core.paths import TINY_MODEL
from utils.core.storage import read_json
from utils.media.rates import CODE_SAMPLES, FRAME_SAMPLES, RATE
from utils.training.clips import HALF_SECOND_FRAMES, ClipLengths
from utils.training.errors import SettingRefusedError
from utils.training.packing import (
    AUDIO_EXTRA,
    AUDIO_POSITIONS,
    MEL_BANDS,
    PROMPT,
    TEXT_EXTRA,
    Example,
    PackedBatch,
    SpecialTokens,
    pack,
)
from utils.xtts.files import CONFIG_FILE, TINY

USUAL_SECONDS, USUAL_TOKENS = 11.6, 200  # of the longest clip of a dataset prepared with the default length
MAX_REFERENCE_FRAMES = 12 * HALF_SECOND_FRAMES  # references are at most six seconds long


@dataclass(frozen=True)
class ModelSize:
    """Sizes of coqui's GPT; the defaults are those of the published XTTS v2."""

    layers: int = 30
    dim: int = 1024
    heads: int = 16
    text_rows: int = 6681
    audio_rows: int = 1026
    text_positions: int = 404
    audio_positions: int = 608

    @classmethod
    def from_config(cls, config: TrainConfig) -> Self:
        """Look up the sizes of the model that a run starts from. No weights are read or needed."""
        if config.custom_model:
            path = Path(config.custom_model)
            return cls.from_folder(path if path.is_dir() else path.parent)
        return cls.from_folder(TINY_MODEL) if config.version == TINY else cls()

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Read the sizes from a model folder's config.json. A lone .pth is assumed to have the published size."""
        path = folder / CONFIG_FILE
        if not path.is_file():
            return cls()
        try:
            sizes = read_json(path)["model_args"]
            names = ("gpt_layers", "gpt_n_model_channels", "gpt_n_heads", "gpt_number_text_tokens")
            layers, dim, heads, rows = (int(sizes[name]) for name in names)
            audio_rows = int(sizes.get("gpt_num_audio_tokens", cls.audio_rows))
        except (OSError, ValueError, LookupError, TypeError, OverflowError) as error:
            raise SettingRefusedError("custom_model", "not_xtts", path) from error
        return cls(layers=layers, dim=dim, heads=heads, text_rows=rows, audio_rows=audio_rows)


@dataclass(frozen=True)
class ClipSize:
    """Size of the longest clip of a run."""

    positions: int  # sequence length: prompt, text and audio
    frames: int  # mel frames of its reference
    text: int  # text positions that count in the loss
    audio: int  # audio positions that count in the loss

    @classmethod
    def from_config(cls, config: TrainConfig) -> Self:
        """The longest clip of a dataset made with the default length, or the longest that the settings allow."""
        is_default = config.max_audio_length == AUTO_SECONDS
        samples = (USUAL_SECONDS if is_default else config.max_audio_length) * RATE
        codes = math.ceil(samples / CODE_SAMPLES)
        frames = math.ceil(samples / FRAME_SAMPLES)
        tokens = min(USUAL_TOKENS, config.max_text_length) if is_default else config.max_text_length
        return cls._from_counts(codes, tokens, frames)

    @classmethod
    def longest(cls, lengths: ClipLengths) -> Self:
        """The maximum of each length over these clips."""
        size = cls._from_counts(int(lengths.codes.max()), int(lengths.ids.max()), int(lengths.frames.max()))
        return replace(size, positions=int(lengths.positions.max()))

    @classmethod
    def _from_counts(cls, codes: int, ids: int, frames: int) -> Self:
        text = ids + TEXT_EXTRA
        audio = min(codes + AUDIO_EXTRA, AUDIO_POSITIONS)
        return cls(PROMPT + text + audio, min(frames, MAX_REFERENCE_FRAMES), text, audio)


def clips_per_batch(config: TrainConfig, clip: ClipSize) -> int:
    return max(1, config.batch_tokens // clip.positions) if config.batch_tokens else config.batch_size


def random_gpt(size: ModelSize) -> nn.Module:
    from utils.xtts.model import quiet_transformers
    from utils.xtts.modules import GPT

    with quiet_transformers():
        gpt: nn.Module = GPT(
            layers=size.layers,
            model_dim=size.dim,
            heads=size.heads,
            number_text_tokens=size.text_rows,
            start_text_token=size.text_rows - 1,
            stop_text_token=0,
            num_audio_tokens=size.audio_rows,
            start_audio_token=size.audio_rows - 2,
            stop_audio_token=size.audio_rows - 1,
            max_text_tokens=size.text_positions - 2,
            max_mel_tokens=size.audio_positions - 3,
            use_perceiver_resampler=True,
        )
    return gpt


def random_batch(tokens: SpecialTokens, clip: ClipSize, clips: int) -> PackedBatch:
    example = Example(
        np.ones(clip.text - TEXT_EXTRA, np.int32),
        np.ones(clip.audio - AUDIO_EXTRA, np.int16),
        np.zeros((clip.frames, MEL_BANDS), np.float16),
    )
    return pack([example] * clips, tokens)
