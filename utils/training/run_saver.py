"""Saves and restores a run: the resume state, and the checkpoints that people choose from."""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from utils.config import TrainConfig
from utils.core.errors import RunError
from utils.core.storage import DamagedError, write_atomically
from utils.runs import Run
from utils.training import recovery, resume_state
from utils.training.checkpoint_samples import CheckpointSamples
from utils.training.distribution import gather_states, is_sharded, load_states
from utils.training.ema import UPDATES
from utils.training.guards import EarlyStopping, OverfittingGuard
from utils.training.loop import TrainState
from utils.training.preparation import BaseModel
from utils.training.resume_state import Snapshot
from utils.training.step import TrainStep, unwrap_optimizer
from utils.training.throughput import Throughput
from utils.xtts import checkpoints
from utils.xtts.adapters import adapted_layers, adapter_settings, adapter_state, merged_state
from utils.xtts.checkpoints import ADAPTER, ADAPTER_CONFIG, CheckpointInfo
from utils.xtts.tensors import write_tensors
from utils.xtts.tokenizer import Tokenizer

MAY_CHANGE = {"num_epochs", "max_steps", "save_step", "save_n_checkpoints", "eval_step", "sample_texts", "num_workers"}


@dataclass
class RunSaver:
    """Saves and restores everything that a run consists of.

    Attributes:
        run: The run and its folder.
        config: Settings of the run.
        base: The model that the run started from.
        dataset_hash: Fingerprint of the training clips.
        gpt: coqui's GPT, without wrappers.
        step: Holds model, optimizer, schedule and guards.
        stopping: Early stopping.
        overfitting: The overfitting guard.
        throughput: Knows the time trained so far.
        tokenizer: Tokenizer of the model.
        per_epoch: Updates per epoch.
        samples: Speaks the sample sentences with a checkpoint.
        emit: Writes events.
    """

    run: Run
    config: TrainConfig
    base: BaseModel
    dataset_hash: str
    gpt: nn.Module
    step: TrainStep
    stopping: EarlyStopping
    overfitting: OverfittingGuard
    throughput: Throughput
    tokenizer: Tokenizer
    per_epoch: int
    samples: CheckpointSamples
    emit: Callable[..., None]

    @property
    def resume_folder(self) -> Path:
        """Return the folder of the resume state."""
        return self.run.folder / checkpoints.RESUME_FOLDER

    def save(self, state: TrainState) -> None:
        """Write everything needed to resume exactly."""
        snapshot = self._snapshot(state)
        if self.step.ranks.is_first:
            resume_state.save(self.resume_folder, snapshot)
            self.emit("saved", step=state.update)
        self.step.ranks.wait()

    def restore(self) -> TrainState | None:
        """Restore the last save, including all random number generators; None on the first start."""
        if not resume_state.can_resume(self.resume_folder) and not self.resume_folder.exists():
            return None
        try:
            snapshot = self._load()
        except DamagedError as error:
            return self._recover(error)
        self._check(snapshot)
        for name, part in self._stateful().items():
            part.load_state_dict(snapshot.guards[name])
        self.throughput.add_earlier(snapshot.seconds)
        return self._apply(snapshot)

    def _recover(self, error: DamagedError) -> TrainState:
        """Continue from the newest checkpoint because the resume state is damaged; the optimizer is reset."""
        step = self.step
        if is_sharded(step.model):
            raise error
        info = recovery.load_newest_checkpoint(self.run.folder, self.gpt, config_hash(self.config))
        state = recovery.train_state(self.run.folder, info)
        recovery.advance(step.schedule, state.update)
        self._delete_later_checkpoints(state)
        self.stopping.best = state.best_loss
        if step.ema is not None:
            averages = {name: weight.detach() for name, weight in step.ema.weights.items()}
            step.ema.load_state_dict({UPDATES: torch.tensor(state.update), **averages})
        self.emit(
            "warning",
            message=f"{error.message} Continuing from the checkpoint of update {state.update}. "
            "The optimizer was reset, so the loss may rise briefly.",
        )
        return state

    def roll_back(self) -> TrainState | None:
        """Return to the last save; guards that count failures and splits keep counting."""
        if not resume_state.can_resume(self.resume_folder):
            return None
        snapshot = self._load()
        for name in ("stopping", "overfitting"):
            self._stateful()[name].load_state_dict(snapshot.guards[name])
        state = self._apply(snapshot)
        self._delete_later_checkpoints(state)
        return state

    def _delete_later_checkpoints(self, state: TrainState) -> None:
        """Delete the checkpoints of updates that will be repeated, damaged ones too."""
        if self.step.ranks.is_first:
            for checkpoint in checkpoints.list_checkpoints(self.run.folder):
                if checkpoint.step > state.update:
                    checkpoints.delete(checkpoint)

    def write_checkpoint(self, state: TrainState, *, best: bool, speak: bool) -> None:
        """Write a checkpoint, speak its samples, and delete old checkpoints."""
        run = self.run.folder
        with self._export_weights() as weights:
            if self.step.ranks.is_first and not checkpoints.checkpoint_folder(run, state.update).exists():
                folder = checkpoints.write(run, weights(), self._info(state), self._write_extras)
                self.emit("checkpoint", step=state.update, folder=str(folder), best=best)
        if self.step.ranks.is_first:
            if speak:
                self.samples.speak(state.update)
            if best:
                checkpoints.mark_best(run, state.update, state.best_loss)
            checkpoints.prune(run, keep=self.config.save_n_checkpoints)
        self.step.ranks.wait()

    def _write_extras(self, folder: Path) -> None:
        """Write the tokenizer and, for LoRA, the adapter by itself."""
        self.tokenizer.save(folder)
        if any(adapted_layers(self.gpt)):
            write_tensors(folder / ADAPTER, adapter_state(self.gpt))
            settings = {
                name: getattr(self.config, name)
                for name in type(self.config).model_fields
                if name.startswith("lora_") or name == "use_dora"
            }
            write_atomically(folder / ADAPTER_CONFIG, json.dumps(adapter_settings(self.gpt) | settings, indent=1))

    def _load(self) -> Snapshot:
        """Load on the first process while the others wait, because loading also removes leftovers of a killed save."""
        with self.step.ranks.accelerator.main_process_first():
            return resume_state.load(self.resume_folder)

    @contextlib.contextmanager
    def _export_weights(self) -> Iterator[Callable[[], dict[str, Tensor]]]:
        """Swap in the averaged weights, if there are any, and yield a function that returns the merged weights."""
        ema, model = self.step.ema, self.step.model
        with ema.swapped() if ema is not None else contextlib.nullcontext():
            if is_sharded(model):
                weights, _ = gather_states(model, self.step.optimizer)
                yield lambda: {name.removeprefix("gpt."): part for name, part in weights.items()}
            else:
                yield partial(merged_state, self.gpt)

    def _snapshot(self, state: TrainState) -> Snapshot:
        step = self.step
        scaler = step.ranks.accelerator.scaler
        weights, moments = self._states()
        return Snapshot(
            update=state.update,
            weights=weights,
            optimizer=moments,
            ema=step.ema.state_dict() if step.ema is not None else None,
            scheduler=step.schedule.state_dict(),
            scaler=scaler.state_dict() if scaler is not None else None,
            guards={name: part.state_dict() for name, part in self._stateful().items()},
            random={"processes": step.ranks.gather(resume_state.capture_rng())},
            seconds=self.throughput.seconds,
            config_hash=config_hash(self.config),
            dataset_hash=self.dataset_hash,
            extra=dataclasses.asdict(state),
        )

    def _states(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        step = self.step
        if is_sharded(step.model):
            return gather_states(step.model, step.optimizer)
        return self.gpt.state_dict(), unwrap_optimizer(step.optimizer).state_dict()

    def _apply(self, snapshot: Snapshot) -> TrainState:
        """Restore model, optimizer, schedule, averages and random numbers."""
        step = self.step
        if is_sharded(step.model):
            load_states(step.model, step.optimizer, snapshot.weights, snapshot.optimizer)
        else:
            self.gpt.load_state_dict(snapshot.weights)
            unwrap_optimizer(step.optimizer).load_state_dict(snapshot.optimizer)
        step.schedule.load_state_dict(snapshot.scheduler)
        if step.ema is not None and snapshot.ema is not None:
            step.ema.load_state_dict(snapshot.ema)
        if step.ranks.accelerator.scaler is not None and snapshot.scaler is not None:
            step.ranks.accelerator.scaler.load_state_dict(snapshot.scaler)
        states = snapshot.random["processes"]
        resume_state.restore_rng(states[step.ranks.index % len(states)])
        return TrainState(**snapshot.extra)

    def _stateful(self) -> dict[str, Any]:
        """Return the objects whose counts are saved, by their names on disk."""
        step = self.step
        return {"guard": step.guard, "micro": step.micro, "stopping": self.stopping, "overfitting": self.overfitting}

    def _check(self, snapshot: Snapshot) -> None:
        if snapshot.dataset_hash != self.dataset_hash:
            raise RunError(
                "The training clips have changed since this run was saved, so it cannot resume exactly.",
                hint="Start a new run from its checkpoint: checkpoints promote, then train with --custom-model ready/.",
            )
        if snapshot.config_hash != config_hash(self.config):
            raise RunError(
                "The settings of this run were changed after it was saved.",
                hint=f"Restore them. Only these may change: {', '.join(sorted(MAY_CHANGE))}.",
            )

    def _info(self, state: TrainState) -> CheckpointInfo:
        losses = state.eval_losses if state.evaluated == state.update else {}
        return CheckpointInfo(
            step=state.update,
            epoch=round(state.update / self.per_epoch, 3),
            train_loss=state.train_loss,
            eval_loss=losses.get("loss"),
            eval_text=losses.get("text"),
            eval_audio=losses.get("audio"),
            base=str(self.base.folder),
            base_fingerprint=self.base.fingerprint,
            config_hash=config_hash(self.config),
            vocabulary_hash=self.tokenizer.vocabulary.hash,
            is_average=self.step.ema is not None,
            settings=self.config.model_dump(mode="json"),
        )


def config_hash(config: TrainConfig) -> str:
    """Hash the settings that determine the course of a run."""
    values = config.model_dump_json(exclude=MAY_CHANGE)
    return hashlib.blake2b(values.encode(), digest_size=8).hexdigest()
