"""Read the weights of a model folder safely, compare them with coqui's modules, and build GPT and vocoder with them.

Published files, files by coqui's Trainer and our own hold the same weights under different names. Loading them with
``strict=False`` would silently load nothing, so every key is compared.
"""

import contextlib
import dataclasses
import hashlib
import logging
import os
import pickle
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from utils.core.errors import shortage
from utils.core.paths import TINY_MODEL
from utils.core.storage import is_deflated, read_json, verify_archive
from utils.xtts.facts import ModelFileError
from utils.xtts.files import CONFIG_FILE, MODEL_FILE, VOCABULARY_FILE, read_about, verify_folder
from utils.xtts.tensors import Tensors
from utils.xtts.vocabulary import START, STOP, Vocabulary, resize_rows

if TYPE_CHECKING:
    from TTS.tts.configs.xtts_config import XttsArgs, XttsConfig

    from utils.xtts.modules import GPT
    from utils.xtts.tokenizer import Tokenizer

GPT_PREFIX = "gpt."
VOCODER_PREFIX = "hifigan_decoder."
TRAINER_PREFIX = "xtts."  # in files by coqui's Trainer
IGNORED = ("dvae.", "torch_mel_spectrogram_", "gpt.gpt_inference.", "gpt.gpt.wte.", "ema.")  # other modules, or copies
TEXT_ROWS = ("text_embedding.weight", "text_head.weight", "text_head.bias")  # one row per token
MIN_SHARE = 0.95  # of the parameters
MAX_SHOWN = 3  # keys of each kind in a message
FINGERPRINT_BLOCKS = 64
BLOCK = 1 << 16  # bytes
TAIL = 1 << 20  # bytes


@dataclass(frozen=True)
class StateDictMatch:
    """How the weights of a file fit a module."""

    matched: int  # parameters that the file provides
    wanted: int  # parameters of the module
    missing: list[str]  # names missing from the file
    unexpected: list[str]  # names not in the module
    misshapen: list[str]  # names with different shapes, and both shapes

    @property
    def share(self) -> float:
        return self.matched / max(self.wanted, 1)

    @property
    def complete(self) -> bool:
        return not (self.missing or self.unexpected or self.misshapen)

    def __str__(self) -> str:
        parts = [f"{self.share:.1%} of {self.wanted:,} parameters match"]
        kinds = {"missing": self.missing, "wrong shape": self.misshapen, "unknown": self.unexpected}
        for kind, names in kinds.items():
            if names:
                more = ", ..." if len(names) > MAX_SHOWN else ""
                parts.append(f"{len(names)} {kind} ({', '.join(names[:MAX_SHOWN])}{more})")
        return "; ".join(parts)


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Read the weights of a model under the names of coqui's modules, memory-mapped on the CPU."""
    content = _unpickle(path)
    weights = content.get("model", content) if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(weight, Tensor) for weight in weights.values()):
        raise ModelFileError(path, "no_weights")
    renamed = {str(name).removeprefix(TRAINER_PREFIX): weight for name, weight in weights.items()}
    return {name: weight for name, weight in renamed.items() if not name.startswith(IGNORED)}


def _unpickle(path: Path) -> object:
    """Unpickle a file with tensors, plain values and coqui's config, without running code."""
    try:
        mapped = zipfile.is_zipfile(path)  # torch's older format cannot be mapped
        if mapped:
            verify_archive(path)
            mapped = not is_deflated(path)
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except pickle.UnpicklingError:  # published XTTS v2 files contain an XttsConfig
            from TTS.tts.models.xtts import _legacy_safe_globals

            with _legacy_safe_globals():
                return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except FileNotFoundError as error:
        raise ModelFileError(path, "missing") from error
    except pickle.UnpicklingError as error:
        raise ModelFileError(path, "contains_code") from error
    except Exception as error:  # torch raises many kinds of errors for damaged files
        reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160].rstrip('.')}"
        raise ModelFileError(path, "no_memory" if shortage(error) else "unreadable", reason) from error


def strip_prefix(weights: Tensors, prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}


def compare(module: nn.Module, weights: Tensors) -> StateDictMatch:
    wanted = module.state_dict()
    shapes = {name: (list(weights[name].shape), list(wanted[name].shape)) for name in wanted if name in weights}
    return StateDictMatch(
        matched=sum(wanted[name].numel() for name, (stored, needed) in shapes.items() if stored == needed),
        wanted=sum(weight.numel() for weight in wanted.values()),
        missing=[name for name in wanted if name not in weights],
        unexpected=[name for name in weights if name not in wanted],
        misshapen=[
            f"{name} {stored} instead of {needed}" for name, (stored, needed) in shapes.items() if stored != needed
        ],
    )


def require_match(match: StateDictMatch, source: Path, *, min_share: float = MIN_SHARE) -> StateDictMatch:
    """Return the match, or raise when too many parameters are missing or any shape differs."""
    if match.share < min_share or match.misshapen:
        raise ModelFileError(source, "mismatch", str(match))
    return match


