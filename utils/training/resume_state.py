"""The resume state: one folder, replaced atomically, with everything needed to resume a run exactly.

``resume/`` holds ``weights.safetensors``, ``optimizer.safetensors`` with ``optimizer.json``, ``ema.safetensors`` if
there is an average, ``random.safetensors`` and, written last, ``state.json``. There are no pickles.
"""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from utils.core import folders, storage
from utils.core.errors import FileDamagedError
from utils.xtts.checkpoints import RESUME_STATE
from utils.xtts.device import found_gpus
from utils.xtts.tensors import flatten_tree, read_tensors, unflatten_tree, write_tensors

WEIGHTS = "weights.safetensors"
EMA = "ema.safetensors"
OPTIMIZER = "optimizer.safetensors"
OPTIMIZER_TREE = "optimizer.json"
RANDOM = "random.safetensors"  # also the few tensors of scheduler and guards
HEADER_BYTES = 400  # per tensor in headers and JSON

Tree = dict[str, Any]


@dataclass
class Snapshot:
    """Everything that is saved; the tensors are those of the run itself, not copies."""

    update: int  # updates done
    weights: dict[str, Tensor]  # buffers included
    optimizer: Tree
    ema: dict[str, Tensor] | None = None
    scheduler: Tree = field(default_factory=dict)
    scaler: Tree | None = None  # of fp16
    guards: Tree = field(default_factory=dict)
    random: Tree = field(default_factory=dict)  # result of ``capture_rng``
    seconds: float = 0.0  # trained, over all sessions
    settings: dict[str, Any] = field(default_factory=dict)  # that were used; version 1.1 saved none
    replaced: dict[str, Any] = field(default_factory=dict)  # what was chosen where the test of the GPU replaced it
    dataset_hash: str = ""  # of the clips and their order
    extra: Tree = field(default_factory=dict)  # state of the training loop


SCALARS = ("update", "seconds", "settings", "replaced", "dataset_hash")  # stored as plain JSON values
TREES = ("scheduler", "scaler", "guards", "random", "extra")


def save(folder: Path, snapshot: Snapshot) -> None:
    """Replace the saved state atomically: after a crash, the old or the new one can be loaded."""
    optimizer, moments = flatten_tree(snapshot.optimizer)
    trees, other = flatten_tree({name: getattr(snapshot, name) for name in TREES})
    parts = {WEIGHTS: snapshot.weights, OPTIMIZER: moments, RANDOM: other}
    if snapshot.ema is not None:
        parts[EMA] = snapshot.ema

    def fill(new: Path) -> folders.Digests:
        storage.write_atomically(new / OPTIMIZER_TREE, json.dumps(optimizer))
        return {name: write_tensors(new / name, tensors) for name, tensors in parts.items()}

    needed = sum(tensor.nbytes + HEADER_BYTES for part in parts.values() for tensor in part.values())
    about = {name: getattr(snapshot, name) for name in SCALARS} | {"trees": trees}
    folders.write_folder(folder, RESUME_STATE, fill, about, needed=needed)


def load(folder: Path) -> Snapshot:
    """Load the newest complete state, verify every byte, and remove leftovers of an interrupted save."""
    if not can_resume(folder):
        raise FileDamagedError(folder / RESUME_STATE, "missing")
    folders.repair(folder, RESUME_STATE)
    about = folders.read_manifest(folder, RESUME_STATE)
    try:
        folders.verify_hashes(folder, RESUME_STATE)
        optimizer = storage.read_json(folder / OPTIMIZER_TREE)
        return Snapshot(
            weights=read_tensors(folder / WEIGHTS),
            optimizer=unflatten_tree(optimizer, read_tensors(folder / OPTIMIZER)),
            ema=read_tensors(folder / EMA) if EMA in about["files"] else None,
            **{name: about[name] for name in SCALARS if name in about},
            **unflatten_tree(about["trees"], read_tensors(folder / RANDOM)),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise FileDamagedError(folder / RESUME_STATE) from error


def can_resume(folder: Path) -> bool:
    """Tell whether there is a state to resume from, without reading or changing it."""
    return folders.newest_complete(folder, RESUME_STATE) is not None


def capture_rng() -> Tree:
    """Return the state of every random number generator that training may use."""
    name, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    version, numbers, next_gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        **{kind: [gpu.get_rng_state(n) for n in range(gpu.device_count())] for kind, gpu in found_gpus().items()},
        "numpy": (str(name), torch.from_numpy(np.asarray(keys, np.int64)), int(position), int(has_gauss), float(gauss)),
        "python": (version, torch.tensor(numbers, dtype=torch.int64), next_gauss),
    }


def restore_rng(states: Tree) -> None:
    """Restore the result of ``capture_rng``; missing GPUs are skipped."""
    torch.set_rng_state(states["torch"])
    for kind, gpu in found_gpus().items():
        for number, state in enumerate(states.get(kind, [])[: gpu.device_count()]):
            gpu.set_rng_state(state, number)
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    version, numbers, next_gauss = states["python"]
    random.setstate((version, tuple(numbers.tolist()), next_gauss))
