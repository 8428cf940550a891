"""Saves and restores a run: the resume state, the checkpoints that people choose from, and recovery from damage."""

import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, DamagedError, explain
from utils.core.storage import write_atomically
from utils.evaluation.voice_scores import SpokenSentence
from utils.training import errors, facts, resume_state
from utils.training.checkpoint_samples import CheckpointSamples
from utils.training.data_loader import Update
from utils.training.distribution import from_first
from utils.training.errors import TrainingError
from utils.training.health import EarlyStopping, OverfittingGuard, Stateful
from utils.training.memory import changed
from utils.training.metrics import Throughput
from utils.training.optimizers import advance
from utils.training.preparation import PreparedData
from utils.training.resume_state import Snapshot
from utils.training.step import StepResult, TrainStep, unwrap_optimizer
from utils.xtts import checkpoints
from utils.xtts.adapters import adapted_layers, adapter_settings, adapter_state, load_adapter, merged_state
from utils.xtts.checkpoints import ADAPTER, ADAPTER_CONFIG, WITHOUT_EMA, CheckpointInfo
from utils.xtts.tensors import half_dtype, read_tensors, write_tensors

Scorer = Callable[[Sequence[SpokenSentence], float, float | None], dict[str, float]]
LOSS_WINDOW = 50  # updates in the running mean of the training loss
MAY_CHANGE = {
    "num_epochs",
    "max_steps",
    "save_step",
    "save_minutes",
    "save_n_checkpoints",
    "eval_step",
    "sample_texts",
    "num_workers",
    "device",
}


@dataclass
class TrainState:
    """Progress of a run, saved with the resume state."""

    update: int = 0  # updates done
    samples: int = 0  # clips trained on
    train_loss: float | None = None  # running mean of the audio loss
    best_update: int = 0  # update with the best evaluation; 0 if none was better than the base model
    best_loss: float | None = None
    base_loss: float | None = None  # evaluation loss of the base model
    by_score: bool = False  # whether the composite score picks the best checkpoint instead of the loss
    evaluated: int = -1  # update of the last evaluation
    eval_losses: dict[str, float] = field(default_factory=dict)  # of the last evaluation

    def count(self, update: Update, result: StepResult) -> None:
        self.update += 1
        self.samples += update.clips
        if result.status == "applied":
            mean = result.audio if self.train_loss is None else self.train_loss
            self.train_loss = mean + (result.audio - mean) / min(self.update, LOSS_WINDOW)


