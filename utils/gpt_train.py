"""Fine-tuning XTTS: the recipe, from the lists of clips to a voice, in the order in which it happens."""

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from utils import runs
from utils.config import TrainConfig
from utils.core.change import Change
from utils.core.errors import ConfigError
from utils.core.paths import Project
from utils.dataset import clip_lists
from utils.dataset.clip_lists import Material
from utils.dataset.features import Features
from utils.runs.job import Job
from utils.runs.monitor import idle_gpu_warning
from utils.training import memory, preparation
from utils.training.batches import BatchSpec, UpdatePlan, compile_lengths
from utils.training.checkpoint_samples import CheckpointSamples
from utils.training.clips import ClipLimits
from utils.training.data_loader import Update, UpdateLoader, eval_batches
from utils.training.distribution import Ranks, make_accelerator
from utils.training.ema import Ema
from utils.training.evaluation import Evaluator
from utils.training.guards import EarlyStopping, Overfitting
from utils.training.launcher import is_member
from utils.training.loop import TrainingLoop
from utils.training.model_size import ClipSize, ModelSize
from utils.training.packing import PackedGpt, SpecialTokens
from utils.training.preparation import BaseModel
from utils.training.run_saver import RunSaver
from utils.training.schedule import make_schedule
from utils.training.sharding import shard
from utils.training.speedups.dropout import set_dropout
from utils.training.speedups.optimizers import make_optimizer
from utils.training.step import TrainStep
from utils.training.throughput import Throughput
from utils.training.tracking import Tracker
from utils.training_optimizations import TrainingOptimizer
from utils.xtts import checkpoints
from utils.xtts.codec import AudioEncoder, choose_device
from utils.xtts.finalize import promote
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

    A run that somebody stops raises ``utils.runs.job.Stop`` after it was saved.

    Example:
        train_gpt(version="tiny", language="Amharic", output_path="./output", num_epochs=5)
    """
    config = TrainConfig.parse(settings, source="train_gpt")
    if config.num_processes > 1 and not is_member():
        raise ConfigError("train_gpt works in one process.", hint="Use the command: python -m utils train.")
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
    base: BaseModel
    reading: Tokenizer
    store: Features


def train(job: Job, config: TrainConfig) -> TrainResult:
    """Do the work of a run; one that was interrupted goes on where it was saved."""
    switches = TrainingOptimizer.from_config(config)
    ranks = Ranks(make_accelerator(config, switches.get_mixed_precision_config().dtype, job.run))
    with ranks.accelerator.main_process_first():  # the others find everything made
        gathered = gather(job, config)
    torch.manual_seed(config.seed + ranks.index)
    gpt = load_gpt(gathered.base.folder, gathered.reading)
    shape = ModelSize.from_model(gpt)
    for change in (set_dropout(gpt, config.dropout), *switches.apply(gpt).values()):
        tell_change(job, change)
    tracking = Tracker(config, ranks.accelerator, job.run, partial(warn, job))
    loop, keeper = build(job, config, ranks, gathered, gpt, tracking)
    live = switches.what_is_on(gpt)
    job.events.emit("what_is_on", message="; ".join(f"{name}: {state}" for name, state in live.items()), parts=live)
    tell_memory(
        job, memory.estimate(config, memory.Device.detect(config), shape, ClipSize.longest(loop.loader.plan.lengths))
    )
    if earlier := keeper.restore():
        loop.at = earlier
        job.events.emit("resumed", step=earlier.update, epoch=round(earlier.update / loop.per_epoch, 3))
    with idle_gpu_warning(partial(warn, job)):
        loop.run()
    tracking.close()
    if ranks.is_first:
        make_ready(job, keeper)
    best = loop.at.best_update
    return TrainResult(
        run=job.run.folder,
        best=checkpoints.checkpoint_folder(job.run.folder, best) if best else None,
        updates=loop.at.update,
        train_loss=loop.at.train_loss,
        eval_losses=loop.at.eval_losses,
        seconds=loop.meter.seconds,
    )


def make_ready(job: Job, keeper: RunSaver) -> None:
    """Make the voice of the project from the first run that finishes; another one takes its place when promoted."""
    ready = job.run.project.ready
    if not ready.exists() and checkpoints.best_step(job.run.folder) is not None:
        promote(checkpoints.find(job.run.folder, "best"), ready, keeper.samples.reference)
        job.events.emit("ready", folder=str(ready))


def gather(job: Job, config: TrainConfig) -> Gathered:
    """Read the lists, find the base model, fix how it reads, and encode what has no features yet."""
    clips = clip_lists.read(config, job.run.project)
    for fault in clips.faults:
        job.events.emit("problem", message=fault)
    base = preparation.find_base(job, config)
    reading = preparation.fixed_tokenizer(job, config, base, clips.train)
    encoder = AudioEncoder.load(base.folder, choose_device("auto"))
    store = preparation.encode_clips(job, clips.folder, encoder, reading, clips.clips, config.language)
    return Gathered(clips, base, reading, store)


def build(
    job: Job, config: TrainConfig, ranks: Ranks, gathered: Gathered, gpt: nn.Module, tracking: Tracker
) -> tuple[TrainingLoop, RunSaver]:
    """Put together what learns, what judges, and what keeps it."""
    device = ranks.accelerator.device
    limits, tokens = ClipLimits.of(config, gpt), SpecialTokens.from_model(gpt)
    source = preparation.choose_clips(job, gathered.store, gathered.clips.train, limits, "train")
    held_back = preparation.choose_clips(job, gathered.store, gathered.clips.held_back, limits, "eval")
    plan = UpdatePlan.of(config, source.lengths, ranks.count)
    total = min(config.max_steps or sys.maxsize, len(plan) * config.num_epochs)
    grid = compile_lengths(source.lengths) if config.use_compile else ()
    share = BatchSpec(config.batch_size, config.batch_tokens, ranks.index, ranks.count, grid)

    model = PackedGpt(gpt.to(device), config.label_smoothing)
    if config.sharding == "fsdp":
        tell_change(job, shard(model, ranks.accelerator.mixed_precision, ranks.count))
    optimizer, change = make_optimizer(model, config, device)
    tell_change(job, change)
    schedule = make_schedule(optimizer, config.lr_scheduler, total, config.warmup_steps, config.warmup_share)
    ema = Ema(gpt, config.ema_decay, config.ema_device) if config.enable_ema else None
    wrapped, wrapped_optimizer = ranks.prepare(model, optimizer)

    def name_clips(update: Update) -> Iterator[str]:
        return (source.clips[number].audio for number in plan[update.number].clips.tolist())

    stepper = TrainStep(config, ranks, wrapped, wrapped_optimizer, schedule, ema, partial(warn, job), name_clips)

    meter = Throughput(total, processes=ranks.count, device=device)
    stopping, overfitting = EarlyStopping(config.early_stopping_patience), Overfitting()
    judge = Evaluator(wrapped, partial(eval_batches, held_back, tokens, share), ranks, config.text_loss_weight, ema)
    keeper = RunSaver(
        run=job.run,
        config=config,
        base=gathered.base,
        dataset_hash=clip_lists.fingerprint(list(source.clips)),
        gpt=gpt,
        stepper=stepper,
        stopping=stopping,
        overfitting=overfitting,
        meter=meter,
        reading=gathered.reading,
        per_epoch=len(plan),
        samples=CheckpointSamples.of(job, config, gathered.clips, device),
        tell=job.events.emit,
    )
    loop = TrainingLoop(
        config=config,
        job=job,
        stepper=stepper,
        loader=UpdateLoader(source, plan, tokens, share, workers=config.num_workers, pin=device.type == "cuda"),
        per_epoch=len(plan),
        total=total,
        judge=judge,
        keeping=keeper,
        meter=meter,
        stopping=stopping,
        overfitting=overfitting,
        track=tracking.log,
    )
    return loop, keeper


def tell_memory(job: Job, plan: memory.MemoryEstimate) -> None:
    """Write down what the run will need, and warn where that is more than there is."""
    job.events.emit("memory_plan", fits=plan.fits, message=plan.summary, parts=plan.parts)
    if not plan.fits:
        warn(job, f"{plan.summary} See what would fit: python -m utils memory-plan.")


def warn(job: Job, message: str) -> None:
    """Tell a person something that does not end the run."""
    job.events.emit("warning", message=message)


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
