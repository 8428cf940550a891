"""Build coqui's GPT and vocoder with the weights of a model folder in the layout of the hub."""

import contextlib
import dataclasses
import hashlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from utils.core.storage import read_json
from utils.xtts.files import CONFIG_FILE, MODEL_FILE, VOCABULARY_FILE, ModelFileError
from utils.xtts.state_dict import (
    RELOAD_HINT,
    StateDictMatch,
    compare,
    load_into,
    read_state_dict,
    require_match,
    strip_prefix,
)
from utils.xtts.vocabulary import START, STOP, Vocabulary, resize_rows

if TYPE_CHECKING:
    from TTS.tts.configs.xtts_config import XttsArgs, XttsConfig

    from utils.xtts.modules import GPT
    from utils.xtts.tokenizer import Tokenizer

GPT_PREFIX, VOCODER_PREFIX = "gpt.", "hifigan_decoder."
TEXT_ROWS = ("text_embedding.weight", "text_head.weight", "text_head.bias")  # one row per token
FINGERPRINT_BLOCKS, BLOCK, TAIL = 64, 1 << 16, 1 << 20  # number and size in bytes


def load_gpt(folder: Path, tokenizer: "Tokenizer | None" = None) -> "GPT":
    """Build coqui's GPT in full precision and load the weights of a folder.

    Args:
        folder: The model.
        tokenizer: Tokenizer of a new model; its new tokens get rows (default: the tokens of the folder).
    """
    old = Vocabulary.load(folder / VOCABULARY_FILE)
    new = tokenizer.vocabulary if tokenizer else old
    weights = gpt_state(folder)
    args = read_config(folder).model_args
    require_match(compare(meta_gpt(args, old), weights), str(folder / MODEL_FILE))
    if tokenizer and new.hash != old.hash:
        weights |= grown_rows(weights, old, tokenizer)
    gpt = meta_gpt(args, new)
    gpt = new_gpt(args, new) if compare(gpt, weights).missing else gpt.to_empty(device="cpu")
    load_into(gpt, weights, str(folder / MODEL_FILE))
    return gpt


def match_gpt(folder: Path) -> StateDictMatch:
    """Compare the GPT of a folder with its config and vocabulary, without loading it."""
    wanted = meta_gpt(read_config(folder).model_args, Vocabulary.load(folder / VOCABULARY_FILE))
    return compare(wanted, gpt_state(folder))


def gpt_state(folder: Path) -> dict[str, Tensor]:
    """Return the stored weights of the GPT, without their prefix."""
    return strip_prefix(read_state_dict(folder / MODEL_FILE), GPT_PREFIX)


def grown_rows(weights: Mapping[str, Tensor], old: Vocabulary, tokenizer: "Tokenizer") -> dict[str, Tensor]:
    """Return the text rows for the vocabulary of a tokenizer."""
    language = tokenizer.settings.language if tokenizer.settings else "en"
    if absent := [name for name in TEXT_ROWS if name not in weights]:
        raise ModelFileError(f"The model has no {absent[0]}.", hint=RELOAD_HINT)
    pack = tokenizer.pack(language)
    return {
        name: resize_rows(weights[name], old, tokenizer.vocabulary, pack, seed=seed)
        for seed, name in enumerate(TEXT_ROWS)
    }


def new_gpt(args: "XttsArgs", vocabulary: Vocabulary) -> nn.Module:
    """Build coqui's GPT with random weights, as ``Xtts.init_models`` does."""
    from utils.xtts.modules import GPT

    with quiet_transformers():
        gpt: nn.Module = GPT(
            layers=args.gpt_layers,
            model_dim=args.gpt_n_model_channels,
            heads=args.gpt_n_heads,
            start_text_token=vocabulary.ids[START],
            stop_text_token=vocabulary.ids[STOP],
            number_text_tokens=vocabulary.size,
            max_text_tokens=args.gpt_max_text_tokens,
            max_mel_tokens=args.gpt_max_audio_tokens,
            max_prompt_tokens=args.gpt_max_prompt_tokens,
            num_audio_tokens=args.gpt_num_audio_tokens,
            start_audio_token=args.gpt_start_audio_token,
            stop_audio_token=args.gpt_stop_audio_token,
            use_perceiver_resampler=args.gpt_use_perceiver_resampler,
            code_stride_len=args.gpt_code_stride_len,
        )
    return gpt


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence warnings of transformers about GPT-2 tokens that coqui never uses."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def meta_gpt(args: "XttsArgs", vocabulary: Vocabulary) -> nn.Module:
    """Build the GPT on the meta device, without memory for its weights."""
    with torch.device("meta"):
        return new_gpt(args, vocabulary)


