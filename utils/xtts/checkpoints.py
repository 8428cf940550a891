"""The checkpoints that people choose from: a folder each, with half-precision weights and all that is known of them.

``checkpoints/step_N/`` holds ``model.safetensors`` (the weights under coqui's names, or an adapter alone), the
vocabulary with its text settings, and ``checkpoint.json``. ``checkpoints/best.json`` names the best one. What a person
can hear of it lies in ``samples/step_N/``.
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
ADAPTER, ADAPTER_CONFIG = "adapter.safetensors", "adapter.json"  # of LoRA, beside the merged weights or alone
PREFIX = "step_"
LORA_PREFIX = "lora_"  # in the name of every weight of an adapter
HALF = 2  # bytes of a number
SMALL_FILES = 4 << 20  # a vocabulary and its settings

Which = int | Literal["best", "newest"]


@dataclass(frozen=True)
class CheckpointInfo:
    """What is known of a checkpoint.

    Attributes:
        step: Updates it was trained for.
        epoch: Passes over the clips.
        train_loss: Running loss while training.
        eval_loss: Loss over the evaluation clips, weighted.
        eval_text: That of the text alone.
        eval_audio: That of the audio alone.
        time: When it was written, in seconds since 1970.
        base: The folder of the model that the run started from.
        base_fingerprint: Hash of that model.
        config_hash: Hash of the settings.
        vocabulary_hash: Hash of the vocabulary.
        is_average: Whether the weights are the running average.
        settings: The settings.
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
    """One checkpoint on disk.

    Attributes:
        folder: Where it lies.
        step: Updates, as the folder says.
        info: What is known about it; None when it is damaged.
        size: Bytes on disk.
        is_best: Whether it is marked as the best of its run.
        error: What is wrong with it; empty when nothing is.
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
        """List the recordings of it."""
        return sorted((self.run / SAMPLES / self.folder.name).glob("*.wav"))


def checkpoint_folder(run: Path, step: int) -> Path:
    """Return where the checkpoint of a step lies."""
    return run / FOLDER / f"{PREFIX}{step}"


def write(
    run: Path, state: "Mapping[str, Tensor]", about: CheckpointInfo, fill: Callable[[Path], object] | None = None
) -> Path:
    """Write a checkpoint, whole or not at all; one of the same step is replaced.

    Args:
        run: Folder of the run.
        state: Weights under coqui's names, or those of an adapter, which are small and stay as they are.
        about: What is known of it.
        fill: Writes what belongs to it into the folder, as ``Tokenizer.save`` does.
    """
    from utils.xtts.tensors import half_dtype, write_tensors

    def fill_all(new: Path) -> Digests:
        if fill:
            fill(new)
        return {MODEL: write_tensors(new / MODEL, state, half_dtype)}

    target = checkpoint_folder(run, about.step)
    needed = sum(tensor.numel() for tensor in state.values()) * HALF + SMALL_FILES
    known = dataclasses.asdict(about) | {"time": about.time or time.time()}
    return folders.write_folder(target, MANIFEST, fill_all, {"about": known}, needed=needed)


def list_checkpoints(run: Path) -> list[Checkpoint]:
    """List the checkpoints of a run, newest first; a damaged one says why, and nothing is raised."""
    best = best_step(run)
    found = ((path, path.name.removeprefix(PREFIX)) for path in (run / FOLDER).glob(f"{PREFIX}*"))
    steps = {int(number): path for path, number in found if number.isdecimal()}
    return [_look(steps[step], step, is_best=step == best) for step in sorted(steps, reverse=True)]


def find(run: Path, which: Which) -> Checkpoint:
    """Find a checkpoint that is whole, or say which there are."""
    known = list_checkpoints(run)
    whole = [one for one in known if not one.error]
    for one in whole:
        if which in {one.step, "newest"} or (which == "best" and one.is_best):
            return one
    for one in known:
        if which == one.step:
            raise DamagedError(one.error, hint="Choose another checkpoint.")
    there = ", ".join(str(one.step) for one in whole) or "none"
    raise RunError(f"{run.name} has no checkpoint {which}.", hint=f"There are: {there}.")


def mark_best(run: Path, step: int, loss: float | None = None) -> None:
    """Name the best checkpoint of a run."""
    make_folder(run / FOLDER)
    write_atomically(run / FOLDER / BEST, json.dumps({"step": step, "loss": loss}))


def best_step(run: Path) -> int | None:
    """Return the step of the best checkpoint, if one is named."""
    try:
        step = read_json(run / FOLDER / BEST)["step"]
    except (OSError, ValueError, TypeError, KeyError):  # none yet, or spoiled: the next evaluation names it again
        return None
    return step if isinstance(step, int) else None


def prune(run: Path, keep: int) -> list[int]:
    """Delete all but the newest and the one marked as best; return the steps that are gone.

    Args:
        run: Folder of the run.
        keep: How many of the newest stay; one at least. Damaged ones do not count and are left to people.
    """
    folders.repair_all(run / FOLDER, MANIFEST)
    whole = [one for one in list_checkpoints(run) if not one.error]
    staying = {one.step for one in whole[: max(1, keep)]} | {best_step(run)}
    gone = []
    for one in whole:
        if one.step not in staying:
            with contextlib.suppress(StorageError):  # Windows keeps what another program has open; the next time then
                delete(one)
                gone.append(one.step)
    return gone


def delete(checkpoint: Checkpoint) -> None:
    """Delete a checkpoint; its recordings stay."""
    folders.remove_folder(checkpoint.folder)


def read_state(folder: Path, kind: "torch.dtype | None" = None) -> "dict[str, Tensor]":
    """Read the weights of a checkpoint after comparing their hash; as they are, or in another number format."""
    from utils.xtts.tensors import read_tensors

    folders.verify_hashes(folder, MANIFEST, [MODEL])
    state = read_tensors(folder / MODEL)
    if kind is not None:
        for name, tensor in state.items():
            if tensor.is_floating_point():
                state[name] = tensor.to(kind)  # one after the other, so that both never lie in memory
    return state


def _look(folder: Path, step: int, *, is_best: bool) -> Checkpoint:
    size = _size(folder)
    try:
        about = _checker().validate_python(folders.read_manifest(folder, MANIFEST).get("about"))
    except DamagedError as error:
        return Checkpoint(folder, step, None, size, is_best, error.message)
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{folder / MANIFEST}: {' '.join(map(str, first['loc']))} {first['msg']}"
        return Checkpoint(folder, step, None, size, is_best, reason)
    return Checkpoint(folder, step, about, size, is_best)


def _size(folder: Path) -> int:
    """Add up the files of a folder, which may be deleted at this moment."""
    try:
        return sum(path.stat().st_size for path in folder.iterdir())
    except OSError:
        return 0


@functools.cache
def _checker() -> TypeAdapter[CheckpointInfo]:
    return TypeAdapter(CheckpointInfo)
