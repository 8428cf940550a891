"""Export a voice to ready/: a model folder that speaks, loads in plain coqui-tts, and can be trained further."""

import json
from collections.abc import Mapping
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from utils.core import languages
from utils.core.errors import DiskFullError, first_line
from utils.core.folders import replace_folder, seal
from utils.core.storage import link_or_copy, read_json, require_space
from utils.media import audio
from utils.media.rates import RATE
from utils.xtts.checkpoints import MODEL, WITHOUT_EMA, SavedCheckpoint, read_state
from utils.xtts.codec import read_tensors_only
from utils.xtts.facts import CheckpointError, ModelFileError
from utils.xtts.files import (
    ABOUT_FILE,
    CONFIG_FILE,
    DIGESTS_FILE,
    DVAE_FILE,
    MEL_FILE,
    MODEL_FILE,
    REFERENCE_FILE,
    SETTINGS_FILE,
    SPEAKERS_FILE,
    VOCABULARY_FILE,
    read_about,
)
from utils.xtts.model import GPT_PREFIX, compare, find_parts, fingerprint, meta_gpt, read_config, read_state_dict
from utils.xtts.pronunciations import overrides
from utils.xtts.tensors import Tensors, half_dtype
from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import START, STOP, Vocabulary

SHARED = (SPEAKERS_FILE, DVAE_FILE, MEL_FILE)  # copied from the base, for its voices and for further training
EXPORTED_FILES = (
    MODEL_FILE,
    CONFIG_FILE,
    VOCABULARY_FILE,
    SETTINGS_FILE,
    REFERENCE_FILE,
    ABOUT_FILE,
    DIGESTS_FILE,
    *SHARED,
)
DUPLICATES = ("gpt_inference.", "gpt.wte.")  # second names of the same weights


def promote(
    checkpoint: SavedCheckpoint,
    ready: Path,
    models: Path,
    reference: Path | None = None,
    *,
    pronunciations: Path | None = None,
    half: bool = False,
    without_ema: bool = False,
) -> Path:
    """Export a checkpoint as a finished model; the previous one is replaced when the new one is complete.

    ``models`` has the published models. Without a reference clip, the voice is that of the base model. The entries of a
    file of pronunciations are stored with it. ``without_ema`` exports the weights of the training itself instead of
    their moving average.
    """
    about = checkpoint.require_info()
    folder = checkpoint.folder
    if not (base := find_parts(Path(about.base), about.base_fingerprint, models, ready)):
        raise CheckpointError(folder, "base_changed", about.base)
    weights = WITHOUT_EMA if without_ema and about.is_average else MODEL
    if not (folder / weights).is_file():
        raise CheckpointError(folder, "no_weights", weights)
    tokenizer = Tokenizer.load(folder)
    if about.vocabulary_hash and tokenizer.vocabulary.hash != about.vocabulary_hash:
        raise CheckpointError(folder, "other_vocabulary")
    origin = {
        "run": checkpoint.run.name,
        "step": about.step,
        "epoch": about.epoch,
        "train_loss": about.train_loss,
        "eval_loss": about.eval_loss,
    }
    if about.base_fingerprint:
        origin["base_fingerprint"] = about.base_fingerprint
    tokenizer = tokenizer.with_pronunciations(overrides(pronunciations))
    state = read_state(folder, weights=weights)
    return write_ready(ready, base, state, tokenizer, reference, origin, half=half)


