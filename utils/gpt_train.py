"""Fine-tune XTTS: the recipe from the clips of a project to its voice, from top to bottom."""

import inspect
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from utils.config import TrainConfig
from utils.core.errors import ChildError, explain
from utils.core.events import as_integer, read_events, tail_offset
from utils.core.facts import Fact, Report, ShouldStop, StopRequested, raise_if_stopped
from utils.core.monitor import watch_gpu
from utils.core.processes import run_to_end
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
from utils.studio import paths, runs
from utils.studio.downloads import give_consent, require_consent
from utils.studio.job import Job
from utils.studio.loading import chosen_checkpoint
from utils.studio.models import model_source
from utils.studio.paths import Project, project_of
from utils.studio.progress import EventPrinter
from utils.studio.runs import Run
from utils.training import facts, memory
from utils.training.checkpoint_samples import CheckpointSamples
from utils.training.clips import ClipLimits, select_clips
from utils.training.distribution import Ranks, from_first, make_accelerator
from utils.training.errors import TrainingError
from utils.training.fit import TrainResult, fit
from utils.training.gpu_test import is_tested, safe_config
from utils.training.launcher import is_member
from utils.training.model_size import ClipSize, ModelSize
from utils.training.optimizations import TrainingOptimizer
from utils.training.optimizers import require_optimizer
from utils.training.precision import choose_by_time
from utils.training.preparation import PreparedData, prepare_data, text_change
from utils.training.probe import probe
from utils.training.run_saver import Scorer
from utils.training.speedups.dropout import set_dropout
from utils.xtts import checkpoints, pronunciations
from utils.xtts.certificate import untested
from utils.xtts.device import COUNTED, choose_device, gpu_name, limit_kernel_cache, own_device
from utils.xtts.export import promote
from utils.xtts.facts import KernelsUntested
from utils.xtts.model import load_gpt

__all__ = ["TrainResult", "train", "train_gpt"]


def train_gpt(
    *, resume: str = "", accept_licence: bool = False, progress: bool = True, **settings: object
) -> TrainResult:
    """Fine-tune in this process and return the result; every setting of TrainConfig is a keyword.

    A run that is stopped raises ``utils.core.facts.StopRequested`` after it was saved.

    Args:
        resume: Name of a run of the project to continue, or "latest". It keeps its settings; only
            those that docs/TRAINING.md lists may be given other values.
        accept_licence: Accept the licence of the published model, once for all runs on this computer.
        progress: Print one line of progress to standard error.
        settings: Settings of the run. ``output_path`` is the folder of the project.

    Example:
        train_gpt(version="tiny", language="Amharic", output_path="output/mine", num_epochs=5)
    """
    config = TrainConfig.parse(settings, source="train_gpt")
    if config.num_processes > 1 and not is_member():
        raise TrainingError("one_process")
    if accept_licence:
        give_consent()
    if not resume:
        require_consent(config.version, config.custom_model)
        require_optimizer(config)
    project = project_of(config)
    if resume:
        run = find_training(project, resume)
        config = TrainConfig.load_own(run.config).model_copy(update={name: getattr(config, name) for name in settings})
    config = config.model_copy(update={"output_path": str(project.root)})
    run = runs.reopen(run) if resume else runs.create("train", config, project)
    printer = EventPrinter(sys.stderr, everything=False) if progress else None
    try:
        with Job(run) as job:  # records how the run ended
            job.events.listener = printer
            return train(config, run, job.report, job.should_stop)
    finally:
        if printer:
            printer.close()


def find_training(project: Project, name: str) -> Run:
    """Find a training run by its name, or the newest one as "latest"."""
    if name != "latest":
        return runs.find_run(project, name)
    if not (trainings := runs.list_runs(project, "train")):
        raise TrainingError("no_run", project.root)
    return trainings[0]


