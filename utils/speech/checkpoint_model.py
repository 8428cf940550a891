"""The GPT of a run's checkpoint or of an adapter, put together with the base that it was trained from."""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from utils.core.errors import RunError, VocabularyError
from utils.core.folders import DamagedError, hash_file, read_manifest, verify_hashes
from utils.core.storage import read_json
from utils.speech.gpt_loading import fill, from_state
from utils.speech.model_lookup import MOVED, TRAINED, find_model
from utils.xtts.base_models import ModelSource
from utils.xtts.checkpoints import (
    ADAPTER,
    ADAPTER_CONFIG,
    MANIFEST,
    MODEL,
    PREFIX,
    Checkpoint,
    CheckpointInfo,
    read_state,
)
from utils.xtts.files import MODEL_FILE, VOCABULARY_FILE, ModelFileError, current_base_path
from utils.xtts.model import fingerprint, load_gpt, meta_gpt, read_config
from utils.xtts.state_dict import compare, require_match
from utils.xtts.tensors import read_tensors
from utils.xtts.tokenizer import Tokenizer

if TYPE_CHECKING:
    from utils.xtts.modules import GPT

ROWS = "text_embedding.weight"  # one row for each token
ADAPTED = "lora_"  # in the name of every weight of an adapter
ANOTHER = "Choose another checkpoint."

Hashes = Mapping[str, str]


@dataclass(frozen=True)
class Parts:
    """What differs between the kinds of models.

    Attributes:
        base: The folder that everything but the GPT comes from.
        gpt: coqui's GPT.
        tokenizer: How it reads.
        name: What to call it.
        fingerprint: Tells models apart.
        about: What is known of it.
        notices: What a user should know, in sentences.
        checkpoint: The checkpoint that it is, if it is one.
    """

    base: Path
    gpt: nn.Module
    tokenizer: Tokenizer
    name: str
    fingerprint: str
    about: Mapping[str, Any]
    notices: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None


def is_trained(place: Path) -> bool:
    """Tell a checkpoint or an adapter, a damaged one too, from a whole model."""
    if not place.is_dir() or (place / MODEL_FILE).exists():
        return False
    return place.name.startswith(PREFIX) or any((place / name).exists() for name in TRAINED)


def open_trained(folder: Path, base: str | Path | None, source: ModelSource, *, merge: bool, as_stored: bool) -> Parts:
    """Open a checkpoint of a run, or an adapter alone.

    Args:
        folder: Where it lies.
        base: The folder or version that it was trained from; None: what it says itself.
        source: Where published models lie.
        merge: Merge the adapter beside the weights into the base rather than read the weights.
        as_stored: Leave the layers in half precision.
    """
    about, hashes = _known(folder)
    file = ADAPTER if merge or MODEL not in hashes else MODEL
    if file not in hashes:
        raise ModelFileError(f"{folder} holds no {file}.", hint="Open it without merging: its weights are whole.")
    origin = _base(folder, about, base, source)
    tokenizer = _tokenizer(folder, about, origin)
    state = _state(folder, file)
    check_rows(state, tokenizer, folder)
    if any(ADAPTED in name for name in state):
        gpt = _adapted(folder, about, origin, tokenizer, state)
    else:
        gpt = meta_gpt(read_config(origin).model_args, tokenizer.vocabulary)
        require_match(compare(gpt, state), str(folder), enough=1.0)
        fill(gpt, from_state(state), as_stored=as_stored)
    key = hashlib.blake2b(f"{hashes[file]} {fingerprint(origin)} {tokenizer.vocabulary.hash}".encode(), digest_size=16)
    if MODEL not in hashes:
        return Parts(origin, gpt, tokenizer, folder.name, key.hexdigest(), {"base": origin.name})
    checkpoint = Checkpoint(folder, about.step, about, size=0)
    name = f"{checkpoint.run.name} step {about.step}"
    known = {"run": checkpoint.run.name, **dataclasses.asdict(about)}
    return Parts(origin, gpt, tokenizer, name, key.hexdigest(), known, checkpoint=checkpoint)


