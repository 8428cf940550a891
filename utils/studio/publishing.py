"""Publish a model: a small, complete folder that plain coqui-tts loads, and as a zip."""

import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from utils.core import integrations
from utils.core.folders import replace_folder, seal
from utils.core.storage import atomic_writer, make_folder, require_space
from utils.studio import amharic_wheel
from utils.studio.facts import InputError, ProjectError
from utils.xtts.checkpoints import ADAPTER, ADAPTER_CONFIG
from utils.xtts.export import EXPORTED_FILES, write_ready
from utils.xtts.facts import ModelFileError
from utils.xtts.files import DIGESTS_FILE, DVAE_FILE, MEL_FILE, MODEL_FILE
from utils.xtts.model import GPT_PREFIX, read_state_dict
from utils.xtts.portable import alias_of, portable, with_alias
from utils.xtts.tensors import half_dtype, read_tensors, write_tensors

if TYPE_CHECKING:
    from utils.speech.loading import LoadedModel
    from utils.xtts.tokenizer import Tokenizer

CARD = "README.md"
SAFETENSORS_FILE = "model.safetensors"
ALL_FILES = (*EXPORTED_FILES, CARD, SAFETENSORS_FILE, ADAPTER, ADAPTER_CONFIG)
TRAINING_FILES = (DVAE_FILE, MEL_FILE)  # speech needs neither
ABOUT_KEYS = ("run", "step", "epoch", "train_loss", "eval_loss", "is_average")  # no local paths
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # a fixed time: the same files make the same zip
READABLE = 0o100644 << 16


class PublishOptions(NamedTuple):
    """What the folder contains."""

    half: bool = True  # store the GPT in half precision
    for_training: bool = False  # keep the files that only further training needs
    safetensors: bool = False  # also store the weights as model.safetensors
    zip: bool = False  # also pack the folder into one file
    portable: bool = True  # let programs speak it that know no Amharic
    ebook: bool = False  # also pack what ebook2audiobook takes as a custom model


class PublishedModel(NamedTuple):
    """A published model."""

    folder: Path
    archive: Path | None
    before: int  # bytes of the original model
    after: int  # bytes of the folder


def publish(opened: "LoadedModel", folder: Path, options: PublishOptions, card: str) -> PublishedModel:
    """Write a model, with adapters merged. An existing export is replaced once the new one is complete."""
    before = _folder_size(opened.checkpoint.folder if opened.checkpoint else opened.folder)
    _check_target(opened, folder)
    if options.half:
        _check_half_precision(opened)
    _require_space(folder, _weights_size(opened, half=options.half), options)
    state, tokenizer, about = _exported(opened, options)
    earlier = (path.name for path in folder.glob(f"{amharic_wheel.NAME}-*.whl"))  # of another version
    with replace_folder(folder, (*ALL_FILES, *earlier)) as new:
        model = new / "model"
        write_ready(model, opened.folder, state, tokenizer, opened.reference, about, half=options.half)
        _move_up(model, () if options.for_training else TRAINING_FILES)
        if about.get("alias"):
            amharic_wheel.build(new)
        if options.safetensors:
            write_tensors(new / SAFETENSORS_FILE, _unshared(read_state_dict(new / MODEL_FILE)))
        seal(new, DIGESTS_FILE, {})  # before the card, which people edit
        (new / CARD).write_text(card, encoding="utf-8")
    return _published(folder, before, options)


def _move_up(folder: Path, unwanted: Sequence[str]) -> None:
    """Move the files of a folder into the one that it is in; the others are removed with it."""
    for path in folder.iterdir():
        if path.name not in unwanted:
            path.rename(folder.parent / path.name)
    shutil.rmtree(folder)


def _exported(opened: "LoadedModel", options: PublishOptions) -> tuple[dict[str, Tensor], "Tokenizer", dict[str, Any]]:
    """Return the weights, the tokenizer and what is known of a model as they are exported."""
    # A ready folder keeps the base it was trained from.
    keys = ABOUT_KEYS if opened.checkpoint else (*ABOUT_KEYS, "base", "base_fingerprint")
    about = {name: opened.about[name] for name in keys if name in opened.about}
    state = opened.gpt.state_dict()
    tokenizer = opened.tokenizer
    if options.portable and tokenizer.settings and (alias := alias_of(tokenizer)):
        state = with_alias(state, tokenizer.vocabulary, tokenizer.settings.language, alias)
        return state, portable(tokenizer), about | {"alias": alias}
    return state, tokenizer, about