def write_ready(
    folder: Path,
    base: Path,
    state: Tensors,
    tokenizer: Tokenizer,
    reference: Path | None,
    about: Mapping[str, object],
    *,
    half: bool = False,
) -> Path:
    """Write a model folder. An existing model is replaced once the new one is complete; other files stay.

    Everything except the GPT is copied from the base, and so is the voice if no reference clip is given. ``state``
    holds the weights under coqui's names, without a prefix. Half precision leaves out values that it cannot hold.
    """
    weights = _all_weights(folder, base, state, tokenizer, half=half)
    shared = [base / name for name in SHARED if (base / name).is_file()]
    require_space(
        folder, sum(weight.nbytes for weight in weights.values()) + sum(path.stat().st_size for path in shared)
    )
    with replace_folder(folder, EXPORTED_FILES) as new:
        _save(weights, new / MODEL_FILE)
        tokenizer.save(new)
        _write_json(new / CONFIG_FILE, _config(base, tokenizer))
        _write_json(new / ABOUT_FILE, {**_origin(base, half=half), **about})
        for path in shared:
            _copy_shared(path, new / path.name)
        _copy_voice(reference or base / REFERENCE_FILE, new / REFERENCE_FILE)
        seal(new, DIGESTS_FILE, {})
    return folder


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")


def _origin(base: Path, *, half: bool) -> dict[str, str]:
    """Return what a model folder says about the model that it comes from."""
    return {
        "base": str(read_about(base).get("base") or base.name),
        "base_fingerprint": fingerprint(base),
        "precision": "half" if half else "full",
        "coqui_tts": version("coqui-tts"),
    }


def _all_weights(folder: Path, base: Path, state: Tensors, tokenizer: Tokenizer, *, half: bool) -> dict[str, Tensor]:
    """Return the weights of a GPT with the others of its base, as a copy that does not keep the file open."""
    gpt = {name: weight for name, weight in state.items() if not name.startswith(DUPLICATES)}
    match = compare(meta_gpt(read_config(base).model_args, tokenizer.vocabulary), gpt)
    if not match.complete:
        raise ModelFileError(folder, "mismatch", str(match))
    stored = read_state_dict(base / MODEL_FILE)
    others = deepcopy({name: weight for name, weight in stored.items() if not name.startswith(GPT_PREFIX)})
    return {GPT_PREFIX + name: _compact(weight, half=half) for name, weight in gpt.items()} | others


def _copy_voice(source: Path, target: Path) -> None:
    if not source.is_file():
        return
    if source.suffix.lower() == ".wav":
        target.write_bytes(source.read_bytes())
    else:
        audio.save(target, audio.load(source, RATE), RATE)


def _copy_shared(source: Path, target: Path) -> None:
    """Copy a file of the base; stored voices become float32, because plain coqui does not convert them."""
    if source.name != SPEAKERS_FILE:
        link_or_copy(source, target)
        return
    voices: Any = read_tensors_only(source)
    torch.save({name: {key: part.float() for key, part in voice.items()} for name, voice in voices.items()}, target)


def _config(base: Path, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the config.json of the base with the language and text rows of the new model."""
    config: dict[str, Any] = read_json(base / CONFIG_FILE)
    new = tokenizer.vocabulary.special - Vocabulary.load(base / VOCABULARY_FILE).special
    added = [*([tokenizer.settings.language] if tokenizer.settings else []), *sorted(token[1:-1] for token in new)]
    known = config.get("languages") or [language.code for language in languages.known_languages() if language.in_xtts]
    vocabulary = tokenizer.vocabulary
    rows = {"gpt_number_text_tokens": vocabulary.size, "tokenizer_file": ""}
    rows |= {"gpt_start_text_token": vocabulary.ids[START], "gpt_stop_text_token": vocabulary.ids[STOP]}
    return config | {"languages": list(dict.fromkeys([*known, *added])), "model_args": config["model_args"] | rows}


def _compact(weight: Tensor, *, half: bool) -> Tensor:
    """Return a tensor that shares no memory, so torch.save writes nothing else."""
    weight = weight.detach().to("cpu", half_dtype(weight) if half else torch.float32).contiguous()
    return weight if weight.untyped_storage().nbytes() == weight.nbytes else weight.clone()


def _save(weights: Tensors, path: Path) -> None:
    try:
        torch.save({"model": dict(weights)}, path)
    except RuntimeError as error:  # torch's error for a full disk
        raise DiskFullError(path, first_line(error)) from error
