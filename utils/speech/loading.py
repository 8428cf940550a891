"""Loads a model for speech: a finished one, a run's checkpoint, an adapter, a base model, or a coqui folder.

Vocabulary and weights are compared before anything is spoken. Weights are read a few layers at a time, so that loading
needs hardly more memory than the model itself.
"""

import dataclasses
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from utils.core.facts import Fact
from utils.core.folders import hash_file
from utils.core.languages import find
from utils.core.storage import hash_text, read_json
from utils.speech.facts import WeightsMissing
from utils.xtts import checkpoints, files
from utils.xtts.base_models import find_files, link_files
from utils.xtts.checkpoints import CheckpointInfo, SavedCheckpoint
from utils.xtts.facts import CheckpointError, ModelFileError, VocabularyFileError
from utils.xtts.model import (
    GPT_PREFIX,
    compare,
    find_parts,
    load_gpt,
    load_vocoder,
    meta_gpt,
    read_config,
    read_state_dict,
    require_match,
    require_vocoder,
    strip_prefix,
)
from utils.xtts.model import fingerprint as model_fingerprint
from utils.xtts.modules import CONDITIONING, fuse
from utils.xtts.tensors import read_tensors
from utils.xtts.tokenizer import Tokenizer

TEXT_ROWS = "text_embedding.weight"  # one row per token
LAYER = re.compile(r"gpt\.h\.(\d+)\.")
LAYERS_AT_ONCE = 4  # 200 MB of the published model; each mapping of the file costs a tenth of a second

ReadWeights = Callable[[Sequence[str]], Mapping[str, Tensor]]


@dataclass(frozen=True)
class LoadedModel:
    """coqui's modules and what belongs to them."""

    folder: Path  # folder of config.json and speakers; for a checkpoint, that of its base
    gpt: nn.Module
    vocoder: nn.Module  # coqui's HifiDecoder with its speaker encoder
    mel_stats: Tensor  # divisors of the mel bands
    tokenizer: Tokenizer
    name: str
    fingerprint: str  # hash that identifies the model
    languages: tuple[str, ...]  # codes of the languages it speaks
    about: Mapping[str, Any]  # metadata: run, step, losses and the like
    notices: tuple[Fact, ...]  # messages for the user
    checkpoint: SavedCheckpoint | None = None
    reference: Path | None = None  # audio of its default voice

    def conditioning_only(self) -> "LoadedModel":
        """Return it with only those parts of the GPT that encode voices, so that the others can be freed."""
        parts = nn.ModuleDict({name: self.gpt.get_submodule(name) for name in CONDITIONING})
        return dataclasses.replace(self, gpt=parts)


@dataclass(frozen=True)
class Companions:
    """What belongs to a model and lies elsewhere; only the caller knows where."""

    base: Path | None = None  # that a checkpoint was trained from; None: the one that it says, if that is still there
    models: Path = Path(tempfile.gettempdir())  # published models, one of which may be the base; and links to files
    exported: Path | None = None  # a finished model with the same vocoder, in case that the base is gone
    reference: Path | None = None  # audio of the default voice; None: the one beside the weights
    pronunciations: Path | None = None  # file with those that are added to the model's own


def open_model(
    path: Path, companions: Companions | None = None, *, merge: bool = False, as_stored: bool = False
) -> LoadedModel:
    """Load a model.

    Args:
        path: The folder of a finished model, a base model, a checkpoint or an adapter; or a coqui folder, or one of its
            .pth files.
        companions: What belongs to it and lies elsewhere.
        merge: Merge the adapter beside a checkpoint's weights into the base in full precision, instead of reading the
            weights, which were rounded after merging.
        as_stored: Leave the GPT-2 layers in their file, or in half precision, for ``Decoder`` with ``consume``.
    """
    companions = companions or Companions()
    if not path.exists():
        raise ModelFileError(path, "not_found")
    named = (path / name for name in checkpoints.TRAINED_FILES)
    is_trained = path.name.startswith(checkpoints.PREFIX) or any(file.exists() for file in named)
    # A checkpoint or adapter, even a damaged one.
    if path.is_dir() and is_trained and not (path / files.MODEL_FILE).exists():
        opened = _load_checkpoint(path, companions, merge=merge, as_stored=as_stored)
    else:
        opened = _load_folder(path, companions, as_stored=as_stored)
    beside = opened.folder / files.REFERENCE_FILE
    return dataclasses.replace(opened, reference=companions.reference or (beside if beside.is_file() else None))


