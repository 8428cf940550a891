"""Checkpoints: one folder each, with half-precision weights and their metadata.

``checkpoints/step_N/`` holds ``model.safetensors`` (the weights under coqui's names, or only an adapter), the
vocabulary with its text settings, and ``checkpoint.json``. ``checkpoints/best.json`` names the best checkpoint. Its
spoken samples are in ``samples/step_N/``.
"""

import contextlib
import dataclasses
import functools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter, ValidationError

from utils.core import folders
from utils.core.errors import RunError, StorageError
from utils.core.folders import DamagedError, Digests
from utils.core.storage import make_folder, read_json, write_atomically

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FOLDER, SAMPLES = "checkpoints", "samples"
RESUME_FOLDER, RESUME_STATE = "resume", "state.json"  # written by utils/training/resume_state.py
MODEL, MANIFEST, BEST = "model.safetensors", "checkpoint.json", "best.json"
ADAPTER, ADAPTER_CONFIG = "adapter.safetensors", "adapter.json"  # of LoRA, next to the merged weights or alone
PREFIX = "step_"
LORA_PREFIX = "lora_"  # in the name of every weight of an adapter
HALF_BYTES = 2
OTHER_FILES = 4 << 20  # bytes of a vocabulary and its settings

Which = int | Literal["best", "newest"]


@dataclass(frozen=True)
class CheckpointInfo:
    """Metadata of a checkpoint.

    Attributes:
        step: Updates trained.
        epoch: Epochs trained.
        train_loss: Running mean of the training loss.
        eval_loss: Weighted evaluation loss.
        eval_text: Evaluation loss of the text.
        eval_audio: Evaluation loss of the audio.
        time: Unix time when it was written.
        base: Folder of the model that the run started from.
        base_fingerprint: Hash of that model.
        config_hash: Hash of the settings.
        vocabulary_hash: Hash of the vocabulary.
        is_average: Whether the weights are the moving average.
        settings: Settings of the run.
    """

    step: int
    epoch: float = 0.0
    train_loss: float | None = None
    eval_loss: float | None = None
    eval_text: float | None = None
    eval_audio: float | None = None
    time: float = 0.0
    base: str = ""
    base_fingerprint: str = ""
    config_hash: str = ""
    vocabulary_hash: str = ""
    is_average: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk.

    Attributes:
        folder: Its folder.
        step: Updates trained, from the folder's name.
        info: Its metadata; None if it is damaged.
        size: Bytes on disk.
        is_best: Whether it is the best of its run.
        error: What is wrong with it; empty if it is intact.
    """

    folder: Path
    step: int
    info: CheckpointInfo | None
    size: int
    is_best: bool = False
    error: str = ""

    @property
    def run(self) -> Path:
        """Return the folder of its run."""
        return self.folder.parent.parent

    @property
    def samples(self) -> list[Path]:
        """Return its spoken samples."""
        return sorted((self.run / SAMPLES / self.folder.name).glob("*.wav"))


def checkpoint_folder(run: Path, step: int) -> Path:
    """Return the folder of a step's checkpoint."""
    return run / FOLDER / f"{PREFIX}{step}"


def write(
    run: Path, state: "Mapping[str, Tensor]", info: CheckpointInfo, fill: Callable[[Path], object] | None = None
) -> Path:
    """Write a checkpoint atomically; one of the same step is replaced.

    Args:
        run: Folder of the run.
        state: Weights under coqui's names, or those of an adapter.
        info: Its metadata.
        fill: Writes other files into the folder, such as ``Tokenizer.save``.
    """
    from utils.xtts.tensors import half_dtype, write_tensors

    def fill_all(new: Path) -> Digests:
        if fill:
            fill(new)
        return {MODEL: write_tensors(new / MODEL, state, half_dtype)}

    target = checkpoint_folder(run, info.step)
    needed = sum(tensor.numel() for tensor in state.values()) * HALF_BYTES + OTHER_FILES
    known = dataclasses.asdict(info) | {"time": info.time or time.time()}
    return folders.write_folder(target, MANIFEST, fill_all, {"about": known}, needed=needed)


