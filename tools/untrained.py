"""Build untrained XTTS models of any size from coqui's classes, and write them in the layout of the hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from utils.xtts.files import CONFIG_FILE, MEL_FILE, MODEL_FILE, SPEAKERS_FILE
from utils.xtts.model import GPT_PREFIX, VOCODER_PREFIX
from utils.xtts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from TTS.tts.configs.xtts_config import XttsConfig
    from TTS.tts.layers.xtts.dvae import DiscreteVAE

CHANNELS = 512  # of the vocoder's first layer, fixed by coqui
FILTERS = (32, 64, 128, 256)  # of the speaker encoder, fixed by coqui
MIN_FILTERS = (8, 8, 8, 8)  # where the speaker encoder is not used
ENCODER_BLOCKS = (3, 4, 6, 3)
ENCODER_MELS, EMBEDDING = 64, 512
ENCODER_AUDIO = {  # as in HifiDecoder
    "fft_size": 512,
    "win_length": 400,
    "hop_length": 160,
    "sample_rate": 16_000,
    "preemphasis": 0.97,
    "num_mels": ENCODER_MELS,
}


@dataclass(frozen=True)
class GptSize:
    """The size of a GPT."""

    layers: int
    dim: int
    heads: int
    codes: int  # of the DVAE
    reference_seconds: int = 4  # of audio in one conditioning chunk, as published


@dataclass(frozen=True)
class VocoderSize:
    """The size of a vocoder with its speaker encoder."""

    dim: int  # of the GPT
    channels: int = CHANNELS  # of the first layer; each upsampling halves them
    filters: tuple[int, int, int, int] = FILTERS  # of the four stages of the speaker encoder


def new_config(size: GptSize, vocabulary: Vocabulary) -> "XttsConfig":
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
    return XttsConfig(model_args=args, gpt_cond_chunk_len=size.reference_seconds)


def new_dvae(hidden: int, codes: int, width: int) -> "DiscreteVAE":
    """Build coqui's discrete VAE as its GPTTrainer does, with other sizes of first layer, codebook and code."""
    from TTS.tts.layers.xtts.dvae import DiscreteVAE

    return DiscreteVAE(
        channels=80,
        normalization=None,
        positional_dims=1,
        num_tokens=codes,
        codebook_dim=width,
        hidden_dim=hidden,
        num_resnet_blocks=3,
        kernel_size=3,
        num_layers=2,
        use_transposed_convs=False,
    )


def new_vocoder(size: VocoderSize) -> nn.Module:
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

    decoder: Any = HifiDecoder(decoder_input_dim=size.dim, upsample_initial_channel_decoder=size.channels)
    if size.filters != FILTERS:
        decoder.speaker_encoder = new_speaker_encoder(size.filters)
    module: nn.Module = decoder
    return module


def new_speaker_encoder(filters: tuple[int, int, int, int]) -> nn.Module:
    from TTS.encoder.models.resnet import ResNetSpeakerEncoder

    encoder: nn.Module = ResNetSpeakerEncoder(
        input_dim=ENCODER_MELS,
        proj_dim=EMBEDDING,
        layers=list(ENCODER_BLOCKS),
        num_filters=list(filters),
        log_input=True,
        use_torch_spec=True,
        audio_config=ENCODER_AUDIO,
    )
    return encoder


def write_weights(folder: Path, gpt: Mapping[str, Tensor], vocoder: Mapping[str, Tensor], stats: Tensor) -> None:
    weights = {GPT_PREFIX + name: weight for name, weight in gpt.items()}
    weights |= {VOCODER_PREFIX + name: weight for name, weight in vocoder.items()}
    torch.save({"model": weights | {"mel_stats": stats}}, folder / MODEL_FILE)
    torch.save(stats, folder / MEL_FILE)


def write_speakers(folder: Path, speakers: Mapping[str, Mapping[str, Tensor]]) -> None:
    torch.save({name: dict(speaker) for name, speaker in speakers.items()}, folder / SPEAKERS_FILE)


def write_config(folder: Path, config: "XttsConfig", vocabulary: Vocabulary) -> None:
    config.save_json(folder / CONFIG_FILE)
    vocabulary.save(folder)