def read_config(folder: Path) -> "XttsConfig":
    """Read config.json, without what coqui's Trainer adds to it."""
    from TTS.tts.configs.xtts_config import XttsArgs, XttsConfig

    path = folder / CONFIG_FILE
    try:
        data = read_json(path)
        args = data["model_args"]
        known = {field.name for field in dataclasses.fields(XttsArgs)}
        config = XttsConfig(model_args=XttsArgs(**{name: args[name] for name in args if name in known}))
        config.languages = list(data.get("languages") or config.languages)
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} is missing.", hint=RELOAD_HINT) from error
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelFileError(f"{path} is not an XTTS config: {error!r}.", hint=RELOAD_HINT) from error
    if not config.model_args.gpt_use_perceiver_resampler:
        raise ModelFileError(f"{path} belongs to XTTS v1, which is not supported.", hint="Use an XTTS v2 model.")
    return config


def load_vocoder(folder: Path) -> tuple[nn.Module, Tensor]:
    """Return coqui's HifiDecoder with its speaker encoder, and the mel statistics."""
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

    args = read_config(folder).model_args
    weights = read_state_dict(folder / MODEL_FILE)
    with torch.random.fork_rng(devices=[]):
        vocoder: nn.Module = HifiDecoder(
            input_sample_rate=args.input_sample_rate,
            output_sample_rate=args.output_sample_rate,
            output_hop_length=args.output_hop_length,
            ar_mel_length_compression=args.gpt_code_stride_len,
            decoder_input_dim=args.decoder_input_dim,
            d_vector_dim=args.d_vector_dim,
            cond_d_vector_in_each_upsampling_layer=args.cond_d_vector_in_each_upsampling_layer,
        )
    fill_vocoder(vocoder, weights, folder)
    if "mel_stats" not in weights:
        raise ModelFileError(f"{folder / MODEL_FILE} has no mel_stats.", hint=RELOAD_HINT)
    return vocoder.eval(), weights["mel_stats"].float().clone()


def fill_vocoder(vocoder: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Load weights into coqui's HifiDecoder; torch itself renames the norms of older files."""
    try:
        vocoder.load_state_dict(strip_prefix(weights, VOCODER_PREFIX))
    except RuntimeError as error:
        reason = str(error).splitlines()
        raise ModelFileError(
            f"The vocoder in {folder / MODEL_FILE} does not fit: {reason[1:2]}", hint=RELOAD_HINT
        ) from error


def require_vocoder(weights: Mapping[str, Tensor], path: Path) -> None:
    """Raise when the weights are only a GPT."""
    if not any(name.startswith(VOCODER_PREFIX) for name in weights):
        raise ModelFileError(
            f"{path} contains a GPT without a vocoder.", hint="Use a complete model, such as a ready folder."
        )


def fingerprint(folder: Path) -> str:
    """Hash parts of model.pth and the vocabulary.

    The end of a model.pth holds a checksum of each tensor; blocks spread over the file cover files without checksums.
    """
    path = folder / MODEL_FILE
    digest = hashlib.blake2b(digest_size=16)
    try:
        size = path.stat().st_size
        digest.update(str(size).encode())
        with path.open("rb") as file:
            starts = [round(index * max(size - BLOCK, 0) / FINGERPRINT_BLOCKS) for index in range(FINGERPRINT_BLOCKS)]
            for start, length in [*((start, BLOCK) for start in starts), (max(size - TAIL, 0), TAIL)]:
                file.seek(start)
                digest.update(file.read(length))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.", hint=RELOAD_HINT) from error
    digest.update(Vocabulary.load(folder / VOCABULARY_FILE).hash.encode())
    return digest.hexdigest()
