"""Checkpoints: one folder each, with half-precision weights and their metadata.

``checkpoints/step_N/`` holds ``model.safetensors`` (the weights under coqui's names, or only an adapter), the
vocabulary with its text settings, and ``checkpoint.json``, which also says whether it was the best so far. Its
spoken samples are in ``samples/step_N/``.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter, ValidationError

from utils.core import folders, storage
from utils.core.errors import DamagedError, FileDamagedError, StorageError
from utils.core.folders import Digests
from utils.xtts.facts import CheckpointError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FOLDER = "checkpoints"
SAMPLES = "samples"
RESUME_FOLDER, RESUME_STATE = "resume", "state.json"  # written by utils/training/resume_state.py
MODEL = "model.safetensors"
MANIFEST = "checkpoint.json"
BEST_1_1 = "best.json"  # of version 1.1, without a digest: the step of the best checkpoint
WITHOUT_EMA = "model_without_ema.safetensors"  # beside averaged weights: those of the training itself
ADAPTER, ADAPTER_CONFIG = "adapter.safetensors", "adapter.json"  # of LoRA, next to the merged weights or alone
PREFIX = "step_"
TRAINED_FILES = (MANIFEST, MODEL, ADAPTER, ADAPTER_CONFIG)  # one of them is in a checkpoint or adapter
SCORES = "scores.json"  # beside the samples
LORA_PREFIX = "lora_"  # in the name of every weight of an adapter
HALF_BYTES = 2
OTHER_FILES = 4 << 20  # bytes of a vocabulary and its settings

Which = int | Literal["best", "newest"]


@dataclass(frozen=True)
class CheckpointInfo:
    """Metadata of a checkpoint."""

    step: int
    epoch: float = 0.0
    train_loss: float | None = None  # running mean
    eval_loss: float | None = None  # weighted sum of the two losses below
    eval_text: float | None = None
    eval_audio: float | None = None
    time: float = 0.0  # Unix time when it was written
    base: str = ""  # folder of the model that the run started from
    base_fingerprint: str = ""
    vocabulary_hash: str = ""
    is_average: bool = False  # whether the weights are the moving average
    was_best: bool = False  # whether no earlier checkpoint of the run was better
    settings: dict[str, Any] = field(default_factory=dict)  # that the run used
    replaced: dict[str, Any] = field(default_factory=dict)  # what was chosen where the test of the GPU replaced it


INFO = TypeAdapter(CheckpointInfo)


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint on disk."""

    folder: Path
    step: int
    info: CheckpointInfo | None  # None if it is damaged
    size: int
    is_best: bool = False
    error: DamagedError | None = None  # what is wrong with it

    def require_info(self) -> CheckpointInfo:
        """Return its metadata, or raise what is wrong with it."""
        if self.info is None:
            raise self.error or FileDamagedError(self.folder)
        return self.info

    @property
    def run(self) -> Path:
        return self.folder.parent.parent

    @property
    def scores(self) -> dict[str, float]:
        """Scores of its spoken sentences."""
        return read_scores(self.run, self.step)

    @property
    def samples(self) -> list[Path]:
        return sorted((self.run / SAMPLES / self.folder.name).glob("*.wav"))


def write_scores(run: Path, step: int, scores: Mapping[str, float]) -> None:
    folder = samples_folder(run, step)
    storage.make_folder(folder)
    storage.write_document(folder / SCORES, dict(scores))


def read_scores(run: Path, step: int) -> dict[str, float]:
    """Return the scores of a step; empty if there are none."""
    scores = storage.read_object(samples_folder(run, step) / SCORES)
    return {name: float(value) for name, value in scores.items() if isinstance(value, int | float)}


def samples_folder(run: Path, step: int) -> Path:
    return run / SAMPLES / f"{PREFIX}{step}"


def checkpoint_folder(run: Path, step: int) -> Path:
    return run / FOLDER / f"{PREFIX}{step}"


def write(
    run: Path, state: "Mapping[str, Tensor]", info: CheckpointInfo, fill: Callable[[Path], object] | None = None
) -> Path:
    """Write a checkpoint atomically; one of the same step is replaced.

    ``state`` has the weights under coqui's names, or those of an adapter. ``fill`` writes other files into the folder.
    """
    from utils.xtts.tensors import half_dtype, write_tensors

    def fill_all(new: Path) -> Digests:
        if fill:
            fill(new)
        return {MODEL: write_tensors(new / MODEL, state, half_dtype)}

    needed = sum(tensor.numel() for tensor in state.values()) * HALF_BYTES + OTHER_FILES
    about = dataclasses.asdict(info) | {"time": info.time or time.time()}
    return folders.write_folder(checkpoint_folder(run, info.step), MANIFEST, fill_all, {"about": about}, needed=needed)


