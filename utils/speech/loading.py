"""Loads a model for speech: a finished one, a run's checkpoint, an adapter, a base version, or a coqui folder.

Vocabulary and weights are compared before anything is spoken.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from utils.core.errors import RunError, SpeedupError, VocabularyError
from utils.core.paths import OUTPUT
from utils.core.storage import (
    DamagedError,
    hash_file,
    make_folder,
    read_json,
    read_manifest,
    symlink_or_copy,
    verify_hashes,
)
from utils.speech.loaded_model import LoadedModel, check_rows, fill, read_from_file, with_vocoder
from utils.speech.models import TRAINED_FILES, find_model, missing_files
from utils.xtts.base_models import ModelSource
from utils.xtts.checkpoints import (
    ADAPTER,
    ADAPTER_CONFIG,
    LORA_PREFIX,
    MANIFEST,
    MODEL,
    PREFIX,
    Checkpoint,
    CheckpointInfo,
    read_state,
)
from utils.xtts.files import (
    ABOUT_FILE,
    MODEL_FILE,
    MODEL_FILE_NAMES,
    REFERENCE_FILE,
    REQUIRED_FILES,
    SETTINGS_FILE,
    SPEAKERS_FILE,
    VOCABULARY_FILE,
    ModelFileError,
    current_base_path,
    read_about,
)
from utils.xtts.model import (
    GPT_PREFIX,
    compare,
    fingerprint,
    load_gpt,
    meta_gpt,
    read_config,
    read_state_dict,
    require_match,
    require_vocoder,
    strip_prefix,
)
from utils.xtts.tensors import read_tensors
from utils.xtts.tokenizer import Tokenizer

if TYPE_CHECKING:
    from utils.xtts.modules import GPT

OTHER_FILES = (*REQUIRED_FILES, SETTINGS_FILE, SPEAKERS_FILE, REFERENCE_FILE, ABOUT_FILE)  # besides the weights
MOVED = "Restore it, or give it as the base model: the vocoder comes from there."
ANOTHER = "Choose another checkpoint."


def open_model(
    model: str | Path = "",
    *,
    base: str | Path | None = None,
    merge: bool = False,
    as_stored: bool = False,
    output: Path = OUTPUT,
    source: ModelSource | None = None,
) -> LoadedModel:
    """Load a model.

    Args:
        model: A finished model, a project, a run, a checkpoint, an adapter, a base version, a coqui folder or one of
            its .pth files; empty: the model that was finished last.
        base: Folder or version that a checkpoint was trained from, if it was moved or the checkpoint does not say it.
        merge: Merge the adapter beside a checkpoint's weights into the base in full precision, instead of reading the
            weights, which were rounded after merging.
        as_stored: Leave the GPT-2 layers in their file, or in half precision, for ``Decoder.of`` with ``consume``.
        output: Folder of the projects.
        source: Where published models come from.
    """
    source = source or ModelSource()
    path = find_model(model, output, source)
    if _is_trained(path):
        return _load_checkpoint(path, base, source, merge=merge, as_stored=as_stored)
    return _load_folder(path, source, as_stored=as_stored)


# --- whole models ---


def _load_folder(path: Path, source: ModelSource, *, as_stored: bool) -> LoadedModel:
    """Load a folder that has all parts of a model."""
    folder = _with_usual_names(path, source)
    tokenizer = Tokenizer.load(folder)
    gpt = meta_gpt(read_config(folder).model_args, tokenizer.vocabulary)
    weights = read_state_dict(folder / MODEL_FILE)
    require_vocoder(weights, folder)
    own = strip_prefix(weights, GPT_PREFIX)
    check_rows(own, tokenizer, folder)
    missing = require_match(compare(gpt, own), str(folder / MODEL_FILE)).missing
    del weights, own
    if missing:
        gpt = load_gpt(folder)
    else:
        fill(gpt, read_from_file(folder / MODEL_FILE), as_stored=as_stored)
    named = path.parent if path.name == "ready" else path
    return with_vocoder(
        folder,
        gpt,
        tokenizer,
        name=path.stem if path.is_file() else named.name,
        fingerprint=fingerprint(folder),
        about=read_about(folder),
        notices=[f"{folder} has no weights {name}; random numbers are used instead." for name in missing],
    )


def _with_usual_names(path: Path, source: ModelSource) -> Path:
    """Return a folder with a model.pth; where coqui's Trainer named the weights, one that links to them."""
    folder = path if path.is_dir() else path.parent
    if missing := missing_files(folder, path if path.is_file() else None):
        raise ModelFileError(
            f"{folder} has no {' and no '.join(missing)}.",
            hint="Add the file that was saved with the model, or choose another model.",
        )
    weights = path if path.is_file() else next(file for name in MODEL_FILE_NAMES if (file := folder / name).is_file())
    if weights.name == MODEL_FILE:
        return folder
    key = hashlib.blake2b(str(weights.resolve()).encode(), digest_size=6).hexdigest()
    linked = source.models / f".opened-{key}"
    make_folder(linked)
    symlink_or_copy(weights, linked / MODEL_FILE)
    for name in OTHER_FILES:
        if (folder / name).is_file():
            symlink_or_copy(folder / name, linked / name)
        else:
            (linked / name).unlink(missing_ok=True)
    return linked