# Long because it is the recipe: each step is a few calls, and the steps share the device, the data and the model.
def train(config: TrainConfig, run: Run, report: Report, should_stop: ShouldStop) -> TrainResult:
    """Perform a run from start to end, or continue it where it was saved."""
    # 1. The device, and settings that work on it.
    limit_kernel_cache()
    chosen = config
    config = certified(chosen, run.config, report, should_stop)
    replaced = {name: value for name, value in chosen if value != getattr(config, name)}
    device = choose_device(config.device)
    require_optimizer(config)
    report = partial(with_untested_kernels, report, run.config, device)
    free = memory.Device.detect(config)  # before anything is loaded
    optimizations = TrainingOptimizer.from_config(config)

    # 2. The data. The first process prepares it, and the others find it ready; only then they form a group.
    data = prepare_once(config, run, report, should_stop)
    size = ModelSize.from_folder(data.base.folder)
    choose = partial(choose_by_time, optimizations.precision, size, paths.PRECISIONS)
    from_first(lambda: choose().dtype)  # it measures alone, and the others read its times
    optimizations.precision = choose()
    free = replace(free, half=optimizations.precision.dtype != "no")  # the setting stays what the user asked for
    ranks = Ranks(make_accelerator(config, optimizations.precision.dtype, run.folder))
    config = fit_memory(config, replaced, run, data, free, report)

    # 3. The model, with all optimizations applied.
    torch.manual_seed(config.seed + ranks.index)
    gpt = load_gpt(data.base.folder, data.tokenizer)
    report(text_change(config, data.clips.clips))
    for change in (set_dropout(gpt, config.dropout), *optimizations.apply(gpt).values()):
        report(change)

    # 4. The training, from the last save if there is one; at each evaluation, the model speaks.
    root = run.project.root
    open_voice = partial(chosen_checkpoint, output=root.parent)
    samples = CheckpointSamples(config, data.clips, run.folder, report, open_voice, root)
    scorer = make_scorer(config, data.clips.folder, report) if config.score_sentences else None
    reported = last_update(run)
    try:
        with watch_gpu(report) if device == "cuda" else nullcontext():  # else what it reads is idle
            result = fit(
                gpt,
                data,
                config,
                run.folder,
                report,
                should_stop,
                ranks=ranks,
                samples=samples,
                scorer=scorer,
                reported=reported,
                replaced=replaced,
            )
    except StopRequested:
        if ranks.is_first and (step := checkpoints.best_step(run.folder)):
            report(facts.Offer(step, run.name, run.project.argument))
        raise

    # 5. The voice.
    if ranks.is_first:
        make_first_voice(run, data, report)
    ranks.close()
    return result


def prepare_once(config: TrainConfig, run: Run, report: Report, should_stop: ShouldStop) -> PreparedData:
    """Prepare the data in the first process while the others wait, then load it in each of them."""
    project = run.project
    prepared = []

    def prepare() -> str:
        clips = metadata.clips_of_run(run.folder, config, project.dataset)
        metadata.store_clips_of_run(run.folder, config, clips)
        others = metadata.other_clips_of_run(run.folder, config)
        own = pronunciations.overrides(project.pronunciations)
        source = model_source(report, should_stop)
        prepared.append(prepare_data(clips, others, config, run.folder, source, overrides=own, replaced=project.ready))
        return str(prepared[0].base.folder)

    from_first(prepare)
    if not prepared:
        prepare()
    return prepared[0]


def make_first_voice(run: Run, data: PreparedData, report: Report) -> None:
    """Make the first run that finishes the model of its project."""
    project = run.project
    if not project.ready.exists() and checkpoints.best_step(run.folder) is not None:
        best = checkpoints.find(run.folder, "best")
        promote(best, project.ready, paths.MODELS, data.clips.voice, pronunciations=project.pronunciations)
        report(facts.Ready(str(project.ready)))