def _with_vocoder(
    base: Path, gpt: nn.Module, tokenizer: Tokenizer, name: str, fingerprint: str, about: Mapping[str, Any]
) -> LoadedModel:
    """Add the vocoder of a base to a GPT, and the languages that the vocabulary has a token for."""
    for part in CONDITIONING:
        fuse(gpt.get_submodule(part))  # the same numbers, faster
    vocoder, mel_stats = load_vocoder(base)
    added = [tokenizer.settings.language] if tokenizer.settings else []
    languages = dict.fromkeys(map(find, [*read_config(base).languages, *added]))
    return LoadedModel(
        folder=base,
        gpt=gpt.eval().requires_grad_(requires_grad=False),
        vocoder=vocoder.requires_grad_(requires_grad=False),
        mel_stats=mel_stats,
        tokenizer=tokenizer,
        name=name,
        fingerprint=fingerprint,
        languages=tuple(each.code for each in languages if each.token in tokenizer.vocabulary.ids),
        about=about,
        notices=tokenizer.notices,
    )


def _check_rows(weights: Mapping[str, Tensor], tokenizer: Tokenizer, folder: Path) -> None:
    """Refuse a vocabulary whose size differs from the text rows of the weights."""
    rows = weights.get(TEXT_ROWS)
    tokens = tokenizer.vocabulary.size
    if rows is not None and rows.shape[0] != tokens:
        source = str(folder / files.VOCABULARY_FILE)
        raise VocabularyFileError(source, "other_size", f"{tokens}, {rows.shape[0]}")


def _fill(gpt: nn.Module, read: ReadWeights, *, as_stored: bool) -> None:
    """Give a GPT on the meta device its weights, a few layers at a time.

    With ``as_stored`` the GPT-2 layers stay as they are stored; otherwise all weights are copied in full precision.
    """

    def group(name: str) -> int:
        return int(match[1]) // LAYERS_AT_ONCE if (match := LAYER.match(name)) else -1

    for number, names in groupby(gpt.state_dict(), key=group):
        weights = read(list(names))
        if number < 0 or not as_stored:
            weights = {name: weight.to(torch.float32, copy=True) for name, weight in weights.items()}
        gpt.load_state_dict(weights, strict=False, assign=True)


def read_from_file(path: Path) -> ReadWeights:
    """Read weights from a model.pth, mapped anew for each group: what was read of a mapping counts as memory."""

    def read() -> dict[str, Tensor]:
        return strip_prefix(read_state_dict(path), GPT_PREFIX)

    def select(names: Sequence[str]) -> dict[str, Tensor]:
        weights = read()
        return {name: weights[name] for name in names}

    if zipfile.is_zipfile(path):
        return select
    whole = read()  # torch's older format cannot be mapped
    return lambda names: {name: whole.pop(name) for name in names}


# --- whole models ---


def _load_folder(path: Path, companions: Companions, *, as_stored: bool) -> LoadedModel:
    folder = _with_usual_names(path, companions.models)
    tokenizer = Tokenizer.load(folder, companions.pronunciations)
    gpt = meta_gpt(read_config(folder).model_args, tokenizer.vocabulary)
    weights = read_state_dict(folder / files.MODEL_FILE)
    require_vocoder(weights, folder)
    own = strip_prefix(weights, GPT_PREFIX)
    _check_rows(own, tokenizer, folder)
    missing = require_match(compare(gpt, own), folder / files.MODEL_FILE).missing
    del weights, own
    if missing:
        gpt = load_gpt(folder)
    else:
        _fill(gpt, read_from_file(folder / files.MODEL_FILE), as_stored=as_stored)
    name = _name_of(path)
    opened = _with_vocoder(folder, gpt, tokenizer, name, model_fingerprint(folder), files.read_about(folder))
    notices = [WeightsMissing(folder, name) for name in missing]
    return dataclasses.replace(opened, notices=(*notices, *opened.notices))


def _name_of(path: Path) -> str:
    if path.is_file():
        return path.stem
    return path.parent.name if path.name == "ready" else path.name


def _with_usual_names(path: Path, models: Path) -> Path:
    """Return a folder with a model.pth; where coqui's Trainer named the weights, one that links to them."""
    if path.is_file() and path.suffix != ".pth":
        raise ModelFileError(path, "not_a_folder", str(path.absolute().parent))
    folder = path if path.is_dir() else path.absolute().parent
    if missing := files.missing_files(folder, path if path.is_file() else None):
        raise ModelFileError(folder, "lacks", ", ".join(missing))
    found = find_files(path)
    if found[files.MODEL_FILE].name == files.MODEL_FILE:
        return folder
    key = hash_text(str(found[files.MODEL_FILE].resolve()), 6)
    return link_files(models / f".opened-{key}", found)


# --- checkpoints and adapters ---


