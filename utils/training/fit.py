"""Train a model on prepared clips: ``fit`` is all that a program needs of the loop."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torch import nn

from utils.config import TrainConfig
from utils.core.facts import Report, ShouldStop, ignore, never_stop
from utils.dataset import metadata
from utils.training.batches import BatchSpec, UpdatePlan, compile_lengths
from utils.training.checkpoint_samples import CheckpointSamples
from utils.training.clips import ClipLimits, FeatureSource
from utils.training.data_loader import UpdateLoader, eval_batches
from utils.training.distribution import Ranks, make_accelerator
from utils.training.ema import Ema
from utils.training.facts import Loading, References, Resumed, WhatIsOn
from utils.training.first_batch import FirstBatch
from utils.training.loop import TrainingLoop
from utils.training.metrics import Throughput, Tracker
from utils.training.optimizations import TrainingOptimizer, UnslothStyleOptimizations
from utils.training.optimizers import make_optimizer, make_schedule
from utils.training.packing import PackedBatch, PackedGpt, SpecialTokens
from utils.training.preparation import ChosenClips, PreparedData, choose_all_clips
from utils.training.references import ReferencePairs
from utils.training.run_saver import RunSaver, Scorer
from utils.training.step import Evaluator, TrainStep
from utils.xtts import checkpoints


class TrainResult(NamedTuple):
    """Result of a run.

    Attributes:
        run: Folder of the run.
        best: Folder of the best checkpoint on the evaluation clips; None if none was better than the base model.
        updates: Updates done.
        train_loss: Running mean of the audio loss.
        eval_losses: Losses of the last evaluation.
        seconds: Time trained, over all sessions.
    """

    run: Path
    best: Path | None
    updates: int
    train_loss: float | None
    eval_losses: dict[str, float]
    seconds: float


# Long because it is the whole story of a run: each step is one call, and what passes between them has a name here.
def fit(  # noqa: PLR0913  # all but four have defaults
    gpt: nn.Module,
    data: PreparedData,
    config: TrainConfig,
    folder: Path,
    report: Report = ignore,
    should_stop: ShouldStop = never_stop,
    *,
    ranks: Ranks | None = None,
    samples: CheckpointSamples | None = None,
    scorer: Scorer | None = None,
    reported: int = 0,
    replaced: Mapping[str, object] | None = None,
) -> TrainResult:
    """Train coqui's GPT, from the last save in the folder if there is one.

    Args:
        gpt: The model, with its optimizations applied.
        data: Its data, of ``prepare_data``.
        config: Settings of the run.
        folder: Folder of the run, for checkpoints, samples and the resume state.
        report: Called with each fact of what happens.
        should_stop: Asked after each update; a stop raises ``StopRequested``.
        ranks: This process among those that train together; by default it is the only one.
        samples: What is spoken at each evaluation; by default the sentences of the settings.
        scorer: Scores what is spoken; without one, the evaluation loss picks the best checkpoint.
        reported: The last update that an earlier session reported.
        replaced: Settings that were chosen and did not pass the test of the GPU; ``config`` has others instead.
    """
    optimizations = TrainingOptimizer(config)
    ranks = ranks or Ranks(make_accelerator(config, optimizations.precision.dtype, folder))
    samples = samples or CheckpointSamples(config, data.clips, folder, report)
    tracker = Tracker(config, ranks.accelerator, folder, report)

    # 1. The clips of every update, and the update itself: forward, backward, optimizer, average.
    clips = choose_all_clips(data, config, ClipLimits.from_config(config, gpt), report)
    plan = UpdatePlan.from_config(config, clips.train.lengths, ranks.count, clips.train.clips, clips.replay)
    report(References(**{name: round(share, 4) for name, share in plan.reference_shares().items()}))
    total = min(config.max_steps or sys.maxsize, len(plan) * config.num_epochs)
    step = make_step(gpt, config, ranks, total, report)
    step.clip_names = lambda update: (clips.train.clips[clip].audio for clip in plan[update.number].clips.tolist())

    # 2. What reads, evaluates and saves around it.
    grid = compile_lengths(clips.train.lengths) if config.use_compile else ()
    spec = BatchSpec(config.batch_size, config.batch_tokens, ranks.index, ranks.count, grid)
    throughput = Throughput(total, processes=ranks.count, device=ranks.accelerator.device)
    dataset_hash = metadata.fingerprint(list(clips.train.clips))
    saver = RunSaver(folder, step, data, dataset_hash, throughput, len(plan), samples, scorer, reported, replaced or {})
    loader = make_loader(clips.train, plan, SpecialTokens.from_model(gpt), spec, config, report)
    loop = TrainingLoop(saver, loader, make_evaluator(step, clips, plan, spec), total, tracker.log, should_stop)

    # 3. Train, and report what is really active.
    active = optimizations.what_is_on(gpt)
    report(WhatIsOn(active))
    FirstBatch(step, lambda parts, kernels: report(WhatIsOn({**active, **parts}, kernels)))
    if saved := saver.restore():
        loop.state = saved
        report(Resumed(saved.update, loop.epoch))
    step.allocate()
    loop.run()
    tracker.close()
    state = loop.state
    best = checkpoints.checkpoint_folder(folder, state.best_update) if state.best_update else None
    return TrainResult(folder, best, state.update, state.train_loss, state.eval_losses, throughput.seconds)


def make_step(gpt: nn.Module, config: TrainConfig, ranks: Ranks, total: int, report: Report = ignore) -> TrainStep:
    """Move the model to its device, and put optimizer, schedule and average around it."""
    device = ranks.accelerator.device
    model = PackedGpt(gpt.to(device), config.label_smoothing)
    optimizer, change = make_optimizer(model, config, device)
    report(change)
    schedule = make_schedule(optimizer, config.lr_scheduler, total, config.warmup_steps, config.warmup_share)
    ema = Ema(gpt, config.ema_decay, config.ema_device) if config.enable_ema else None
    wrapped, optimizer = ranks.accelerator.prepare(model, optimizer)  # for several processes and mixed precision
    return TrainStep(config, ranks, wrapped, optimizer, schedule, ema, report)


def make_loader(
    clips: FeatureSource, plan: UpdatePlan, tokens: SpecialTokens, spec: BatchSpec, config: TrainConfig, report: Report
) -> UpdateLoader:
    """Read the clips in worker processes, or in a thread where these would only take cores from the training."""
    loading = UnslothStyleOptimizations().dataloader_settings()
    workers = int(loading["num_workers"] or 0) if config.num_workers < 0 else config.num_workers
    pinned = bool(loading["pin_memory"])
    report(Loading(workers, pinned))
    return UpdateLoader(clips, plan, tokens, spec, workers=workers, pin=pinned, ahead=loading["prefetch_factor"])


def make_evaluator(step: TrainStep, clips: ChosenClips, plan: UpdatePlan, spec: BatchSpec) -> Evaluator:
    """Evaluate on the clips that are held out, of the run itself and of each other language."""
    tokens = SpecialTokens.from_model(step.packed.gpt)

    def batches_of(source: FeatureSource) -> Callable[[], Iterator[PackedBatch]]:
        heard = ReferencePairs(source.clips, source.lengths.frames).draw(0, 0) if plan.pairs else None
        return partial(eval_batches, source, tokens, spec, heard)

    others = {language: batches_of(source) for language, source in clips.others.items()}
    return Evaluator(step.model, batches_of(clips.held_out), step.ranks, step.config.text_loss_weight, step.ema, others)
