"""Going on from a checkpoint when the state that a run was saved in is damaged: its weights are the same.

A checkpoint holds no optimiser, so that begins anew; the learning rate goes on where it was. What the damage cost is
told, never passed over.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from utils.core.errors import AmharicTtsError
from utils.core.folders import DamagedError, verify_hashes
from utils.training.loop import TrainState
from utils.xtts import checkpoints
from utils.xtts.adapters import adapted_layers, load_adapter, merged_state
from utils.xtts.checkpoints import ADAPTER, ADAPTER_CONFIG, MANIFEST, CheckpointInfo
from utils.xtts.tensors import read_tensors


def newest_weights(run: Path, gpt: nn.Module, settings: str) -> CheckpointInfo:
    """Fill a model with the newest checkpoint that is whole, every byte checked; return what is known of it.

    Args:
        run: Folder of the run.
        gpt: The model, with its adapters where it has some.
        settings: Hash of the settings that the checkpoint has to have been trained with.
    """
    faults = []
    for about, folder in _whole(run):
        try:
            if about.config_hash != settings:
                raise DamagedError(f"{folder} was trained with other settings.")
            _fill(gpt, folder)
        except AmharicTtsError as error:
            faults.append(error.message)
        else:
            return about
    raise DamagedError(
        f"No checkpoint of {run.name} can take its place either. {' '.join(faults)}".rstrip(), hint="Start a new run."
    )


def position(run: Path, about: CheckpointInfo) -> TrainState:
    """Return where a run stands that goes on from a checkpoint."""
    best = next((one.info for one in checkpoints.list_checkpoints(run) if one.is_best and one.step <= about.step), None)
    losses = {"text": about.eval_text, "audio": about.eval_audio, "loss": about.eval_loss}
    known = {name: value for name, value in losses.items() if value is not None}
    return TrainState(
        update=about.step,
        train_loss=about.train_loss,
        best_update=best.step if best else 0,
        best_loss=best.eval_loss if best else None,
        evaluated=about.step if known else 0,
        eval_losses=known,
    )


def wind(schedule: LRScheduler, update: int) -> None:
    """Put a fresh schedule where it stands after some updates."""
    shares: list[Callable[[int], float]] = schedule.lr_lambdas  # type: ignore[attr-defined]  # all of ours have them
    rates = [rate * share(update) for rate, share in zip(schedule.base_lrs, shares, strict=True)]
    schedule.load_state_dict(schedule.state_dict() | {"last_epoch": update, "_last_lr": rates})
    for group, rate in zip(schedule.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


def _whole(run: Path) -> Iterator[tuple[CheckpointInfo, Path]]:
    return ((one.info, one.folder) for one in checkpoints.list_checkpoints(run) if one.info is not None)


@torch.no_grad()
def _fill(gpt: nn.Module, folder: Path) -> None:
    if any(adapted_layers(gpt)):
        verify_hashes(folder, MANIFEST, [ADAPTER, ADAPTER_CONFIG])
        load_adapter(gpt, read_tensors(folder / ADAPTER))
        return
    state: dict[str, Tensor] = checkpoints.read_state(folder, torch.float32)
    wanted = merged_state(gpt)
    if {name: part.shape for name, part in wanted.items()} != {name: part.shape for name, part in state.items()}:
        raise DamagedError(f"{folder} holds the weights of another model.")
    gpt.load_state_dict(state, strict=False)  # a weight with two names is written under one
