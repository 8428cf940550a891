"""Build untrained parts of XTTS of any size from coqui's classes."""

from typing import TYPE_CHECKING

from torch import nn

from utils.xtts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from TTS.tts.configs.xtts_config import XttsConfig
    from TTS.tts.layers.xtts.dvae import DiscreteVAE

CHANNELS = 512  # of the vocoder's first layer, fixed by coqui


def new_config(vocabulary: Vocabulary, layers: int, dim: int, heads: int, codes: int) -> "XttsConfig":
    from TTS.tts.configs.xtts_config import XttsArgs, XttsConfig

    args = XttsArgs(
        gpt_layers=layers,
        gpt_n_model_channels=dim,
        gpt_n_heads=heads,
        gpt_number_text_tokens=vocabulary.size,
        gpt_num_audio_tokens=codes + 2,
        gpt_start_audio_token=codes,
        gpt_stop_audio_token=codes + 1,
        gpt_use_perceiver_resampler=True,
        decoder_input_dim=dim,
    )
    return XttsConfig(model_args=args, gpt_cond_chunk_len=4)  # seconds, as published


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


def new_vocoder(dim: int, channels: int = CHANNELS) -> nn.Module:
    """Build coqui's vocoder for a GPT of a width; each upsampling halves the channels."""
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

    decoder: nn.Module = HifiDecoder(decoder_input_dim=dim, upsample_initial_channel_decoder=channels)
    return decoder