def list_checkpoints(run: Path) -> list[Checkpoint]:
    """List the checkpoints of a run, newest first; damaged ones have an ``error``."""
    best = best_step(run)
    folders_by_step = ((path, path.name.removeprefix(PREFIX)) for path in (run / FOLDER).glob(f"{PREFIX}*"))
    steps = {int(number): path for path, number in folders_by_step if number.isdecimal()}
    return [_read_checkpoint(steps[step], step, is_best=step == best) for step in sorted(steps, reverse=True)]


def find(run: Path, which: Which) -> Checkpoint:
    """Find an intact checkpoint, or raise an error that lists the existing ones."""
    known = list_checkpoints(run)
    intact = [one for one in known if not one.error]
    for one in intact:
        if which in {one.step, "newest"} or (which == "best" and one.is_best):
            return one
    for one in known:
        if which == one.step:
            raise DamagedError(one.error, hint="Choose another checkpoint.")
    existing = ", ".join(str(one.step) for one in intact) or "none"
    raise RunError(f"{run.name} has no checkpoint {which}.", hint=f"Existing checkpoints: {existing}.")


def mark_best(run: Path, step: int, loss: float | None = None) -> None:
    """Mark the best checkpoint of a run."""
    make_folder(run / FOLDER)
    write_atomically(run / FOLDER / BEST, json.dumps({"step": step, "loss": loss}))


def best_step(run: Path) -> int | None:
    """Return the step of the best checkpoint, if one is marked."""
    try:
        step = read_json(run / FOLDER / BEST)["step"]
    except (OSError, ValueError, TypeError, KeyError):  # none yet, or damaged: the next evaluation marks it again
        return None
    return step if isinstance(step, int) else None


def prune(run: Path, keep: int) -> list[int]:
    """Delete all but the newest ``keep`` checkpoints (at least one) and the best; return the deleted steps.

    Damaged checkpoints do not count and are not deleted.
    """
    folders.repair_all(run / FOLDER, MANIFEST)
    intact = [one for one in list_checkpoints(run) if not one.error]
    kept_steps = {one.step for one in intact[: max(1, keep)]} | {best_step(run)}
    deleted = []
    for one in intact:
        if one.step not in kept_steps:
            with contextlib.suppress(
                StorageError
            ):  # Windows keeps files that another program has open; retried next time
                delete(one)
                deleted.append(one.step)
    return deleted


def delete(checkpoint: Checkpoint) -> None:
    """Delete a checkpoint; its samples are kept."""
    folders.remove_folder(checkpoint.folder)


def read_state(folder: Path, kind: "torch.dtype | None" = None) -> "dict[str, Tensor]":
    """Read the weights of a checkpoint after verifying their hash, optionally converted to a dtype."""
    from utils.xtts.tensors import read_tensors

    folders.verify_hashes(folder, MANIFEST, [MODEL])
    state = read_tensors(folder / MODEL)
    if kind is not None:
        for name, tensor in state.items():
            if tensor.is_floating_point():
                state[name] = tensor.to(kind)  # one at a time, so that memory never holds both states
    return state


def _read_checkpoint(folder: Path, step: int, *, is_best: bool) -> Checkpoint:
    size = _size(folder)
    try:
        info = _validator().validate_python(folders.read_manifest(folder, MANIFEST).get("about"))
    except DamagedError as error:
        return Checkpoint(folder, step, None, size, is_best, error.message)
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{folder / MANIFEST}: {' '.join(map(str, first['loc']))} {first['msg']}"
        return Checkpoint(folder, step, None, size, is_best, reason)
    return Checkpoint(folder, step, info, size, is_best)


def _size(folder: Path) -> int:
    """Return the size of a folder that may be deleted at the same time."""
    try:
        return sum(path.stat().st_size for path in folder.iterdir())
    except OSError:
        return 0


@functools.cache
def _validator() -> TypeAdapter[CheckpointInfo]:
    return TypeAdapter(CheckpointInfo)