def check_rows(weights: Mapping[str, Tensor], tokenizer: Tokenizer, folder: Path) -> None:
    """Refuse a vocabulary that has another number of tokens than the weights have rows."""
    rows, tokens = weights.get(ROWS), tokenizer.vocabulary.size
    if rows is not None and rows.shape[0] != tokens:
        raise VocabularyError(
            f"{folder}: the weights have {rows.shape[0]:,} rows of text, and {VOCABULARY_FILE} {tokens:,} tokens.",
            hint=f"Put back the {VOCABULARY_FILE} that was saved together with the weights.",
        )


def _known(folder: Path) -> tuple[CheckpointInfo, Hashes]:
    """Return what is known of a checkpoint and the hashes of its files; an adapter alone may come without a word."""
    if not any((folder / name).exists() for name in (MANIFEST, MODEL)) and (folder / ADAPTER).is_file():
        return CheckpointInfo(step=0), {ADAPTER: hash_file(folder / ADAPTER)}
    try:
        manifest = read_manifest(folder, MANIFEST)
        about = TypeAdapter(CheckpointInfo).validate_python(manifest.get("about"))
        hashes = {name: str(file["sha256"]) for name, file in manifest["files"].items()}
    except (DamagedError, ValidationError, KeyError) as error:
        reason = error.message if isinstance(error, DamagedError) else f"{folder / MANIFEST} is damaged."
        raise DamagedError(f"{folder.name} is no whole checkpoint: {reason}", hint=ANOTHER) from error
    return about, hashes


def _base(folder: Path, about: CheckpointInfo, named: str | Path | None, source: ModelSource) -> Path:
    """Find the model that it was trained from: where one says, where it was then, or where models are kept now."""
    if named is None and not about.base:
        raise RunError(
            f"{folder} does not say which model it was trained from.", hint="Name that as base: a folder or a version."
        )
    then = current_base_path(Path(about.base))
    places = [then, source.models / then.name] if named is None else [find_model(named, source=source)]
    for place in places:
        if (place / MODEL_FILE).is_file() and about.base_fingerprint in {"", fingerprint(place)}:
            return place
    raise RunError(f"{places[0]} is no longer the model that {folder.name} was trained from.", hint=MOVED)


def _tokenizer(folder: Path, about: CheckpointInfo, origin: Path) -> Tokenizer:
    """Load the vocabulary beside the weights; an adapter alone may read as its base does."""
    own = bool(about.vocabulary_hash) or (folder / VOCABULARY_FILE).is_file()
    tokenizer = Tokenizer.load(folder if own else origin)
    if about.vocabulary_hash and tokenizer.vocabulary.hash != about.vocabulary_hash:
        raise VocabularyError(f"{folder} has another vocabulary than its weights were trained with.", hint=ANOTHER)
    return tokenizer


def _state(folder: Path, file: str) -> dict[str, Tensor]:
    """Read the weights of a checkpoint, or of an adapter, and compare their hash where one was written down."""
    if file == MODEL:
        return read_state(folder)
    if (folder / MANIFEST).is_file():
        verify_hashes(folder, MANIFEST, [file])
    return read_tensors(folder / file)


def _adapted(
    folder: Path, about: CheckpointInfo, origin: Path, tokenizer: Tokenizer, state: Mapping[str, Tensor]
) -> "GPT":
    """Put an adapter into its base, one matrix at a time, so that none but the model's own memory is needed."""
    from utils.core.errors import SpeedupError
    from utils.xtts.adapters import adapted_layers, add_lora, load_adapter

    settings = _settings(folder, about)
    gpt = load_gpt(origin, tokenizer)
    try:
        with torch.random.fork_rng(devices=[]):  # the small matrices begin with chance numbers
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
            f"{folder} does not fit {origin}: {error.message}", hint="Name the model that it was trained from as base."
        ) from error
    for name, layer in list(adapted_layers(gpt)):
        layer.merge(safe_merge=True)
        gpt.set_submodule(name, layer.get_base_layer())
    return gpt


def _settings(folder: Path, about: CheckpointInfo) -> dict[str, Any]:
    """Return the settings of an adapter, from the file beside it or from those of its run."""
    path = folder / ADAPTER_CONFIG
    if not path.is_file() and about.settings:
        return about.settings
    try:
        return dict(read_json(path))
    except (OSError, ValueError, TypeError) as error:
        raise DamagedError(f"{path} cannot be read: {error}.", hint="Put it beside the adapter again.") from error
