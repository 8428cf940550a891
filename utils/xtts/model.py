"""coqui's modules filled with the weights of a model folder: the GPT to train, and the whole model to speak with.

A folder is laid out as the hub has it: model.pth, config.json, vocab.json, and beside them what sound needs.
"""

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
TEXT_ROWS = ("text_embedding.weight", "text_head.weight", "text_head.bias")  # one row for each token of the vocabulary
SAMPLED, BLOCK, TAIL = 64, 1 << 16, 1 << 20


def load_gpt(folder: Path, tokenizer: "Tokenizer | None" = None) -> "GPT":
    """Build coqui's GPT in full precision and fill it with the weights of a folder.

    Args:
        folder: The model to start from.
        tokenizer: How the trained model reads; its new tokens get rows. None: as the folder reads.
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
    """Compare the GPT in a folder with its config and vocabulary, without reading the weights."""
    wanted = meta_gpt(read_config(folder).model_args, Vocabulary.load(folder / VOCABULARY_FILE))
    return compare(wanted, gpt_state(folder))


def gpt_state(folder: Path) -> dict[str, Tensor]:
    """Return the weights of the GPT in a folder, as they are stored and without a prefix."""
    return strip_prefix(read_state_dict(folder / MODEL_FILE), GPT_PREFIX)


def grown_rows(weights: Mapping[str, Tensor], old: Vocabulary, tokenizer: "Tokenizer") -> dict[str, Tensor]:
    """Return the text rows for the vocabulary of a tokenizer; the noise of new rows differs between the three."""
    language = tokenizer.settings.language if tokenizer.settings else "en"
    if absent := [name for name in TEXT_ROWS if name not in weights]:
        raise ModelFileError(f"The model has no {absent[0]}.", hint=RELOAD_HINT)
    pack = tokenizer.pack(language)
    return {
        name: resize_rows(weights[name], old, tokenizer.vocabulary, pack, seed=seed)
        for seed, name in enumerate(TEXT_ROWS)
    }


def new_gpt(args: "XttsArgs", vocabulary: Vocabulary) -> nn.Module:
    """Build coqui's GPT with its own random weights, as ``Xtts.init_models`` does.

    Args:
        args: The model_args of a config.json.
        vocabulary: Decides about the number of text rows and the tokens at both ends of a text.
    """
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
    """Keep transformers from warning about tokens of GPT-2 that coqui never uses, each time a GPT is built."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def meta_gpt(args: "XttsArgs", vocabulary: Vocabulary) -> nn.Module:
    """Build the GPT without memory behind its weights: nothing is drawn or filled, however large it is."""
    with torch.device("meta"):
        return new_gpt(args, vocabulary)


def read_config(folder: Path) -> "XttsConfig":
    """Read config.json; what coqui's Trainer adds to it is left out."""
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
        raise ModelFileError(f"{path} is no config of XTTS: {error!r}.", hint=RELOAD_HINT) from error
    if not config.model_args.gpt_use_perceiver_resampler:
        raise ModelFileError(f"{path} belongs to XTTS v1, which cannot be trained here.", hint="Choose an XTTS v2.")
    return config


def load_vocoder(folder: Path) -> tuple[nn.Module, Tensor]:
    """Return coqui's HifiDecoder, speaker encoder included, and what each band of a mel is divided by."""
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
        raise ModelFileError(f"{folder / MODEL_FILE} holds no mel_stats.", hint=RELOAD_HINT)
    return vocoder.eval(), weights["mel_stats"].float().clone()


def fill_vocoder(vocoder: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Fill coqui's HifiDecoder; torch renames the norms of older files itself, so names are compared by torch."""
    try:
        vocoder.load_state_dict(strip_prefix(weights, VOCODER_PREFIX))
    except RuntimeError as error:
        said = str(error).splitlines()
        raise ModelFileError(
            f"The vocoder in {folder / MODEL_FILE} does not fit: {said[1:2]}", hint=RELOAD_HINT
        ) from error


def require_vocoder(weights: Mapping[str, Tensor], place: Path) -> None:
    """Refuse weights that are a GPT alone."""
    if not any(name.startswith(VOCODER_PREFIX) for name in weights):
        raise ModelFileError(
            f"{place} holds a GPT without a vocoder.", hint="Give a whole model, as coqui-tts or ready/ has it."
        )


def fingerprint(folder: Path) -> str:
    """Tell models apart without reading them whole.

    The end of a model.pth holds a checksum of each tensor; blocks spread over the file guard against files written
    without them.
    """
    path = folder / MODEL_FILE
    digest = hashlib.blake2b(digest_size=16)
    try:
        size = path.stat().st_size
        digest.update(str(size).encode())
        with path.open("rb") as file:
            places = [round(index * max(size - BLOCK, 0) / SAMPLED) for index in range(SAMPLED)]
            for place, length in [*((place, BLOCK) for place in places), (max(size - TAIL, 0), TAIL)]:
                file.seek(place)
                digest.update(file.read(length))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.", hint=RELOAD_HINT) from error
    digest.update(Vocabulary.load(folder / VOCABULARY_FILE).hash.encode())
    return digest.hexdigest()