def certified(config: TrainConfig, file: Path, report: Report, should_stop: ShouldStop) -> TrainConfig:
    """Test what the GPU was not tested for, in a process of its own, and replace the settings that failed on it."""
    device = choose_device(config.device)
    if device != "cpu" and config.num_processes == 1 and not is_tested(device, paths.GPU_CERTIFICATE, config):
        report(facts.GpuTest(gpu_name(device)))
        command = ["-m", "utils", "doctor", "--gpu", device, "--config", str(file)]
        try:
            run_to_end(command, partial(raise_if_stopped, should_stop))
        except ChildError as error:  # also where a check failed
            report(facts.GpuTestFailed(explain(error)))
    config, replaced = safe_config(config, device, paths.GPU_CERTIFICATE)
    for setting in replaced:
        report(setting)
    return config


def with_untested_kernels(report: Report, file: Path, device: str, fact: Fact) -> None:
    """Report a fact, and after the first batch the attention kernels that the test of this device has not seen."""
    report(fact)
    if isinstance(fact, facts.WhatIsOn):
        kernels = untested(device, paths.GPU_CERTIFICATE, fact.kernels)
        if kernels:
            report(KernelsUntested(kernels, f"python -m utils doctor --gpu --config {shlex.quote(str(file))}"))


def fit_memory(
    config: TrainConfig,
    replaced: Mapping[str, object],
    run: Run,
    data: PreparedData,
    free: memory.Device,
    report: Report,
) -> TrainConfig:
    """Report the memory that a run needs, and if it is to find its batch size, make that a setting of the run."""
    limits = ClipLimits(config.max_audio_length, config.max_text_length)
    chosen = select_clips(data.features, data.clips.train, limits)[0]
    if not chosen.clips:
        return config  # ``fit`` says why
    clip = ClipSize.longest(chosen.lengths)
    size = ModelSize.from_folder(data.base.folder)
    if config.find_batch_size:
        config = find_batch(config, free, size, clip)
        write_atomically(run.config, memory.changed(config, replaced).to_signed_yaml())
        report(facts.BatchSize(config.batch_size, config.grad_acumm))
    try:
        plan = memory.estimate(config, free, size, clip)
    except Exception as error:  # noqa: BLE001  # it only informs, and a run does not depend on it
        report(facts.MemoryUnknown(f"{type(error).__name__}: {error}"))
        return config
    report(plan)
    if not plan.fits:
        report(facts.MemoryShort(plan.needed, plan.available))
    return config


def find_batch(config: TrainConfig, free: memory.Device, size: ModelSize, clip: ClipSize) -> TrainConfig:
    """Return settings with the largest batch that fits; on a GPU, batches of the longest clips are tried."""
    largest = None
    if free.kind in COUNTED:
        with probe(config, size, own_device(config.device)) as probed:
            largest = probed.largest_batch(clip, config.batch_size * config.grad_acumm, round(0.9 * free.memory))
    config = memory.fit_batch(config, free, size, clip, largest=largest)[0]
    return memory.changed(config, {"find_batch_size": False})  # a resumed run must have the same batches


def make_scorer(config: TrainConfig, dataset: Path, report: Report) -> Scorer:
    """Return what scores the spoken sentences; the recogniser has a process of its own, for each evaluation anew.

    Without one, the phone recogniser that checks texts judges, if it knows the language.
    """

    def score(spoken: Sequence[SpokenSentence], loss: float, base_loss: float | None) -> dict[str, float]:
        with ExitStack() as stack:
            judge: Judge | None
            if config.score_model:
                recogniser = open_recogniser(config.score_model, config.language, report)
                judge = TranscriptJudge(stack.enter_context(recogniser))
            else:
                judge = find_phone_judge(config.language, dataset, project_of(config).pronunciations)
            scores = VoiceScorer(config.language, judge)(spoken)
        whole = composite(scores, loss, base_loss)
        return scores if whole is None else {**scores, "composite": whole}

    return score


def last_update(run: Run) -> int:
    """Return the last update that a run has reported; 0 if none."""
    events = read_events(run.events, tail_offset(run.events)).events
    steps = [as_integer(event.get("step")) or 0 for event in events if event["kind"] == facts.Train.kind]
    return steps[-1] if steps else 0


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
