"""Write a ready folder: a model that speaks, loads in plain coqui-tts, and can be trained further."""

import json
from collections.abc import Mapping
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from utils.core import languages
from utils.core.errors import StorageError
from utils.core.storage import NO_SPACE_HINT, link_or_copy, read_json, replace_folder, require_space
from utils.media import audio
from utils.media.rates import RATE
from utils.xtts.files import (
    ABOUT_FILE,
    CONFIG_FILE,
    DVAE_FILE,
    MEL_FILE,
    MODEL_FILE,
    REFERENCE_FILE,
    SETTINGS_FILE,
    SPEAKERS_FILE,
    VOCABULARY_FILE,
    ModelFileError,
    read_about,
)
from utils.xtts.model import GPT_PREFIX, fingerprint, meta_gpt, read_config
from utils.xtts.state_dict import RELOAD_HINT, compare, read_state_dict
from utils.xtts.tensors import half_dtype
from utils.xtts.vocabulary import START, STOP

if TYPE_CHECKING:
    from utils.xtts.tokenizer import Tokenizer

SHARED = (SPEAKERS_FILE, DVAE_FILE, MEL_FILE)  # copied from the base, for its voices and for further training
EXPORTED_FILES = (MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE, SETTINGS_FILE, REFERENCE_FILE, ABOUT_FILE, *SHARED)
DUPLICATES = ("gpt_inference.", "gpt.wte.")  # second names of the same weights


def write_ready(
    folder: Path,
    base: Path,
    state: Mapping[str, Tensor],
    tokenizer: "Tokenizer",
    reference: Path | None,
    about: Mapping[str, object],
    *,
    half: bool = False,
) -> Path:
    """Write a model folder. An existing model is replaced once the new one is complete; other files stay.

    Args:
        folder: Target folder, usually ready/.
        base: Base model; everything but the GPT comes from it.
        state: Weights of the GPT, under coqui's names without a prefix.
        tokenizer: Tokenizer of the model.
        reference: Clip of the default voice (default: that of the base).
        about: Content of about.json.
        half: Store the GPT in half precision, except for values it cannot hold.
    """
    gpt = _gpt_weights(state, base, tokenizer)
    stored = read_state_dict(base / MODEL_FILE)
    others = deepcopy({name: stored[name] for name in stored if not name.startswith(GPT_PREFIX)})  # unmaps the file
    del stored
    weights = {GPT_PREFIX + name: _compact(weight, half=half) for name, weight in gpt.items()} | others
    shared = [base / name for name in SHARED if (base / name).is_file()]
    voice = reference or base / REFERENCE_FILE
    require_space(folder, sum(map(_size, weights.values())) + sum(path.stat().st_size for path in shared))
    with replace_folder(folder, EXPORTED_FILES) as new:
        _save(weights, new / MODEL_FILE)
        tokenizer.save(new)
        _write_json(new / CONFIG_FILE, config_for(base, tokenizer))
        _write_json(new / ABOUT_FILE, {**_origin(base, half=half), **about})
        for path in shared:
            link_or_copy(path, new / path.name)
        if voice.is_file():
            _write_wav(voice, new / REFERENCE_FILE)
    return folder


def config_for(base: Path, tokenizer: "Tokenizer") -> dict[str, Any]:
    """Return the config.json of the base with the language and text rows of the new model."""
    read_config(base)  # raises when it is damaged
    config: dict[str, Any] = read_json(base / CONFIG_FILE)
    added = [tokenizer.settings.language] if tokenizer.settings else []
    known = config.get("languages") or [language.code for language in languages.XTTS_LANGUAGES]
    vocabulary = tokenizer.vocabulary
    rows = {"gpt_number_text_tokens": vocabulary.size, "tokenizer_file": ""}
    rows |= {"gpt_start_text_token": vocabulary.ids[START], "gpt_stop_text_token": vocabulary.ids[STOP]}
    return config | {"languages": list(dict.fromkeys([*known, *added])), "model_args": config["model_args"] | rows}


def _gpt_weights(state: Mapping[str, Tensor], base: Path, tokenizer: "Tokenizer") -> dict[str, Tensor]:
    """Return the weights of coqui's GPT; all must be there, and no others."""
    gpt = {name: weight for name, weight in state.items() if not name.startswith(DUPLICATES)}
    match = compare(meta_gpt(read_config(base).model_args, tokenizer.vocabulary), gpt)
    if not match.complete:
        raise ModelFileError(f"These weights do not fit coqui's GPT: {match}.", hint=RELOAD_HINT)
    return gpt


def _compact(weight: Tensor, *, half: bool) -> Tensor:
    """Return a tensor that shares no memory, so torch.save writes nothing else."""
    weight = weight.detach().to("cpu", half_dtype(weight) if half else torch.float32).contiguous()
    return weight if weight.untyped_storage().nbytes() == _size(weight) else weight.clone()


def _size(weight: Tensor) -> int:
    return weight.numel() * weight.element_size()


def _save(weights: Mapping[str, Tensor], path: Path) -> None:
    try:
        torch.save({"model": dict(weights)}, path)
    except RuntimeError as error:  # torch's error for a full disk
        raise StorageError(f"{path} cannot be written: {str(error).splitlines()[0]}.", hint=NO_SPACE_HINT) from error


def _write_wav(source: Path, path: Path) -> None:
    if source.suffix.lower() == path.suffix:
        path.write_bytes(source.read_bytes())
    else:
        audio.save(path, audio.load(source, RATE), RATE)


def _write_json(path: Path, data: Mapping[str, object]) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=2), encoding="utf-8")


def _origin(base: Path, *, half: bool) -> dict[str, object]:
    return {
        "base": str(read_about(base).get("base") or base.name),
        "base_fingerprint": fingerprint(base),
        "precision": "half" if half else "full",
        "coqui_tts": version("coqui-tts"),
    }