def list_checkpoints(run: Path) -> list[SavedCheckpoint]:
    """List the checkpoints of a run, newest first; damaged ones have an ``error``."""
    numbers = ((path, path.name.removeprefix(PREFIX)) for path in (run / FOLDER).glob(f"{PREFIX}*"))
    steps = {int(number): path for path, number in numbers if number.isdecimal()}
    found = [_read_checkpoint(steps[step], step) for step in sorted(steps, reverse=True)]
    best = next((each.step for each in found if each.info and each.info.was_best), None) or _best_of_1_1(run)
    return [dataclasses.replace(each, is_best=each.step == best) for each in found]


def find(run: Path, which: Which) -> SavedCheckpoint:
    """Find an intact checkpoint, or raise an error that lists the existing ones."""
    checkpoints = list_checkpoints(run)
    intact = [checkpoint for checkpoint in checkpoints if not checkpoint.error]
    for checkpoint in intact:
        if which in {checkpoint.step, "newest"} or (which == "best" and checkpoint.is_best):
            return checkpoint
    for checkpoint in checkpoints:
        if which == checkpoint.step:
            checkpoint.require_info()
    existing = ", ".join(str(checkpoint.step) for checkpoint in intact) or "none"
    raise CheckpointError(Path(run.name, str(which)), "not_found", existing)


def mark_best(run: Path, step: int) -> None:
    """Note in a checkpoint that it is better than all earlier ones of its run."""
    folder = checkpoint_folder(run, step)
    manifest = folders.read_manifest(folder, MANIFEST)
    manifest["about"]["was_best"] = True
    folders.write_manifest(folder / MANIFEST, manifest)


def best_step(run: Path) -> int | None:
    """Return the step of the best checkpoint, if one is marked."""
    return next((checkpoint.step for checkpoint in list_checkpoints(run) if checkpoint.is_best), None)


def _best_of_1_1(run: Path) -> int | None:
    step = storage.read_object(run / FOLDER / BEST_1_1).get("step")
    return step if isinstance(step, int) else None


def prune(run: Path, keep: int) -> list[int]:
    """Delete all but the newest ``keep`` checkpoints (at least one) and the best; return the deleted steps.

    Damaged checkpoints do not count and are not deleted. What version 1.1 marked as best has no digest: if nothing
    confirms it, nothing is deleted, and the checkpoint with the lowest loss stays too.
    """
    folders.repair_all(run / FOLDER, MANIFEST)
    intact = [checkpoint for checkpoint in list_checkpoints(run) if not checkpoint.error]
    spared = {checkpoint.step for checkpoint in intact if checkpoint.is_best}
    if (run / FOLDER / BEST_1_1).exists() and not any(each.info and each.info.was_best for each in intact):
        if not spared:
            return []
        losses = {each.info.eval_loss: each.step for each in intact if each.info and each.info.eval_loss is not None}
        spared |= {losses[min(losses)]} if losses else set()
    deleted = []
    for checkpoint in intact[max(1, keep) :]:
        if checkpoint.step not in spared:
            with contextlib.suppress(StorageError):  # a program on Windows has it open; retried next time
                delete(checkpoint)
                deleted.append(checkpoint.step)
    return deleted


def delete(checkpoint: SavedCheckpoint) -> None:
    """Delete a checkpoint; its samples are kept."""
    folders.remove_folder(checkpoint.folder)


def verify(folder: Path, weights: str) -> None:
    """Compare the weights, the vocabulary and the settings of a checkpoint with their hashes."""
    names = folders.read_manifest(folder, MANIFEST)["files"]
    others = {MODEL, ADAPTER, WITHOUT_EMA} - {weights}
    folders.verify_hashes(folder, MANIFEST, [name for name in names if name not in others])


def read_state(folder: Path, kind: "torch.dtype | None" = None, weights: str = MODEL) -> "dict[str, Tensor]":
    """Read the weights of a checkpoint after verifying their hash, optionally converted to a dtype."""
    from utils.xtts.tensors import read_tensors

    verify(folder, weights)
    state = read_tensors(folder / weights)
    if kind is not None:
        for name, tensor in state.items():
            if tensor.is_floating_point():
                state[name] = tensor.to(kind)  # one at a time, so that memory never holds both states
    return state


def read_info(folder: Path) -> tuple[CheckpointInfo, dict[str, str]]:
    """Return the metadata of a checkpoint, and the hashes of its files."""
    manifest = folders.read_manifest(folder, MANIFEST)
    try:
        info = INFO.validate_python(manifest.get("about"))
    except ValidationError as error:
        raise FileDamagedError(folder / MANIFEST, "format") from error
    return info, {name: str(file["sha256"]) for name, file in manifest["files"].items()}


def _read_checkpoint(folder: Path, step: int) -> SavedCheckpoint:
    info = None
    error = None
    try:
        info, _ = read_info(folder)
    except DamagedError as damage:
        error = damage
    try:
        size = sum(path.stat().st_size for path in folder.iterdir())
    except OSError:  # it is being deleted
        size = 0
    return SavedCheckpoint(folder, step, info, size, error=error)