def publish_adapter(opened: "LoadedModel", folder: Path, options: PublishOptions, card: str) -> PublishedModel:
    """Write only the adapter of a checkpoint with its vocabulary; the base model is needed to use it."""
    checkpoint = opened.checkpoint.folder if opened.checkpoint else None
    if checkpoint is None or not (checkpoint / ADAPTER).is_file():
        raise InputError("no_adapter", opened.name)
    _check_target(opened, folder)
    state = read_tensors(checkpoint / ADAPTER)
    _require_space(folder, sum(weight.nbytes for weight in state.values()), options)
    with replace_folder(folder, ALL_FILES) as new:
        write_tensors(new / ADAPTER, state, half_dtype if options.half else None)
        shutil.copyfile(checkpoint / ADAPTER_CONFIG, new / ADAPTER_CONFIG)
        opened.tokenizer.save(new)
        (new / CARD).write_text(card, encoding="utf-8")
    return _published(folder, _folder_size(checkpoint), options)


def write_zip(folder: Path, archive: Path) -> Path:
    """Pack the files of a folder; the same files make the same archive, byte for byte."""
    with atomic_writer(archive) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as packed:
        for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
            entry = zipfile.ZipInfo(f"{folder.name}/{path.name}", ZIP_TIME)
            entry.external_attr = READABLE
            entry.create_system = 3
            entry.file_size = path.stat().st_size
            with path.open("rb") as source, packed.open(entry, "w") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    return archive


def _check_target(opened: "LoadedModel", folder: Path) -> None:
    """Refuse to overwrite the model itself or a folder with other files."""
    target = folder.resolve()
    sources = [opened.folder, *([opened.checkpoint.folder] if opened.checkpoint else [])]
    if any(source.resolve().is_relative_to(target) for source in sources):
        raise ProjectError("holds_the_model", str(folder))
    if target.exists() and not target.is_dir():
        raise ProjectError("not_a_folder", str(folder))
    is_export = any((target / name).exists() for name in (MODEL_FILE, ADAPTER))
    if target.exists() and any(target.iterdir()) and not is_export:
        raise ProjectError("other_files", str(folder))
    make_folder(target.parent)


def _check_half_precision(opened: "LoadedModel") -> None:
    """Refuse half precision where a weight would become infinite."""
    for name, weight in opened.gpt.state_dict().items():
        if weight.is_floating_point() and half_dtype(weight) != torch.float16:
            raise ModelFileError(opened.folder, "too_large_for_half", name)


def _weights_size(opened: "LoadedModel", *, half: bool) -> int:
    others = read_state_dict(opened.folder / MODEL_FILE).items()
    gpt: int = sum(weight.numel() * (2 if half else 4) for weight in opened.gpt.state_dict().values())
    return gpt + sum(weight.nbytes for name, weight in others if not name.startswith(GPT_PREFIX))


def _require_space(folder: Path, weights: int, options: PublishOptions) -> None:
    require_space(folder, weights * (1 + options.safetensors + options.zip + options.ebook))


def _unshared(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy weights that share memory, which safetensors cannot store."""
    seen = set()
    unshared = {}
    for name, weight in weights.items():
        unshared[name] = weight.clone() if weight.data_ptr() in seen else weight
        seen.add(weight.data_ptr())
    return unshared


def _published(folder: Path, before: int, options: PublishOptions) -> PublishedModel:
    archive = write_zip(folder, folder.parent / f"{folder.name}.zip") if options.zip else None
    if options.ebook:
        archive = integrations.require("pack_ebook_model")(folder, folder.parent / f"{folder.name}.ebook2audiobook.zip")
    return PublishedModel(folder, archive, before, _folder_size(folder))


def _folder_size(folder: Path) -> int:
    """Return the size of the files in a folder; a link counts as what it links to."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
