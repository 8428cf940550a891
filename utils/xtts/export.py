"""Writing ready/: a model folder that speaks, that plain coqui-tts loads, and that training can go on from."""

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
from utils.core.folders import link_or_copy, replace_folder, require_space
from utils.core.storage import NO_SPACE_HINT, read_json
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

SHARED = (SPEAKERS_FILE, DVAE_FILE, MEL_FILE)  # as the base has them: for its voices, and to train further
EXPORTED_FILES = (MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE, SETTINGS_FILE, REFERENCE_FILE, ABOUT_FILE, *SHARED)
TWICE = ("gpt_inference.", "gpt.wte.")  # what generating adds to the GPT: the same weights under other names


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
    """Write a finished model; the one that was there stays until this one is complete.

    The folder needs no other one: what a further training reads of the base is linked to, or copied where the system
    has no links. Files that somebody else put into it stay.

    Args:
        folder: Where, usually ready/.
        base: The folder that the training began from; everything but the GPT comes from there.
        state: The weights of the GPT, under coqui's names without a prefix.
        tokenizer: How the model reads.
        reference: A clip whose voice it speaks with; None keeps the one of the base.
        about: What shall be known about it later.
        half: Store the GPT in half the size, but for what half precision cannot hold; it is loaded in full again.
    """
    gpt = _checked(state, base, tokenizer)
    found = read_state_dict(base / MODEL_FILE)
    others = deepcopy({name: found[name] for name in found if not name.startswith(GPT_PREFIX)})  # lets go of the file
    del found
    weights = {GPT_PREFIX + name: _plain(weight, half=half) for name, weight in gpt.items()} | others
    shared = [base / name for name in SHARED if (base / name).is_file()]
    sound = reference or base / REFERENCE_FILE
    require_space(folder, sum(map(_size, weights.values())) + sum(path.stat().st_size for path in shared))
    with replace_folder(folder, EXPORTED_FILES) as new:
        _save(weights, new / MODEL_FILE)
        tokenizer.save(new)
        _write_json(new / CONFIG_FILE, config_for(base, tokenizer))
        _write_json(new / ABOUT_FILE, {**_origin(base, half=half), **about})
        for path in shared:
            link_or_copy(path, new / path.name)
        if sound.is_file():
            _write_sound(sound, new / REFERENCE_FILE)
    return folder


def config_for(base: Path, tokenizer: "Tokenizer") -> dict[str, Any]:
    """Return the config.json of the base with the language and the text rows of the new model."""
    read_config(base)  # says what is wrong with it, if anything is
    config: dict[str, Any] = read_json(base / CONFIG_FILE)
    spoken = [tokenizer.settings.language] if tokenizer.settings else []
    known = config.get("languages") or [language.code for language in languages.XTTS_LANGUAGES]
    vocabulary = tokenizer.vocabulary
    rows = {"gpt_number_text_tokens": vocabulary.size, "tokenizer_file": ""}
    rows |= {"gpt_start_text_token": vocabulary.ids[START], "gpt_stop_text_token": vocabulary.ids[STOP]}
    return config | {"languages": list(dict.fromkeys([*known, *spoken])), "model_args": config["model_args"] | rows}


def _checked(state: Mapping[str, Tensor], base: Path, tokenizer: "Tokenizer") -> dict[str, Tensor]:
    """Return the weights that belong to coqui's GPT, all of them and no other."""
    gpt = {name: weight for name, weight in state.items() if not name.startswith(TWICE)}
    match = compare(meta_gpt(read_config(base).model_args, tokenizer.vocabulary), gpt)
    if not match.complete:
        raise ModelFileError(f"These weights are not those of coqui's GPT: {match}.", hint=RELOAD_HINT)
    return gpt


def _plain(weight: Tensor, *, half: bool) -> Tensor:
    """Return a tensor that torch.save writes without what else lies in its memory."""
    weight = weight.detach().to("cpu", half_dtype(weight) if half else torch.float32).contiguous()
    return weight if weight.untyped_storage().nbytes() == _size(weight) else weight.clone()


def _size(weight: Tensor) -> int:
    return weight.numel() * weight.element_size()


def _save(weights: Mapping[str, Tensor], path: Path) -> None:
    try:
        torch.save({"model": dict(weights)}, path)
    except RuntimeError as error:  # what torch's writer makes of a full disk
        raise StorageError(f"{path} cannot be written: {str(error).splitlines()[0]}.", hint=NO_SPACE_HINT) from error


def _write_sound(source: Path, path: Path) -> None:
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
