"""How much more data would bring: the same training on four sizes of a dataset, and the line through its results.

All trainings make the same number of updates and are judged on the same held-out clips, so only the data differ. What
falls by the same amount with each doubling is a straight line over the logarithm of the minutes; that is assumed, and
the scatter around the line tells how sure its continuation is.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from utils.config import TrainConfig
from utils.core.facts import Fact, Progress, Report, WarningFact
from utils.dataset.clip import total_seconds
from utils.dataset.metadata import ClipLists
from utils.evaluation.voice_scores import SpokenSentence, VoiceScorer, find_phone_judge
from utils.studio.loading import chosen_checkpoint
from utils.studio.models import model_source
from utils.studio.paths import Project
from utils.training.checkpoint_samples import CheckpointSamples
from utils.training.facts import Train
from utils.training.fit import fit
from utils.training.preparation import PreparedData, prepare_data
from utils.training.run_saver import Scorer
from utils.training_optimizations import TrainingOptimizer
from utils.xtts.model import load_gpt
from utils.xtts.pronunciations import overrides

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHARES = (0.125, 0.25, 0.5, 1.0)
SEEDS = (0, 1)
TRAININGS = list(product(SHARES, SEEDS))
SENTENCES = 4  # that are spoken and judged after each training
MIN_UPDATES = 8
PROBED = 4
PERCENTILE = 0.975  # of the 95 % interval
MEASURES = ("loss", "phone_error", "similarity")


class CurvePoint(NamedTuple):
    """What a training on part of the clips reached."""

    minutes: float
    seed: int
    passes: float  # over its clips
    loss: float
    phone_error: float | None = None
    similarity: float | None = None


class Trend(NamedTuple):
    """A line over the logarithm of the minutes; uncertainties are half the 95 % intervals."""

    per_doubling: float
    uncertainty: float
    predicted: float
    predicted_uncertainty: float

    @property
    def is_sure(self) -> bool:
        """Return whether the direction is beyond doubt."""
        return abs(self.per_doubling) > self.uncertainty


def trend(points: Sequence[CurvePoint], measure: str, minutes: float) -> Trend | None:
    """Fit the line of a measure and continue it to another number of minutes.

    Returns None with fewer than four values, or if all are of the same size, as with a single clip.
    """
    from scipy.stats import linregress, t

    known = [(point.minutes, value) for point in points if (value := getattr(point, measure)) is not None]
    if len(known) < 4 or len({size for size, _ in known}) < 2:  # a line through fewer says nothing about its error
        return None
    x = np.log2([size for size, _ in known])
    line = linregress(x, [value for _, value in known])
    uncertainty = float(t.ppf(PERCENTILE, len(x) - 2) * line.stderr)
    at = float(np.log2(minutes))
    reach = uncertainty * np.sqrt((len(x) + 1) * x.var() + (at - x.mean()) ** 2)
    return Trend(float(line.slope), uncertainty, float(line.intercept + line.slope * at), float(reach))


def measure_curve(
    clips: ClipLists, config: TrainConfig, folder: Path, seconds: float, report: Report
) -> list[CurvePoint]:
    """Train on parts of the clips within a time, in the folder of their project; each warning is reported once."""
    end = time.monotonic() + seconds
    train = partial(_train, pronunciations=Project(folder).pronunciations, report=_warnings_once(report))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".curve-", ignore_cleanup_errors=True) as scratch:
        runs = Path(scratch, "runs")
        _, update, rest = train(clips, _of_length(config, PROBED), runs / "probe")
        updates = int(((end - time.monotonic()) / len(TRAININGS) - rest) / update)
        settings = _of_length(config, max(MIN_UPDATES, updates))
        points = []
        for number, (share, seed) in enumerate(TRAININGS):
            report(Progress(number, len(TRAININGS), "curve"))
            seeded = settings.model_copy(update={"seed": seed})
            points.append(train(subset(clips, share, seed), seeded, runs / str(number))[0])
    return points


def _warnings_once(report: Report) -> Report:
    warned = list[Fact]()

    def warn(fact: Fact) -> None:
        if isinstance(fact, WarningFact) and fact not in warned:
            warned.append(fact)
            report(fact)

    return warn


def _of_length(config: TrainConfig, updates: int) -> TrainConfig:
    """Return the settings of a training that is evaluated once, at its end."""
    length = {"num_epochs": 1000, "max_steps": updates, "eval_step": updates}
    once = {"save_n_checkpoints": 1, "sample_texts": "-", "score_sentences": SENTENCES}
    return config.model_copy(update=length | once)


def subset(clips: ClipLists, share: float, seed: int) -> ClipLists:
    """Return the lists with a random part of the clips to train on."""
    order = np.random.default_rng(seed).permutation(len(clips.train))
    chosen = order[: max(1, round(share * len(order)))]
    return replace(clips, train=tuple(clips.train[at] for at in sorted(chosen)))


def _train(
    clips: ClipLists, config: TrainConfig, run: Path, pronunciations: Path, report: Report
) -> tuple[CurvePoint, float, float]:
    """Train once; return its evaluation with the scores, the seconds of an update, and those of all else."""
    scores = {}
    scorer = VoiceScorer(config.language, find_phone_judge(config.language, clips.folder, pronunciations))

    def score(spoken: Sequence[SpokenSentence], _loss: float, _base_loss: float | None) -> dict[str, float]:
        scores.update(scorer(spoken))
        return {}

    run.mkdir(parents=True)
    data = prepare_data(clips, (), config, run, model_source(report), overrides=overrides(pronunciations))
    torch.manual_seed(config.seed)
    gpt = load_gpt(data.base.folder, data.tokenizer)
    TrainingOptimizer.from_config(config).apply(gpt)
    loss, seconds, rest = _fit(gpt, data, config, run, report, score)
    return _point(clips, config, loss, scores), seconds, rest


def _fit(
    gpt: torch.nn.Module, data: PreparedData, config: TrainConfig, run: Path, report: Report, scorer: Scorer
) -> tuple[float, float, float]:
    """Train; return the loss, the seconds of an update, and those of all else."""
    updated = []  # when

    def hear(fact: Fact) -> None:
        if isinstance(fact, Train):
            updated.append(time.monotonic())
        report(fact)

    samples = CheckpointSamples(config, data.clips, run, hear, chosen_checkpoint, run)
    started = time.monotonic()
    result = fit(gpt, data, config, run, hear, samples=samples, scorer=scorer)
    took = time.monotonic() - started
    seconds = (updated[-1] - updated[0]) / max(1, len(updated) - 1)
    return result.eval_losses["loss"], seconds, took - seconds * len(updated)


def _point(clips: ClipLists, config: TrainConfig, loss: float, scores: Mapping[str, float]) -> CurvePoint:
    minutes = total_seconds(clips.train) / 60
    passes = config.max_steps * config.batch_size * config.grad_acumm / len(clips.train)
    heard = scores.get("intelligibility")
    error = None if heard is None else round(1 - heard, 4)
    return CurvePoint(minutes, config.seed, passes, loss, error, scores.get("similarity"))


def plot(points: Sequence[CurvePoint]) -> "Figure":
    """Draw each measure over the minutes, with its line continued to twice the data."""
    from matplotlib.figure import Figure

    known = [name for name in MEASURES if any(getattr(point, name) is not None for point in points)]
    figure = Figure(figsize=(4 * len(known), 3), layout="constrained")
    minutes = [point.minutes for point in points]
    most = max(minutes)
    sizes = [min(minutes), most, 2 * most]
    ticks = [round(share * most, 1) for share in (*SHARES, 2)]
    for axes, name in zip(figure.subplots(1, len(known), squeeze=False)[0], known, strict=True):
        axes.plot(minutes, [getattr(point, name) for point in points], "o")
        _draw_line(axes, sizes, [line for size in sizes if (line := trend(points, name, size))])
        axes.set(xscale="log", xlabel="minutes of speech", title=name.replace("_", " "))
        axes.set_xticks(ticks, labels=map(str, ticks))
        axes.minorticks_off()
    return figure


def _draw_line(axes: "Axes", sizes: Sequence[float], line: Sequence[Trend]) -> None:
    """Draw a line, if there is one, with the uncertainty of its end."""
    if line:
        axes.plot(sizes, [at.predicted for at in line], "--")
        axes.errorbar(sizes[-1:], [line[-1].predicted], [line[-1].predicted_uncertainty], fmt="s", capsize=4)
