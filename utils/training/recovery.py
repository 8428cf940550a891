"""Continue a run from a checkpoint when its resume state is damaged.

A checkpoint holds no optimizer state, so the optimizer is reset. The learning rate continues where it was.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from utils.core.errors import AmharicTtsError
from utils.core.storage import DamagedError, verify_hashes
from utils.training.loop import TrainState
from utils.xtts import checkpoints
from utils.xtts.adapters import adapted_layers, load_adapter, merged_state
from utils.xtts.checkpoints import ADAPTER, ADAPTER_CONFIG, MANIFEST, CheckpointInfo
from utils.xtts.tensors import read_tensors


def load_newest_checkpoint(run: Path, gpt: nn.Module, settings: str) -> CheckpointInfo:
    """Load the newest intact checkpoint into a model, verifying every byte; return what is known about it.

    Args:
        run: Folder of the run.
        gpt: The model, with its adapters if it has any.
        settings: Hash of the settings that the checkpoint must have been trained with.
    """
    errors = []
    for info, folder in _intact(run):
        try:
            if info.config_hash != settings:
                raise DamagedError(f"{folder} was trained with different settings.")
            _load(gpt, folder)
        except AmharicTtsError as error:
            errors.append(error.message)
        else:
            return info
    raise DamagedError(
        f"No checkpoint of {run.name} can be used instead. {' '.join(errors)}".rstrip(), hint="Start a new run."
    )


def train_state(run: Path, info: CheckpointInfo) -> TrainState:
    """Return the progress of a run that continues from a checkpoint."""
    best = next((one.info for one in checkpoints.list_checkpoints(run) if one.is_best and one.step <= info.step), None)
    losses = {"text": info.eval_text, "audio": info.eval_audio, "loss": info.eval_loss}
    known = {name: value for name, value in losses.items() if value is not None}
    return TrainState(
        update=info.step,
        train_loss=info.train_loss,
        best_update=best.step if best else 0,
        best_loss=best.eval_loss if best else None,
        evaluated=info.step if known else 0,
        eval_losses=known,
    )


def advance(schedule: LRScheduler, update: int) -> None:
    """Advance a new schedule by a number of updates."""
    shares: list[Callable[[int], float]] = schedule.lr_lambdas  # type: ignore[attr-defined]  # all of ours have them
    rates = [rate * share(update) for rate, share in zip(schedule.base_lrs, shares, strict=True)]
    schedule.load_state_dict(schedule.state_dict() | {"last_epoch": update, "_last_lr": rates})
    for group, rate in zip(schedule.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


def _intact(run: Path) -> Iterator[tuple[CheckpointInfo, Path]]:
    return ((one.info, one.folder) for one in checkpoints.list_checkpoints(run) if one.info is not None)


@torch.no_grad()
def _load(gpt: nn.Module, folder: Path) -> None:
    if any(adapted_layers(gpt)):
        verify_hashes(folder, MANIFEST, [ADAPTER, ADAPTER_CONFIG])
        load_adapter(gpt, read_tensors(folder / ADAPTER))
        return
    state: dict[str, Tensor] = checkpoints.read_state(folder, torch.float32)
    expected = merged_state(gpt)
    if {name: part.shape for name, part in expected.items()} != {name: part.shape for name, part in state.items()}:
        raise DamagedError(f"{folder} holds the weights of a different model.")
    gpt.load_state_dict(state, strict=False)  # a weight with two names is stored under one of them
