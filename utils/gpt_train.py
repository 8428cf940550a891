"""Fine-tune XTTS: the recipe from clip lists to a voice, from top to bottom."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from utils.config import TrainConfig
from utils.core import paths
from utils.core.errors import ChildError, ConfigError, RunError
from utils.core.events import Change
from utils.core.facts import StopRequested
from utils.core.monitor import idle_gpu_warning
from utils.core.paths import Project
from utils.core.processes import read_lines
from utils.core.storage import write_atomically
from utils.dataset import metadata
from utils.evaluation.voice_scores import (
    Judge,
    SpokenSentence,
    TranscriptJudge,
    VoiceScorer,
    composite,
    find_phone_judge,
)
from utils.recognition.recognisers.isolated import open_recogniser
from utils.studio import runs
from utils.studio.downloads import give_consent
from utils.studio.job import Job
from utils.studio.progress import EventPrinter
from utils.studio.runs import Run
from utils.training import memory
from utils.training.batches import BatchSpec, UpdatePlan, compile_lengths
from utils.training.certificate import safe_config
from utils.training.checkpoint_samples import CheckpointSamples
from utils.training.clips import ClipLimits, FeatureSource, select_clips
from utils.training.data_loader import Update, UpdateLoader, eval_batches
from utils.training.distribution import Ranks, make_accelerator
from utils.training.ema import Ema
from utils.training.first_batch import FirstBatch
from utils.training.launcher import is_member
from utils.training.loop import TrainingLoop
from utils.training.metrics import Throughput, Tracker
from utils.training.model_size import ClipSize, ModelSize, random_gpt
from utils.training.optimizers import make_optimizer, make_schedule
from utils.training.packing import PackedBatch, PackedGpt, SpecialTokens
from utils.training.preparation import PreparedData, choose_clips, mix_clips, prepare_data, text_change
from utils.training.references import Partners
from utils.training.run_saver import RunSaver, Scorer
from utils.training.speedups.dropout import set_dropout
from utils.training.step import Evaluator, TrainStep
from utils.training_optimizations import TrainingOptimizer, UnslothStyleOptimizations
from utils.xtts import checkpoints
from utils.xtts.certificate import read as read_certificate
from utils.xtts.device import choose_device, free_memory, limit_kernel_cache
from utils.xtts.export import promote
from utils.xtts.model import load_gpt

OFFER = (
    "The best checkpoint of this run is that of step {step}. "
    "To make it the finished model of the project: python -m utils checkpoints promote {run} best --project {project}"
)


@dataclass(frozen=True)
class TrainResult:
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


def train_gpt(
    *, resume: str = "", accept_licence: bool = False, progress: bool = True, **settings: object
) -> TrainResult:
    """Fine-tune in this process and return the result; every setting of TrainConfig is a keyword.

    A run that is stopped raises ``utils.core.facts.StopRequested`` after it was saved.

    Args:
        resume: Name of a run of the project to continue, or "latest". It keeps its settings; only
            those that CHECKPOINT_GUIDE.md lists may be given other values.
        accept_licence: Accept the licence of the published model, once for all runs on this computer.
        progress: Print one line of progress to standard error.
        settings: Settings of the run. ``output_path`` is the folder of the project.

    Example:
        train_gpt(version="tiny", language="Amharic", output_path="output/mine", num_epochs=5)
    """
    config = TrainConfig.parse(settings, source="train_gpt")
    if config.num_processes > 1 and not is_member():
        raise ConfigError("train_gpt trains in one process.", hint="Use the command: python -m utils train.")
    if accept_licence:
        give_consent()
    project = config.project
    if resume:
        run = find_training(project, resume)
        config = TrainConfig.load(run.config).model_copy(update={name: getattr(config, name) for name in settings})
    config = config.model_copy(update={"output_path": str(project.root)})
    run = runs.reopen(run) if resume else runs.create("train", config, project)
    printer = EventPrinter(sys.stderr, everything=False) if progress else None
    try:
        with Job(run) as job:  # records how the run ended
            job.events.listener = printer
            return train(job, config)
    finally:
        if printer:
            printer.close()


def find_training(project: Project, name: str) -> Run:
    """Find a training run by its name, or the newest one as "latest"."""
    if name != "latest":
        return runs.find_run(project, name)
    if not (trainings := runs.list_runs(project, "train")):
        raise RunError(f"{project.root} has no training run.", hint="Leave out resume to start one.")
    return trainings[0]


def train(job: Job, config: TrainConfig) -> TrainResult:
    """Perform a run from start to end, or continue it where it was saved."""
    # 1. Devices and data. The first process prepares the data; the others find it ready.
    limit_kernel_cache()
    config = certified(job, config)
    free = memory.Device.detect(config)  # before anything is loaded
    optimizations = TrainingOptimizer.from_config(config)
    ranks = Ranks(make_accelerator(config, optimizations.get_mixed_precision_config().dtype, job.run))
    with ranks.accelerator.main_process_first():
        data = prepare_data(job, config)
    if config.find_batch_size:
        config = find_batch_size(job, config, data, free)

    # 2. The model, with all optimizations applied.
    torch.manual_seed(config.seed + ranks.index)
    gpt = load_gpt(data.base.folder, data.tokenizer)
    size = ModelSize.from_model(gpt)
    texts = text_change(config, data.clips.clips)
    for change in (texts, set_dropout(gpt, config.dropout), *optimizations.apply(gpt).values()):
        emit_change(job, change)

    # 3. The training loop around it, and a report of what is active.
    tracker = Tracker(config, ranks.accelerator, job.run, partial(warn, job))
    loop = build_loop(job, config, ranks, data, gpt, tracker)
    active = optimizations.what_is_on(gpt)
    emit_active(job, active)
    FirstBatch(loop.step, lambda observed: emit_active(job, active | observed))
    emit_memory_estimate(job, config, free, size, ClipSize.longest(loop.loader.plan.lengths))

    # 4. Train, from the last save if there is one.
    if saved := loop.saver.restore():
        loop.state = saved
        job.events.emit("resumed", step=saved.update, epoch=round(saved.update / loop.per_epoch, 3))
    try:
        with idle_gpu_warning(job.report):
            loop.run()
    except StopRequested:
        if ranks.is_first and (step := checkpoints.best_step(job.run.folder)):
            offer = OFFER.format(step=step, run=job.run.name, project=job.run.project.root.name)
            job.events.emit("offer", step=step, message=offer)
        raise
    tracker.close()

    # 5. The first run that finishes becomes the model of the project.
    if ranks.is_first:
        publish_first_voice(job, data.clips.voice)
    ranks.close()
    best = loop.state.best_update
    best_folder = checkpoints.checkpoint_folder(job.run.folder, best) if best else None
    losses = loop.state.train_loss, loop.state.eval_losses
    return TrainResult(job.run.folder, best_folder, loop.state.update, *losses, loop.throughput.seconds)


def build_loop(
    job: Job, config: TrainConfig, ranks: Ranks, data: PreparedData, gpt: nn.Module, tracker: Tracker
) -> TrainingLoop:
    device = ranks.accelerator.device
    limits, tokens = ClipLimits.from_config(config, gpt), SpecialTokens.from_model(gpt)
    train_clips = choose_clips(job, data.features, data.clips.train, limits, "train")
    eval_clips = choose_clips(job, data.features, data.clips.eval, limits, "eval")
    train_clips, replay = mix_clips(job, config, train_clips, data.others, limits)
    plan = UpdatePlan.from_config(config, train_clips.lengths, ranks.count, train_clips.clips, replay)
    emit_references(job, plan)
    total = min(config.max_steps or sys.maxsize, len(plan) * config.num_epochs)
    grid = compile_lengths(train_clips.lengths) if config.use_compile else ()
    spec = BatchSpec(config.batch_size, config.batch_tokens, ranks.index, ranks.count, grid)

    model = PackedGpt(gpt.to(device), config.label_smoothing)
    optimizer, change = make_optimizer(model, config, device)
    emit_change(job, change)
    schedule = make_schedule(optimizer, config.lr_scheduler, total, config.warmup_steps, config.warmup_share)
    ema = Ema(gpt, config.ema_decay, config.ema_device) if config.enable_ema else None
    wrapped, wrapped_optimizer = ranks.prepare(model, optimizer)

    def clip_names(update: Update) -> Iterator[str]:
        return (train_clips.clips[number].audio for number in plan[update.number].clips.tolist())

    step = TrainStep(config, ranks, wrapped, wrapped_optimizer, schedule, ema, partial(warn, job), clip_names)
    saver = RunSaver(
        job=job,
        config=config,
        base=data.base,
        dataset_hash=metadata.fingerprint(list(train_clips.clips)),
        gpt=gpt,
        step=step,
        throughput=Throughput(total, processes=ranks.count, device=device),
        tokenizer=data.tokenizer,
        per_epoch=len(plan),
        samples=CheckpointSamples(job, config, data.clips, device),
        scorer=make_scorer(job, config, data.clips.folder) if config.score_sentences else None,
    )
    loading = UnslothStyleOptimizations(device).dataloader_settings()
    workers = int(loading["num_workers"] or 0) if config.num_workers < 0 else config.num_workers
    pin, ahead = bool(loading["pin_memory"]), loading["prefetch_factor"]
    loader = UpdateLoader(train_clips, plan, tokens, spec, workers=workers, pin=pin, ahead=ahead)
    message = f"{workers} workers" if workers else "a thread of the training process"
    job.events.emit("loading", message=f"Clips are read by {message}.", workers=workers, pinned=pin)

    def batches_of(clips: FeatureSource) -> Callable[[], Iterator[PackedBatch]]:
        heard = Partners(clips.clips, clips.lengths.frames).draw(0, 0) if plan.partners else None
        return partial(eval_batches, clips, tokens, spec, heard)

    others = {
        clips.language: batches_of(choose_clips(job, features, clips.lists.eval, limits, f"eval {clips.language}"))
        for clips, features in data.others
    }
    evaluator = Evaluator(wrapped, batches_of(eval_clips), ranks, config.text_loss_weight, ema, others)
    return TrainingLoop(saver, loader, evaluator, total, tracker.log)


def emit_active(job: Job, parts: Mapping[str, str | int]) -> None:
    job.events.emit("what_is_on", message="; ".join(f"{name}: {state}" for name, state in parts.items()), parts=parts)


def find_batch_size(job: Job, config: TrainConfig, data: PreparedData, free: memory.Device) -> TrainConfig:
    """Divide the effective batch into as few parts as fit, and make that the settings of the run.

    A GPU is tried with random data of the longest clips; for a CPU the estimate decides.
    """
    limits = ClipLimits(config.max_audio_length, config.max_text_length)
    clip = ClipSize.longest(select_clips(data.features, data.clips.train, limits)[0].lengths)
    size = ModelSize.from_config(config)
    largest = None
    if free.kind == "cuda":
        optimizations, gpt = TrainingOptimizer.from_config(config), random_gpt(size)
        optimizations.apply(gpt)
        dtype = optimizations.get_mixed_precision_config().torch_dtype
        test = memory.MemoryTest(gpt, config, clip, optimizations.device, dtype)
        largest = test.largest_batch(config.batch_size * config.grad_acumm, round(0.9 * free.memory))
        del gpt, test
        free_memory()
    found = memory.fit_batch(config, free, size, clip, largest=largest)[0]
    found = memory.changed(found, {"find_batch_size": False})  # a resumed run must have the same batches
    write_atomically(job.run.config, found.to_yaml())
    job.events.emit("batch_size", message=f"Batches: {memory.batch_description(found)}.", batch_size=found.batch_size)
    return found


def make_scorer(job: Job, config: TrainConfig, dataset: Path) -> Scorer:
    """Return what scores the spoken sentences; the recogniser has a process of its own, for each evaluation anew.

    Without one, the phone recogniser that checks texts judges, if it knows the language.
    """

    def score(spoken: Sequence[SpokenSentence], loss: float, base_loss: float | None) -> dict[str, float]:
        with ExitStack() as stack:
            judge: Judge | None
            if config.score_model:
                recogniser = open_recogniser(config.score_model, config.language, job.report)
                judge = TranscriptJudge(stack.enter_context(recogniser))
            else:
                judge = find_phone_judge(config.language, dataset, config.project.pronunciations)
            scores = VoiceScorer(config.language, judge)(spoken)
        whole = composite(scores, loss, base_loss)
        return scores if whole is None else {**scores, "composite": whole}

    return score


def certified(job: Job, config: TrainConfig) -> TrainConfig:
    """Test the GPU before its first run, in a process of its own, and replace the settings that failed on it."""
    device = choose_device("auto")
    if device == "cuda" and config.num_processes == 1 and read_certificate(device, paths.GPU_CERTIFICATE) is None:
        emit_change(job, Change("gpu_certificate", 0, "testing this GPU before its first run"))
        try:
            for _ in read_lines(["-m", "utils", "doctor", "--gpu"], check=job.stop_if_requested):
                pass
        except ChildError as error:  # also where a check failed
            warn(job, f"Not everything works on this GPU; see python -m utils doctor --gpu. {error}")
    config, changes = safe_config(config, device)
    for change in changes:
        emit_change(job, change)
        warn(job, change.detail)
    return config


def publish_first_voice(job: Job, reference: Path) -> None:
    """Export the best checkpoint to ready/ if the project has no voice yet; later runs replace it when promoted."""
    ready = job.run.project.ready
    if not ready.exists() and checkpoints.best_step(job.run.folder) is not None:
        best = checkpoints.find(job.run.folder, "best")
        promote(best, ready, paths.MODELS, reference, pronunciations=job.run.project.pronunciations)
        job.events.emit("ready", folder=str(ready))


def emit_memory_estimate(job: Job, config: TrainConfig, free: memory.Device, size: ModelSize, clip: ClipSize) -> None:
    """Record the memory that the run needs, and warn if the device has less."""
    try:
        estimate = memory.estimate(config, free, size, clip)
    except Exception as error:  # noqa: BLE001  # it only informs, and a run does not depend on it
        warn(job, f"The memory could not be estimated: {type(error).__name__}: {error}")
        return
    job.events.emit("memory_plan", fits=estimate.fits, message=estimate.summary, parts=estimate.parts)
    if not estimate.fits:
        warn(job, f"{estimate.summary} To see what would fit: python -m utils memory-plan.")


def emit_references(job: Job, plan: UpdatePlan) -> None:
    """Record how much of the audio is learned while it is heard."""
    shares = plan.reference_shares()
    message = (
        f"Reference: {shares['other_clip']:.0%} of the clips use another clip of the speaker. "
        f"{shares['masked']:.0%} of the audio is heard and not learned (masked), "
        f"{shares['heard_unmasked']:.0%} is heard and learned."
    )
    job.events.emit("references", message=message, **{name: round(share, 4) for name, share in shares.items()})


def emit_change(job: Job, change: Change) -> None:
    job.events.emit("optimization", name=change.name, changed=change.changed, detail=change.detail)


def warn(job: Job, message: str) -> None:
    job.events.emit("warning", message=message)


train_gpt.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        *list(inspect.signature(train_gpt).parameters.values())[:-1],
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation)
            for name, field in TrainConfig.model_fields.items()
        ),
    ],
    return_annotation=TrainResult,
)
