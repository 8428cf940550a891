"""Fine-tuning XTTS: the recipe, from the lists of clips to a voice, in the order in which it happens."""

import inspect
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from utils import runs
from utils.config import TrainConfig
from utils.dataset.features import Features
from utils.jobs import Job
from utils.paths import Project
from utils.speedups.change import Change
from utils.speedups.dropout import set_dropout
from utils.speedups.optimizers import make_optimizer
from utils.training import checkpoints, material, preparation
from utils.training.batches import Share, UpdatePlan, lengths_grid
from utils.training.clips import Limits
from utils.training.distribution import Ranks, make_accelerator
from utils.training.ema import Ema
from utils.training.evaluation import Losses, evaluate
from utils.training.guards import EarlyStopping, Overfitting
from utils.training.keeping import Keeper
from utils.training.listening import make_listening
from utils.training.loading import UpdateLoader, eval_batches
from utils.training.loop import Loop, Position
from utils.training.material import Material
from utils.training.packing import PackedGpt, Tokens
from utils.training.preparation import Base
from utils.training.progress import Meter
from utils.training.schedule import make_schedule
from utils.training.sharding import shard
from utils.training.step import Stepper
from utils.training_optimizations import TrainingOptimizer
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import Tokenizer


@dataclass(frozen=True)
class TrainResult:
    """What came of a run.

    Attributes:
        run: Its folder.
        best: The checkpoint that was best on clips it never learnt from; None when none was.
        updates: Updates done.
        train_loss: Running mean of the audio's loss.
        eval_losses: What the last evaluation found.
        seconds: Time at work, all sessions together.
    """

    run: Path
    best: Path | None
    updates: int
    train_loss: float | None
    eval_losses: dict[str, float]
    seconds: float


def train_gpt(**settings: object) -> TrainResult:
    """Fine-tune in this process and return what came of it; every setting of TrainConfig is a keyword.

    Example:
        train_gpt(version="tiny", language="amh", output_path="./output", num_epochs=5)
    """
    config = TrainConfig.parse(settings, source="train_gpt")
    run = runs.create("train", config, Project(Path(config.output_path).resolve()))
    failures: list[Exception] = []
    results: list[TrainResult] = []
    with Job(run) as job:  # it writes down how the work ended, and keeps an error to itself
        try:
            results.append(train(job, config))
        except Exception as error:
            failures.append(error)
            raise
    for failure in failures:
        raise failure
    return results[0]


@dataclass(frozen=True)
class Gathered:
    """What has to be there before the model is.

    Attributes:
        clips: What is learnt from and judged by.
        base: The model to start from.
        reading: How texts are read.
        store: The features of all clips.
    """

    clips: Material
    base: Base
    reading: Tokenizer
    store: Features


def train(job: Job, config: TrainConfig) -> TrainResult:
    """Do the work of a run; one that was interrupted goes on where it was saved."""
    switches = TrainingOptimizer.from_config(config)
    ranks = Ranks(make_accelerator(config, switches.get_mixed_precision_config().dtype))
    with ranks.accelerator.main_process_first():  # the others find everything made
        gathered = gather(job, config)
    torch.manual_seed(config.seed + ranks.index)
    gpt = load_gpt(gathered.base.folder, gathered.reading)
    for change in (set_dropout(gpt, config.dropout), *switches.apply(gpt).values()):
        tell_change(job, change)
    loop, keeper = build(job, config, ranks, gathered, gpt)
    if earlier := keeper.restore():
        loop.at = earlier
        job.events.emit("resumed", step=earlier.update, epoch=round(earlier.update / loop.per_epoch, 3))
    loop.run()
    best = loop.at.best_update
    return TrainResult(
        run=job.run.folder,
        best=checkpoints.place(job.run.folder, best) if best else None,
        updates=loop.at.update,
        train_loss=loop.at.train_loss,
        eval_losses=loop.at.eval_losses,
        seconds=loop.meter.seconds,
    )


def gather(job: Job, config: TrainConfig) -> Gathered:
    """Read the lists, find the base model, fix how it reads, and encode what has no features yet."""
    clips = material.read(config, Project(job.run.folder.parent.parent))
    for fault in clips.faults:
        job.events.emit("problem", message=fault)
    base = preparation.find_base(job, config)
    reading = preparation.find_reading(job, config, base, clips.train)
    store = preparation.encode(job, clips.folder, base, reading, clips.clips, config.language)
    return Gathered(clips, base, reading, store)


def build(job: Job, config: TrainConfig, ranks: Ranks, gathered: Gathered, gpt: nn.Module) -> tuple[Loop, Keeper]:
    """Put together what learns and what keeps it."""
    device = ranks.accelerator.device
    limits, tokens = Limits.of(config, gpt), Tokens.of(gpt)
    source = preparation.choose_clips(job, gathered.store, gathered.clips.train, limits, "train")
    held_back = preparation.choose_clips(job, gathered.store, gathered.clips.held_back, limits, "eval")
    plan = UpdatePlan.of(config, source.lengths, ranks.count)
    grid = lengths_grid(source.lengths) if config.use_compile else ()
    share = Share(config.batch_size, config.batch_tokens, ranks.index, ranks.count, grid)
    total = min(config.max_steps or math.inf, len(plan) * config.num_epochs)

    model = PackedGpt(gpt.to(device), config.label_smoothing)
    if config.sharding == "fsdp":
        tell_change(job, shard(model, ranks.accelerator.mixed_precision, ranks.count))
    optimizer, change = make_optimizer(model, config, device)
    tell_change(job, change)
    schedule = make_schedule(optimizer, config.lr_scheduler, int(total), config.warmup_steps, config.warmup_share)
    ema = Ema(gpt, config.ema_decay, config.ema_device) if config.enable_ema else None
    prepared, prepared_optimizer = ranks.prepare(model, optimizer)

    def warn(message: str) -> None:
        job.events.emit("warning", message=message)

    stepper = Stepper(config, ranks, prepared, prepared_optimizer, schedule, ema, warn)
    pin = device.type == "cuda"
    loader = UpdateLoader(source, plan, tokens, share, workers=config.num_workers, pin=pin)
    meter = Meter(int(total), processes=ranks.count, device=device)

    def judge() -> tuple[Losses, dict[str, Any]]:
        def once() -> Losses:
            batches = partial(eval_batches, held_back, tokens, share)
            return evaluate(prepared, batches, ranks, config.text_loss_weight)

        raw = once()
        if ema is None:
            return raw, {}
        with ema.swapped():
            return once(), {"loss_without_ema": raw.loss}

    stopping, overfitting = EarlyStopping(config.early_stopping_patience), Overfitting()
    keeper = Keeper(
        run=job.run,
        config=config,
        base=gathered.base,
        dataset_hash=material.fingerprint(list(source.clips)),
        gpt=gpt,
        stepper=stepper,
        stopping=stopping,
        overfitting=overfitting,
        meter=meter,
        reading=gathered.reading,
        per_epoch=len(plan),
        speak=make_listening(job, config, gpt, gathered.base, gathered.reading, gathered.clips),
        tell=job.events.emit,
    )
    loop = Loop(
        config, job, stepper, loader, len(plan), int(total), judge, keeper, meter, stopping, overfitting, Position()
    )
    return loop, keeper


def tell_change(job: Job, change: Change) -> None:
    """Write down what a switch did."""
    job.events.emit("optimization", name=change.name, changed=change.changed, detail=change.detail)


train_gpt.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation)
        for name, field in TrainConfig.model_fields.items()
    ],
    return_annotation=TrainResult,
)
