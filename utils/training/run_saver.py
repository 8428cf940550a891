"""Saves a run and restores it: the state to go on from, and the checkpoints that people choose from."""

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
from utils.core.folders import DamagedError
from utils.core.storage import write_atomically
from utils.runs import Run
from utils.training import recovery, resume_state
from utils.training.checkpoint_samples import CheckpointSamples
from utils.training.ema import UPDATES
from utils.training.guards import EarlyStopping, Overfitting
from utils.training.loop import TrainState
from utils.training.preparation import BaseModel
from utils.training.resume_state import Snapshot
from utils.training.sharding import is_sharded, load_states, whole_states
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
    """Saves what one run consists of.

    Attributes:
        run: Where everything about it lies.
        config: Its settings.
        base: The model that it began with.
        dataset_hash: Fingerprint of its clips.
        gpt: coqui's GPT, without wrappers.
        stepper: Holds model, optimiser, schedule and guards.
        stopping: Knows when it gets no better.
        overfitting: Knows when it learns by heart.
        meter: Knows how long it was at work.
        reading: How the model reads.
        per_epoch: Updates of an epoch.
        samples: Speaks the sample sentences with a checkpoint.
        tell: Writes events.
    """

    run: Run
    config: TrainConfig
    base: BaseModel
    dataset_hash: str
    gpt: nn.Module
    stepper: TrainStep
    stopping: EarlyStopping
    overfitting: Overfitting
    meter: Throughput
    reading: Tokenizer
    per_epoch: int
    samples: CheckpointSamples
    tell: Callable[..., None]

    @property
    def folder(self) -> Path:
        """Return where the state to go on from lies."""
        return self.run.folder / checkpoints.RESUME_FOLDER

    def save(self, at: TrainState) -> None:
        """Write everything that exact resuming needs."""
        snapshot = self._snapshot(at)
        if self.stepper.ranks.is_first:
            resume_state.save(self.folder, snapshot)
            self.tell("saved", step=at.update)
        self.stepper.ranks.meet()

    def restore(self) -> TrainState | None:
        """Go on from what was saved last, every generator of random numbers included; None at the first start."""
        if not resume_state.can_resume(self.folder) and not self.folder.exists():
            return None
        try:
            snapshot = self._loaded()
        except DamagedError as error:
            return self._fall_back(error)
        self._check(snapshot)
        for name, part in self._counting().items():
            part.load_state_dict(snapshot.guards[name])
        self.meter.add_earlier(snapshot.seconds)
        return self._take(snapshot)

    def _fall_back(self, error: DamagedError) -> TrainState:
        """Go on from the newest checkpoint, because the state beside it is damaged; its optimiser begins anew."""
        step = self.stepper
        if is_sharded(step.model):
            raise error
        about = recovery.newest_weights(self.run.folder, self.gpt, config_hash(self.config))
        at = recovery.position(self.run.folder, about)
        recovery.wind(step.schedule, at.update)
        self._forget_later(at)
        self.stopping.best = at.best_loss
        if step.ema is not None:
            averages = {name: weight.detach() for name, weight in step.ema.weights.items()}
            step.ema.load_state_dict({UPDATES: torch.tensor(at.update), **averages})
        self.tell(
            "warning",
            message=f"{error.message} The run goes on from its checkpoint of update {at.update}; "
            "the optimiser begins anew, so the loss may rise for a moment.",
        )
        return at

    def roll_back(self) -> TrainState | None:
        """Go back to what was saved last; what counts troubles and halvings goes on counting."""
        if not resume_state.can_resume(self.folder):
            return None
        snapshot = self._loaded()
        for name in ("stopping", "overfitting"):
            self._counting()[name].load_state_dict(snapshot.guards[name])
        at = self._take(snapshot)
        self._forget_later(at)
        return at

    def _forget_later(self, at: TrainState) -> None:
        """Delete the checkpoints of updates that will be taken again, damaged ones too."""
        if self.stepper.ranks.is_first:
            for later in checkpoints.list_checkpoints(self.run.folder):
                if later.step > at.update:
                    checkpoints.delete(later)

    def publish(self, at: TrainState, *, best: bool, spoken: bool) -> None:
        """Write a checkpoint, speak its samples, and remove older ones."""
        run = self.run.folder
        with self._speaking_weights() as state_of:
            if self.stepper.ranks.is_first and not checkpoints.checkpoint_folder(run, at.update).exists():
                folder = checkpoints.write(run, state_of(), self._about(at), self._fill)
                self.tell("checkpoint", step=at.update, folder=str(folder), best=best)
        if self.stepper.ranks.is_first:
            if spoken:
                self.samples.speak(at.update)
            if best:
                checkpoints.mark_best(run, at.update, at.best_loss)
            checkpoints.prune(run, keep=self.config.save_n_checkpoints)
        self.stepper.ranks.meet()

    def _fill(self, folder: Path) -> None:
        """Write what belongs to the weights: how they read, and an adapter by itself where one is trained."""
        self.reading.save(folder)
        if any(adapted_layers(self.gpt)):
            write_tensors(folder / ADAPTER, adapter_state(self.gpt))
            kept = {
                name: getattr(self.config, name)
                for name in type(self.config).model_fields
                if name.startswith("lora_") or name == "use_dora"
            }
            write_atomically(folder / ADAPTER_CONFIG, json.dumps(adapter_settings(self.gpt) | kept, indent=1))

    def _loaded(self) -> Snapshot:
        """Load on the first process while the others wait, because loading also sweeps what a kill has left."""
        with self.stepper.ranks.accelerator.main_process_first():
            return resume_state.load(self.folder)

    @contextlib.contextmanager
    def _speaking_weights(self) -> Iterator[Callable[[], dict[str, Tensor]]]:
        """Let the model speak with its averages, if it has any; give what reads its weights, adapters merged in."""
        ema, model = self.stepper.ema, self.stepper.model
        with ema.swapped() if ema is not None else contextlib.nullcontext():
            if is_sharded(model):
                whole, _ = whole_states(model, self.stepper.optimizer)
                yield lambda: {name.removeprefix("gpt."): part for name, part in whole.items()}
            else:
                yield partial(merged_state, self.gpt)

    def _snapshot(self, at: TrainState) -> Snapshot:
        step = self.stepper
        scaler = step.ranks.accelerator.scaler
        weights, moments = self._states()
        return Snapshot(
            update=at.update,
            weights=weights,
            optimizer=moments,
            ema=step.ema.state_dict() if step.ema is not None else None,
            scheduler=step.schedule.state_dict(),
            scaler=scaler.state_dict() if scaler is not None else None,
            guards={name: part.state_dict() for name, part in self._counting().items()},
            random={"processes": step.ranks.gathered(resume_state.capture_rng())},
            seconds=self.meter.seconds,
            config_hash=config_hash(self.config),
            dataset_hash=self.dataset_hash,
            extra=dataclasses.asdict(at),
        )

    def _states(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        step = self.stepper
        if is_sharded(step.model):
            return whole_states(step.model, step.optimizer)
        return self.gpt.state_dict(), unwrap_optimizer(step.optimizer).state_dict()

    def _take(self, snapshot: Snapshot) -> TrainState:
        """Put everything back where it was."""
        step = self.stepper
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

    def _counting(self) -> dict[str, Any]:
        step = self.stepper
        return {"guard": step.guard, "micro": step.micro, "stopping": self.stopping, "overfitting": self.overfitting}

    def _check(self, snapshot: Snapshot) -> None:
        if snapshot.dataset_hash != self.dataset_hash:
            raise RunError(
                "The clips have changed since this run was saved, so it cannot go on exactly.",
                hint="Start a new run from its checkpoint: checkpoints promote, then --custom-model with ready/.",
            )
        if snapshot.config_hash != config_hash(self.config):
            raise RunError(
                "The settings of this run were changed after it was saved.",
                hint=f"Put them back; only {', '.join(sorted(MAY_CHANGE))} may change.",
            )

    def _about(self, at: TrainState) -> CheckpointInfo:
        losses = at.eval_losses if at.evaluated == at.update else {}
        return CheckpointInfo(
            step=at.update,
            epoch=round(at.update / self.per_epoch, 3),
            train_loss=at.train_loss,
            eval_loss=losses.get("loss"),
            eval_text=losses.get("text"),
            eval_audio=losses.get("audio"),
            base=str(self.base.folder),
            base_fingerprint=self.base.fingerprint,
            config_hash=config_hash(self.config),
            vocabulary_hash=self.reading.vocabulary.hash,
            is_average=self.stepper.ema is not None,
            settings=self.config.model_dump(mode="json"),
        )


def config_hash(config: TrainConfig) -> str:
    """Hash the settings that the course of a run depends on."""
    values = config.model_dump_json(exclude=MAY_CHANGE)
    return hashlib.blake2b(values.encode(), digest_size=8).hexdigest()