@dataclass
class RunSaver:
    """Saves and restores everything that a run consists of."""

    folder: Path  # of the run
    step: TrainStep  # holds model, optimizer, schedule and guards
    data: PreparedData
    dataset_hash: str  # of the training clips
    throughput: Throughput
    per_epoch: int  # updates
    samples: CheckpointSamples
    scorer: "Scorer | None"  # of the spoken sentences, with the evaluation loss and that of the base model
    reported: int  # the newest update of an earlier session, saved or not
    replaced: Mapping[str, object]  # what was chosen where other settings are used

    def __post_init__(self) -> None:
        self.config = self.step.config
        self.chosen = changed(self.config, self.replaced)
        self.report = self.step.report
        self.gpt = self.step.packed.gpt  # coqui's GPT, without wrappers
        self.resume_folder = self.folder / checkpoints.RESUME_FOLDER
        self.saved = -1  # update of the last save
        self.stopping = EarlyStopping(self.config.early_stopping_patience)
        self.overfitting = OverfittingGuard()
        self.guards: dict[str, Stateful] = {
            "guard": self.step.guard,
            "micro": self.step.micro,
            "stopping": self.stopping,
            "overfitting": self.overfitting,
        }

    @property
    def can_resume(self) -> bool:
        return resume_state.can_resume(self.resume_folder)

    def save(self, state: TrainState) -> None:
        snapshot = self._snapshot(state)
        if self.step.ranks.is_first:
            resume_state.save(self.resume_folder, snapshot)
            if state.update != self.saved:  # it is saved again once it has been evaluated
                self.saved = state.update
                self.report(facts.Saved(self.saved))
        self.step.ranks.wait()

    def restore(self) -> TrainState | None:
        """Restore the last save, including all random number generators; None to start from the beginning.

        Without a save, the run continues from its newest checkpoint.
        """
        if not self.can_resume and not self.resume_folder.exists():
            if checkpoints.list_checkpoints(self.folder):
                return self._recover("missing")
            if self.reported:
                self.report(facts.RunStartsAnew(self.reported))
            return None
        try:
            snapshot = self._load()
        except DamagedError:
            return self._recover("damaged")
        if snapshot.dataset_hash != self.dataset_hash:
            raise TrainingError("clips_changed")
        if changed_settings(snapshot.settings | snapshot.replaced, self.chosen):
            raise TrainingError("settings_changed", ", ".join(sorted(MAY_CHANGE)))
        self.throughput.earlier_seconds += snapshot.seconds
        return self._apply(snapshot, self.guards)

    def _recover(self, cause: facts.Cause) -> TrainState:
        """Continue from the newest checkpoint because the resume state is missing or damaged.

        A checkpoint holds no optimizer state, so the optimizer is reset. The learning rate continues where it was.
        """
        step = self.step
        info = load_newest_checkpoint(self.folder, self.gpt, self.chosen)
        state = self._state_of(info)
        advance(step.schedule, state.update)
        self._delete_later_checkpoints(state)
        scores = checkpoints.read_scores(self.folder, state.best_update)
        state.by_score = "composite" in scores
        self.stopping.best = 1 - scores["composite"] if state.by_score else state.best_loss
        if step.ema is not None:
            step.ema.restart(state.update)
        self.report(facts.CheckpointContinued(state.update, cause, max(0, self.reported - state.update)))
        return state

    def _state_of(self, info: CheckpointInfo) -> TrainState:
        """Return how far a run was at a checkpoint, as far as its checkpoints say."""
        listed = checkpoints.list_checkpoints(self.folder)
        best = next((one.info for one in listed if one.is_best and one.step <= info.step), None)
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

    def roll_back(self) -> TrainState | None:
        """Return to the last save; guards that count failures and splits keep counting."""
        if not self.can_resume:
            return None
        state = self._apply(self._load(), ("stopping", "overfitting"))
        self._delete_later_checkpoints(state)
        return state

    def _delete_later_checkpoints(self, state: TrainState) -> None:
        """Delete the checkpoints of updates that will be repeated, damaged ones too."""
        if self.step.ranks.is_first:
            for checkpoint in checkpoints.list_checkpoints(self.folder):
                if checkpoint.step > state.update:
                    checkpoints.delete(checkpoint)

    def write_checkpoint(self, state: TrainState, *, best: bool, replace: bool = False) -> None:
        """Write a checkpoint if there is none, or replace it, and delete old checkpoints."""
        run = self.folder
        step = self.step
        if step.ranks.is_first:
            if replace or not checkpoints.checkpoint_folder(run, state.update).exists():
                with step.ema.swapped() if step.ema is not None else contextlib.nullcontext():
                    folder = checkpoints.write(run, merged_state(self.gpt), self._info(state), self._write_extras)
                self.report(facts.Checkpoint(state.update, str(folder), best))
            if best:
                checkpoints.mark_best(run, state.update)
            checkpoints.prune(run, keep=self.config.save_n_checkpoints)
        step.ranks.wait()

    def speak_samples(self, state: TrainState) -> float | None:
        """Speak with the checkpoint of the current update, and return its composite score if there is one."""
        spoken = from_first(
            lambda: str(self._score(self.samples.speak(state.update), state).get("composite", math.nan))
        )
        return None if math.isnan(score := float(spoken)) else score

    def _score(self, spoken: Sequence[SpokenSentence], state: TrainState) -> dict[str, float]:
        """Score what was spoken; a recogniser that fails must not end a run."""
        if self.scorer is None or not spoken:
            return {}
        try:
            scores = self.scorer(spoken, state.eval_losses["loss"], state.base_loss)
        except (AmharicTtsError, RuntimeError, OSError, ValueError) as error:
            self.report(facts.SamplesFailed(state.update, explain(error)))
            return {}
        checkpoints.write_scores(self.folder, state.update, scores)
        self.report(facts.Scores(state.update, **scores))
        return scores

    def _write_extras(self, folder: Path) -> None:
        self.data.tokenizer.save(folder)
        if self.step.ema is not None:
            with self.step.ema.swapped():  # for the second time, so back to the weights of the training
                write_tensors(folder / WITHOUT_EMA, merged_state(self.gpt), half_dtype)
        if any(adapted_layers(self.gpt)):
            write_tensors(folder / ADAPTER, adapter_state(self.gpt))
            names = [name for name in TrainConfig.model_fields if name.startswith("lora_") or name == "use_dora"]
            settings = adapter_settings(self.gpt) | {name: getattr(self.config, name) for name in names}
            write_atomically(folder / ADAPTER_CONFIG, json.dumps(settings, indent=1))

    def _load(self) -> Snapshot:
        """Load on the first process while the others wait, because loading also removes leftovers of a killed save."""
        with self.step.ranks.accelerator.main_process_first():
            return resume_state.load(self.resume_folder)

    def _snapshot(self, state: TrainState) -> Snapshot:
        step = self.step
        scaler = step.ranks.accelerator.scaler
        return Snapshot(
            update=state.update,
            weights=self.gpt.state_dict(),
            optimizer=unwrap_optimizer(step.optimizer).state_dict(),
            ema=step.ema.state_dict() if step.ema is not None else None,
            scheduler=step.schedule.state_dict(),
            scaler=scaler.state_dict() if scaler is not None else None,
            guards={name: part.state_dict() for name, part in self.guards.items()},
            random={"processes": step.ranks.gather(resume_state.capture_rng())},
            seconds=self.throughput.seconds,
            settings=self.config.model_dump(mode="json"),
            replaced=dict(self.replaced),
            dataset_hash=self.dataset_hash,
            extra=dataclasses.asdict(state),
        )

    def _apply(self, snapshot: Snapshot, guards: Iterable[str]) -> TrainState:
        step = self.step
        for name in guards:
            self.guards[name].load_state_dict(snapshot.guards[name])
        self.gpt.load_state_dict(snapshot.weights)
        self._apply_optimizer(snapshot)
        if step.ema is not None and snapshot.ema is not None:
            step.ema.load_state_dict(snapshot.ema)
        elif step.ema is not None:
            step.ema.restart(snapshot.update)
        if step.ranks.accelerator.scaler is not None and snapshot.scaler is not None:
            step.ranks.accelerator.scaler.load_state_dict(snapshot.scaler)
        states = snapshot.random["processes"]
        resume_state.restore_rng(states[step.ranks.index % len(states)])
        return TrainState(**snapshot.extra)

    def _apply_optimizer(self, snapshot: Snapshot) -> None:
        optimizer, schedule = unwrap_optimizer(self.step.optimizer), self.step.schedule
        optimizer.state.clear()  # or a rollback would need room for both
        schedule.load_state_dict(snapshot.scheduler)
        if snapshot.settings.get("optimizer", self.config.optimizer) == self.config.optimizer:
            optimizer.load_state_dict(snapshot.optimizer)
        else:  # the test of the GPU gave another result than before
            advance(schedule, schedule.last_epoch)
            self.report(facts.OptimizerStartsAnew(self.config.optimizer))

    def _info(self, state: TrainState) -> CheckpointInfo:
        losses = state.eval_losses if state.evaluated == state.update else {}
        return CheckpointInfo(
            step=state.update,
            epoch=round(state.update / self.per_epoch, 3),
            train_loss=state.train_loss,
            eval_loss=losses.get("loss"),
            eval_text=losses.get("text"),
            eval_audio=losses.get("audio"),
            base=str(self.data.base.folder),
            base_fingerprint=self.data.base.fingerprint,
            vocabulary_hash=self.data.tokenizer.vocabulary.hash,
            is_average=self.step.ema is not None,
            settings=self.config.model_dump(mode="json"),
            replaced=dict(self.replaced),
        )