# --- checkpoints and adapters ---


def _is_trained(path: Path) -> bool:
    """Return whether a path is a checkpoint or an adapter, even a damaged one."""
    if not path.is_dir() or (path / MODEL_FILE).exists():
        return False
    return path.name.startswith(PREFIX) or any((path / name).exists() for name in TRAINED_FILES)


def _load_checkpoint(
    folder: Path, base: str | Path | None, source: ModelSource, *, merge: bool, as_stored: bool
) -> LoadedModel:
    """Load a checkpoint of a run, or an adapter alone, with the parts of its base."""
    info, hashes = _read_info(folder)
    file = ADAPTER if merge or MODEL not in hashes else MODEL
    if file not in hashes:
        raise ModelFileError(f"{folder} has no {file}.", hint="Open it without merging: its weights are complete.")
    origin = _find_base(folder, info, base, source)
    tokenizer = _load_tokenizer(folder, info, origin)
    state = _read_checkpoint_state(folder, file)
    check_rows(state, tokenizer, folder)
    if any(LORA_PREFIX in name for name in state):
        gpt: nn.Module = _merged(folder, info, origin, tokenizer, state)
    else:
        gpt = meta_gpt(read_config(origin).model_args, tokenizer.vocabulary)
        require_match(compare(gpt, state), str(folder), min_share=1.0)
        fill(gpt, lambda names: {name: state.pop(name) for name in names}, as_stored=as_stored)
    key = f"{hashes[file]} {fingerprint(origin)} {tokenizer.vocabulary.hash}"
    digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    if MODEL not in hashes:
        return with_vocoder(origin, gpt, tokenizer, name=folder.name, fingerprint=digest, about={"base": origin.name})
    checkpoint = Checkpoint(folder, info.step, info, size=0)
    return with_vocoder(
        origin,
        gpt,
        tokenizer,
        name=f"{checkpoint.run.name} step {info.step}",
        fingerprint=digest,
        about={"run": checkpoint.run.name, **dataclasses.asdict(info)},
        checkpoint=checkpoint,
    )


def _read_info(folder: Path) -> tuple[CheckpointInfo, Mapping[str, str]]:
    """Return the metadata of a checkpoint and the hashes of its files; an adapter alone may have none."""
    if not any((folder / name).exists() for name in (MANIFEST, MODEL)) and (folder / ADAPTER).is_file():
        return CheckpointInfo(step=0), {ADAPTER: hash_file(folder / ADAPTER)}
    try:
        manifest = read_manifest(folder, MANIFEST)
        info = TypeAdapter(CheckpointInfo).validate_python(manifest.get("about"))
        hashes = {name: str(file["sha256"]) for name, file in manifest["files"].items()}
    except (DamagedError, ValidationError, KeyError) as error:
        reason = error.message if isinstance(error, DamagedError) else f"{folder / MANIFEST} is damaged."
        raise DamagedError(f"{folder.name} is not a complete checkpoint: {reason}", hint=ANOTHER) from error
    return info, hashes