def load_gpt(folder: Path, tokenizer: "Tokenizer | None" = None) -> "GPT":
    """Build coqui's GPT in full precision and load the weights of a folder; new tokens of a tokenizer get rows."""
    source = folder / MODEL_FILE
    old = Vocabulary.load(folder / VOCABULARY_FILE)
    new = tokenizer.vocabulary if tokenizer else old
    weights = gpt_state(folder)
    args = read_config(folder).model_args
    require_match(compare(meta_gpt(args, old), weights), source)
    if tokenizer and new.hash != old.hash:
        weights |= _grow_rows(weights, old, tokenizer)
    gpt = meta_gpt(args, new)
    match = require_match(compare(gpt, weights), source)
    gpt = new_gpt(args, new) if match.missing else gpt.to_empty(device="cpu")  # missing weights stay random
    gpt.load_state_dict({name: weights[name] for name in weights if name not in match.unexpected}, strict=False)
    return gpt


def match_gpt(folder: Path) -> StateDictMatch:
    """Compare the GPT of a folder with its config and vocabulary, without loading it."""
    wanted = meta_gpt(read_config(folder).model_args, Vocabulary.load(folder / VOCABULARY_FILE))
    return compare(wanted, gpt_state(folder))


def gpt_state(folder: Path) -> dict[str, Tensor]:
    """Return the stored weights of the GPT, without their prefix."""
    return strip_prefix(read_state_dict(folder / MODEL_FILE), GPT_PREFIX)


def _grow_rows(weights: Tensors, old: Vocabulary, tokenizer: "Tokenizer") -> dict[str, Tensor]:
    if absent := [name for name in TEXT_ROWS if name not in weights]:
        raise ModelFileError(Path(MODEL_FILE), "lacks", absent[0])
    pack = tokenizer.pack(tokenizer.settings.language if tokenizer.settings else "en")
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
    verify_folder(folder)
    try:
        data = read_json(path)
        args = data["model_args"]
        known = {field.name for field in dataclasses.fields(XttsArgs)}
        config = XttsConfig(model_args=XttsArgs(**{name: args[name] for name in args if name in known}))
        config.languages = list(data.get("languages") or config.languages)
    except FileNotFoundError as error:
        raise ModelFileError(path, "missing") from error
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelFileError(path, "unreadable", repr(error)) from error
    if not config.model_args.gpt_use_perceiver_resampler:
        raise ModelFileError(path, "version_1")
    return config


def random_vocoder(dim: int) -> nn.Module:
    """Return coqui's HifiDecoder with random weights, for tests of a device."""
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

    vocoder: nn.Module = HifiDecoder(decoder_input_dim=dim, upsample_initial_channel_decoder=64)
    return vocoder.eval()


def load_vocoder(folder: Path) -> tuple[nn.Module, Tensor]:
    """Return coqui's HifiDecoder with its speaker encoder, and the mel statistics."""
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

    path = folder / MODEL_FILE
    args = read_config(folder).model_args
    weights = read_state_dict(path)
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
    try:
        vocoder.load_state_dict(strip_prefix(weights, VOCODER_PREFIX))  # torch itself renames the norms of older files
    except RuntimeError as error:
        reason = " ".join(str(error).splitlines()[1:2]).strip()
        raise ModelFileError(path, "mismatch", reason) from error
    if "mel_stats" not in weights:
        raise ModelFileError(path, "lacks", "mel_stats")
    return vocoder.eval(), weights["mel_stats"].float().clone()


def require_vocoder(weights: Tensors, path: Path) -> None:
    """Raise when the weights are only a GPT."""
    if not any(name.startswith(VOCODER_PREFIX) for name in weights):
        raise ModelFileError(path, "no_vocoder")


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
        raise ModelFileError(path, "unreadable", str(error.strerror)) from error
    digest.update(Vocabulary.load(folder / VOCABULARY_FILE).hash.encode())
    return digest.hexdigest()


def find_recorded_base(base: Path, recorded: str, models: Path) -> Path | None:
    """Return where the model with a recorded path and fingerprint is today.

    It may lie among the models now. The embedded voice moves with the program.
    """
    embedded = [TINY_MODEL] if base.name == TINY_MODEL.name else []
    for place in (base, models / base.name, *embedded):
        # os.path: Path.is_file raises an error where a damaged name is too long
        if os.path.isfile(place / MODEL_FILE) and recorded in {"", fingerprint(place)}:  # noqa: PTH113
            return place
    return None


def find_parts(base: Path, recorded: str, models: Path, exported: Path | None) -> Path | None:
    """Return a folder with the parts that a trained voice takes from its base, such as the vocoder.

    When the base is gone, a model that was exported with it still has them; its GPT is another one.
    """
    if found := find_recorded_base(base, recorded, models):
        return found
    if exported is None or not recorded or not (exported / MODEL_FILE).is_file():
        return None
    return exported if read_about(exported).get("base_fingerprint") == recorded else None