def changed_settings(saved: Mapping[str, object], config: TrainConfig) -> list[str]:
    """Name the settings that were saved with another value; later versions may have more than were saved."""
    now = config.model_dump(mode="json", exclude=MAY_CHANGE)
    return [name for name, value in now.items() if saved.get(name, value) != value]


def load_newest_checkpoint(run: Path, gpt: nn.Module, config: TrainConfig) -> CheckpointInfo:
    """Load the newest intact checkpoint with these settings into a model, verifying every byte."""
    refused = []
    for checkpoint in checkpoints.list_checkpoints(run):
        if checkpoint.info is None:
            continue
        try:
            if changed_settings(checkpoint.info.settings | checkpoint.info.replaced, config):
                raise errors.CheckpointRefusedError(checkpoint.folder, "settings")
            _load_weights(gpt, checkpoint.folder)
        except AmharicTtsError as error:
            refused.append(error)
        else:
            return checkpoint.info
    raise errors.NoCheckpointError(run.name, tuple(refused))


@torch.no_grad()
def _load_weights(gpt: nn.Module, folder: Path) -> None:
    if any(adapted_layers(gpt)):
        checkpoints.verify(folder, ADAPTER)
        load_adapter(gpt, read_tensors(folder / ADAPTER))
        return
    state = checkpoints.read_state(folder, torch.float32)
    expected = merged_state(gpt)
    if {name: part.shape for name, part in expected.items()} != {name: part.shape for name, part in state.items()}:
        raise errors.CheckpointRefusedError(folder, "model")
    gpt.load_state_dict(state, strict=False)  # a weight with two names is stored under one of them
