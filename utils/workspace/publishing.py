"""Making a model ready to be given away: small, whole, readable by plain coqui-tts, and described."""

import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from utils.core.errors import RunError, StorageError
from utils.core.folders import require_space
from utils.core.storage import atomic_writer, make_folder
from utils.xtts.checkpoints import ADAPTER, ADAPTER_CONFIG
from utils.xtts.export import OURS, write_ready
from utils.xtts.files import DVAE_FILE, MEL_FILE, MODEL_FILE, ModelFileError
from utils.xtts.folders import replacing_folder
from utils.xtts.model import GPT_PREFIX
from utils.xtts.state_dict import read_state_dict
from utils.xtts.tensors import half_dtype, read_tensors, write_tensors

if TYPE_CHECKING:
    from utils.speech.open_model import Opened

CARD, SAFE_FILE = "README.md", "model.safetensors"
ALL = (*OURS, CARD, SAFE_FILE, ADAPTER, ADAPTER_CONFIG)
FOR_TRAINING = (DVAE_FILE, MEL_FILE)  # speech needs neither
KNOWN = ("run", "step", "epoch", "train_loss", "eval_loss", "is_average")  # of what is known: no paths of this computer
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold: same files, same zip
READABLE = 0o100644 << 16
BLOCK = 1 << 20


@dataclass(frozen=True)
class PublishOptions:
    """What shall be in the folder.

    Attributes:
        half: Store the GPT in half the size.
        for_training: Keep the files that only a further training needs.
        safetensors: Store the weights a second time, in a file that cannot hold programs.
        zip: Pack all of it into one file beside the folder.
    """

    half: bool = True
    for_training: bool = False
    safetensors: bool = False
    zip: bool = False

    @property
    def copies(self) -> int:
        """Return how often the weights will lie on the disk."""
        return 1 + self.safetensors + self.zip


@dataclass(frozen=True)
class PublishedModel:
    """What was written.

    Attributes:
        folder: Where it lies.
        archive: All of it in one file; None when that was not asked for.
        before: Bytes of the model as it was.
        after: Bytes of the folder.
    """

    folder: Path
    archive: Path | None
    before: int
    after: int


def publish(opened: "Opened", folder: Path, parts: PublishOptions, card: str) -> PublishedModel:
    """Write a model that others can use; what was there before stays until this one is complete.

    Args:
        opened: The model, its weights merged and averaged as they shall be.
        folder: Where.
        parts: What shall be in it.
        card: The text about it.
    """
    before = _bytes_of(_source(opened))
    _refuse_own(opened, folder)
    if parts.half:
        _refuse_large(opened)
    require_space(folder, parts.copies * _weight_bytes(opened, half=parts.half))
    with replacing_folder(folder, ALL) as new:
        state = opened.gpt.state_dict()
        reading, voice = opened.tokenizer, opened.reference
        whole = write_ready(new / "whole", opened.folder, state, reading, voice, _known(opened), half=parts.half)
        for path in whole.iterdir():
            if parts.for_training or path.name not in FOR_TRAINING:
                path.rename(new / path.name)
        shutil.rmtree(whole)
        if parts.safetensors:
            write_tensors(new / SAFE_FILE, _apart(read_state_dict(new / MODEL_FILE)))
        (new / CARD).write_text(card, encoding="utf-8")
    return _packed(folder, before, zipped=parts.zip)


def publish_adapter(opened: "Opened", folder: Path, parts: PublishOptions, card: str) -> PublishedModel:
    """Write the adapter of a checkpoint alone, with its vocabulary; whoever has the base can put them together."""
    trained = opened.checkpoint.folder if opened.checkpoint else None
    if trained is None or not (trained / ADAPTER).is_file():
        raise RunError(
            f"{opened.name} has no adapter of its own.",
            hint="Name a checkpoint of a run with enable_lora, or leave --adapter out.",
        )
    _refuse_own(opened, folder)
    state = read_tensors(trained / ADAPTER)
    require_space(folder, sum(weight.nbytes for weight in state.values()) * parts.copies)
    with replacing_folder(folder, ALL) as new:
        write_tensors(new / ADAPTER, state, half_dtype if parts.half else None)
        shutil.copyfile(trained / ADAPTER_CONFIG, new / ADAPTER_CONFIG)
        opened.tokenizer.save(new)
        (new / CARD).write_text(card, encoding="utf-8")
    return _packed(folder, _bytes_of(trained), zipped=parts.zip)


def pack(folder: Path, archive: Path) -> Path:
    """Pack the files of a folder as they are; the same files make the same archive, byte for byte."""
    with atomic_writer(archive) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as packed:
        for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
            entry = zipfile.ZipInfo(f"{folder.name}/{path.name}", LONG_AGO)
            entry.external_attr, entry.create_system, entry.file_size = READABLE, 3, path.stat().st_size
            with path.open("rb") as source, packed.open(entry, "w") as room:
                shutil.copyfileobj(source, room, BLOCK)
    return archive


def _packed(folder: Path, before: int, *, zipped: bool) -> PublishedModel:
    archive = folder.parent / f"{folder.name}.zip"
    return PublishedModel(folder, pack(folder, archive) if zipped else None, before, _bytes_of(folder))


def _source(opened: "Opened") -> Path:
    return opened.checkpoint.folder if opened.checkpoint else opened.folder


def _refuse_own(opened: "Opened", folder: Path) -> None:
    """Refuse to write over what is read, or into a place that holds somebody's other things."""
    target = folder.resolve()
    for own in {_source(opened).resolve(), opened.folder.resolve()}:
        if target == own or own.is_relative_to(target):
            raise StorageError(f"{folder} holds the model itself.", hint="Choose another folder with --out.")
    if target.exists() and not target.is_dir():
        raise StorageError(f"{folder} is a file.", hint="Choose a folder with --out.")
    if (
        target.exists()
        and any(target.iterdir())
        and not any((target / name).exists() for name in (MODEL_FILE, ADAPTER))
    ):
        raise StorageError(f"{folder} holds other things than a model.", hint="Choose a new folder with --out.")
    make_folder(target.parent)


def _refuse_large(opened: "Opened") -> None:
    """Refuse half precision where it would make infinity of a weight."""
    for name, weight in opened.gpt.state_dict().items():
        if weight.is_floating_point() and half_dtype(weight) != torch.float16:
            raise ModelFileError(f"{name} is too large for half precision.", hint="Export it with --no-half.")


def _weight_bytes(opened: "Opened", *, half: bool) -> int:
    wide = 2 if half else 4
    others = read_state_dict(opened.folder / MODEL_FILE).items()
    own: int = sum(weight.numel() * wide for weight in opened.gpt.state_dict().values())
    return own + sum(weight.nbytes for name, weight in others if not name.startswith(GPT_PREFIX))


def _known(opened: "Opened") -> dict[str, object]:
    """Return what may be told of a model; a finished one goes on naming the base that it was trained from."""
    about = opened.about
    known: dict[str, object] = {name: about[name] for name in KNOWN if name in about}
    if opened.checkpoint is None:
        known |= {name: about[name] for name in ("base", "base_fingerprint") if name in about}
    return known


def _apart(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give each weight a place of its own, because other programs know nothing of two names for one."""
    seen: set[int] = set()
    found = {}
    for name, weight in weights.items():
        found[name] = weight.clone() if weight.data_ptr() in seen else weight
        seen.add(weight.data_ptr())
    return found


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