def _find_base(folder: Path, info: CheckpointInfo, base: str | Path | None, source: ModelSource) -> Path:
    """Return the model that it was trained from: the given one, its old path, or where models are kept now."""
    if base is None and not info.base:
        raise RunError(
            f"{folder} does not say which model it was trained from.",
            hint="Give a folder or a version as the base model.",
        )
    recorded = current_base_path(Path(info.base))
    paths = [recorded, source.models / recorded.name] if base is None else [find_model(base, source=source)]
    for path in paths:
        if (path / MODEL_FILE).is_file() and info.base_fingerprint in {"", fingerprint(path)}:
            return path
    raise RunError(f"{paths[0]} is no longer the model that {folder.name} was trained from.", hint=MOVED)


def _load_tokenizer(folder: Path, info: CheckpointInfo, origin: Path) -> Tokenizer:
    """Load the tokenizer beside the weights; an adapter alone may use that of its base."""
    own = bool(info.vocabulary_hash) or (folder / VOCABULARY_FILE).is_file()
    tokenizer = Tokenizer.load(folder if own else origin)
    if info.vocabulary_hash and tokenizer.vocabulary.hash != info.vocabulary_hash:
        raise VocabularyError(
            f"{folder} has a different vocabulary from the one its weights were trained with.", hint=ANOTHER
        )
    return tokenizer


def _read_checkpoint_state(folder: Path, file: str) -> dict[str, Tensor]:
    """Read the weights of a checkpoint or an adapter and verify their hash if it is known."""
    if file == MODEL:
        return read_state(folder)
    if (folder / MANIFEST).is_file():
        verify_hashes(folder, MANIFEST, [file])
    return read_tensors(folder / file)


def _merged(
    folder: Path, info: CheckpointInfo, origin: Path, tokenizer: Tokenizer, state: Mapping[str, Tensor]
) -> "GPT":
    """Merge an adapter into its base, one matrix at a time to save memory."""
    from utils.xtts.adapters import adapted_layers, add_lora, load_adapter

    settings = _adapter_settings(folder, info)
    gpt = load_gpt(origin, tokenizer)
    try:
        with torch.random.fork_rng(devices=[]):  # the adapter is initialized with random numbers
            add_lora(
                gpt,
                int(settings["lora_rank"]),
                float(settings["lora_alpha"]),
                targets=settings["lora_targets"],
                dora=bool(settings["use_dora"]),
            )
        load_adapter(gpt, state, {"lora_scale": settings["lora_scale"]} if "lora_scale" in settings else None)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{folder / ADAPTER_CONFIG} is damaged: {error!r}.", hint="Copy it again.") from error
    except SpeedupError as error:
        raise ModelFileError(
            f"{folder} does not fit {origin}: {error.message}",
            hint="Give the model that it was trained from as the base model.",
        ) from error
    for name, layer in list(adapted_layers(gpt)):
        layer.merge(safe_merge=True)
        gpt.set_submodule(name, layer.get_base_layer())
    return gpt


def _adapter_settings(folder: Path, info: CheckpointInfo) -> dict[str, Any]:
    """Return the settings of an adapter, from the file beside it or from its run."""
    path = folder / ADAPTER_CONFIG
    if not path.is_file() and info.settings:
        return info.settings
    try:
        return dict(read_json(path))
    except (OSError, ValueError, TypeError) as error:
        raise DamagedError(f"{path} cannot be read: {error}.", hint="Put it next to the adapter again.") from error