# Long because each file of a checkpoint is checked before the next one is read.
def _load_checkpoint(folder: Path, companions: Companions, *, merge: bool, as_stored: bool) -> LoadedModel:
    """Load a checkpoint of a run, or an adapter alone, with the parts of its base."""
    info, hashes = _read_info(folder)
    file = checkpoints.ADAPTER if merge or checkpoints.MODEL not in hashes else checkpoints.MODEL
    if file not in hashes:
        raise CheckpointError(folder, "no_weights", file)
    origin = _find_base(folder, info, companions, needs_gpt=file != checkpoints.MODEL)
    tokenizer = _read_tokenizer(folder, info, origin, companions)
    if (folder / checkpoints.MANIFEST).is_file():
        checkpoints.verify(folder, file)
    state = read_tensors(folder / file)
    _check_rows(state, tokenizer, folder)
    if any(checkpoints.LORA_PREFIX in name for name in state):
        gpt = _merged(folder, info, origin, tokenizer, state)
    else:
        gpt = _filled(folder, origin, tokenizer, state, as_stored=as_stored)
    digest = hash_text(" ".join([hashes[file], model_fingerprint(origin), tokenizer.vocabulary.hash]), 16)
    if checkpoints.MODEL not in hashes:
        return _with_vocoder(origin, gpt, tokenizer, folder.name, digest, {"base": origin.name})
    checkpoint = SavedCheckpoint(folder, info.step, info, size=0)
    run = checkpoint.run.name
    about = {"run": run, **dataclasses.asdict(info)}
    opened = _with_vocoder(origin, gpt, tokenizer, f"{run} step {info.step}", digest, about)
    return dataclasses.replace(opened, checkpoint=checkpoint)


def _read_info(folder: Path) -> tuple[CheckpointInfo, Mapping[str, str]]:
    """Return the metadata of a checkpoint and the hashes of its files; an adapter alone may have none."""
    is_checkpoint = any((folder / name).exists() for name in (checkpoints.MANIFEST, checkpoints.MODEL))
    adapter = folder / checkpoints.ADAPTER
    if not is_checkpoint and adapter.is_file():
        return CheckpointInfo(step=0), {adapter.name: hash_file(adapter)}
    return checkpoints.read_info(folder)


def _find_base(folder: Path, info: CheckpointInfo, companions: Companions, *, needs_gpt: bool) -> Path:
    """Return the model that it was trained from: the given one, its old path, or where models are stored now.

    Merged weights need only its other parts, which a model that was exported with it has too.
    """
    path = companions.base
    models = companions.models
    if path is None and not info.base:
        raise CheckpointError(folder, "base_unknown")
    path, models = (Path(info.base), models) if path is None else (path, path.parent)
    exported = None if needs_gpt else companions.exported
    if found := find_parts(path, info.base_fingerprint, models, exported):
        return found
    raise CheckpointError(folder, "base_changed", str(path))


def _read_tokenizer(folder: Path, info: CheckpointInfo, origin: Path, companions: Companions) -> Tokenizer:
    """Read the vocabulary of a checkpoint; an adapter alone may use that of its base."""
    has_vocabulary = info.vocabulary_hash or (folder / files.VOCABULARY_FILE).is_file()
    tokenizer = Tokenizer.load(folder if has_vocabulary else origin, companions.pronunciations)
    if info.vocabulary_hash and tokenizer.vocabulary.hash != info.vocabulary_hash:
        raise CheckpointError(folder, "other_vocabulary")
    return tokenizer


def _filled(
    folder: Path, origin: Path, tokenizer: Tokenizer, state: dict[str, Tensor], *, as_stored: bool
) -> nn.Module:
    """Return a GPT of the size of the base with the weights of a checkpoint, which are taken out of ``state``."""
    gpt: nn.Module = meta_gpt(read_config(origin).model_args, tokenizer.vocabulary)
    require_match(compare(gpt, state), folder, min_share=1.0)
    _fill(gpt, lambda names: {name: state.pop(name) for name in names}, as_stored=as_stored)
    return gpt


def _merged(
    folder: Path, info: CheckpointInfo, origin: Path, tokenizer: Tokenizer, state: Mapping[str, Tensor]
) -> nn.Module:
    """Merge an adapter into its base, with the settings in the file beside it, or else those of its run."""
    from utils.xtts.adapters import adapted_layers, add_lora, load_adapter

    path = folder / checkpoints.ADAPTER_CONFIG
    settings = info.settings
    if path.is_file() or not settings:
        try:
            settings = dict(read_json(path))
        except (OSError, ValueError, TypeError) as error:
            raise CheckpointError(path, "adapter", str(error)) from error
    gpt: nn.Module = load_gpt(origin, tokenizer)
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
        raise CheckpointError(path, "adapter", repr(error)) from error
    for name, layer in list(adapted_layers(gpt)):
        layer.merge(safe_merge=True)
        gpt.set_submodule(name, layer.get_base_layer())
    return gpt
