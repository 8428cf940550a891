"""Advice on the settings of a run: a value for this dataset and device, and the source of each.

Sources are what people published, upstream's recipe, or "not measured". docs/TRAINING.md holds the evidence.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from utils.config import AUTO_SECONDS, MODEL_SECONDS, TrainConfig
from utils.core import languages, wording
from utils.core.languages import AMHARIC
from utils.dataset.metadata import read_language
from utils.dataset.store import Store

# What to expect from an amount of data.
Promise = Literal["resembles", "few_hours", "tens_of_hours", "hundred_hours"]


# What would improve the result more than any setting.
Improvement = Literal["no_gpu", "more_speech", "more_speakers", "longer_clips"]


TIERS = {"standard": 19.0, "t4": 14.0, "memory_optimized": 11.0, "extreme_memory_optimized": 7.5}  # presets by GiB
BATCHES = ((60, 16), (600, 32), (3000, 64), (math.inf, 252))  # minutes of data, clips per step
PROMISES: tuple[tuple[float, Promise], ...] = (  # up to so many minutes
    (30, "resembles"),
    (300, "few_hours"),
    (3000, "tens_of_hours"),
    (math.inf, "hundred_hours"),
)
FULL_GIB = 11.0  # below it, the weights, gradients and moments of the full model do not fit
UPDATES = 3000  # wanted at least, within the bounds of the epochs


class TrainingData(NamedTuple):
    """What is known of the data and the device."""

    minutes: float
    clips: int
    speakers: int
    longest: float  # seconds of the longest clip
    language: str = AMHARIC.code
    gpu_gib: float | None = None  # None: no GPU
    version: str = "v2.0.2"


def training_data(dataset: Path, gpu_gib: float | None, version: str) -> TrainingData:
    """Return what is known of a dataset; without clips it is empty."""
    store = Store(dataset)
    clips = store.clips(status="kept", split="train") if store.exists else []
    seconds = [clip.span.seconds for clip in clips]
    speakers = len({clip.speaker for clip in clips})
    longest = max(seconds, default=0.0)
    return TrainingData(sum(seconds) / 60, len(clips), speakers, longest, read_language(dataset), gpu_gib, version)


class Recommendation(NamedTuple):
    """A setting with its value; the reason and its source stand in the wording, under ``advice.<why>``."""

    setting: str
    value: object
    why: str
    numbers: tuple[float, ...] = ()  # in the reason, as ``{n0}``

    def text(self, part: Literal["reason", "source"]) -> str:
        values = {f"n{number}": value for number, value in enumerate(self.numbers)}
        return wording.text(f"advice.{self.why}.{part}", values)


@dataclass(frozen=True)
class Advice:
    """Recommended settings, and what to expect from this amount of data."""

    preset: str
    recommendations: list[Recommendation]
    promise: Promise
    gaps: list[Improvement]  # what would improve the result more than any setting

    @property
    def config(self) -> TrainConfig:
        return TrainConfig.parse({item.setting: item.value for item in self.recommendations})


def advise(data: TrainingData) -> Advice:
    promise = next(promise for limit, promise in PROMISES if data.minutes <= limit)
    chosen = [Recommendation(name, getattr(data, name), f"chosen.{name}") for name in ("version", "language")]
    items = _tiny(data) if data.version == "tiny" else _published(data)
    return Advice(preset_for(data), [*chosen, *items], promise, list(_missing(data)))


def preset_for(data: TrainingData) -> str:
    """Return the preset of a device, or for little data."""
    if data.version == "tiny" or data.gpu_gib is None:
        return "tiny_cpu"
    if data.minutes < 120:
        return "small_dataset"
    return next((name for name, least in TIERS.items() if data.gpu_gib >= least), "lora_6gb")


def _tiny(data: TrainingData) -> Iterator[Recommendation]:
    epochs = min(100, max(3, round(130 * 8 / max(1, data.clips))))
    values = {"learning_rate": 3e-4, "batch_size": 8, "grad_acumm": 1, "num_epochs": epochs, "warmup_steps": 4}
    return (Recommendation(name, value, f"tiny.{name}") for name, value in values.items())


# Long because it is one list: every setting that is recommended, in the order in which it is shown.
def _published(data: TrainingData) -> Iterator[Recommendation]:
    has_little = data.minutes < 120
    lora = has_little or (data.gpu_gib or 0) < FULL_GIB
    clips = next(clips for limit, clips in BATCHES if data.minutes <= limit)
    updates = max(1, data.clips // clips)
    epochs = min(20, max(5, math.ceil(UPDATES / updates)))
    if data.language == AMHARIC.code:
        yield Recommendation("use_amharic_g2p", value=True, why="g2p")
    if lora:
        why = "lora_little" if has_little else "lora_memory"
        yield Recommendation("enable_lora", value=True, why=why, numbers=(FULL_GIB,))
        yield Recommendation("lora_rank", 64 if data.minutes > 600 else 16, "lora_rank")
    yield Recommendation("learning_rate", 1e-4 if lora else 5e-6, "rate_lora" if lora else "rate_full")
    yield Recommendation("batch_size", min(clips, 8), "batch_size")
    yield Recommendation(
        "grad_acumm", max(1, round(clips / 8)), "batch_upstream" if clips == 252 else "batch", (clips,)
    )
    yield Recommendation("find_batch_size", data.gpu_gib is not None, "find_batch_size")
    yield Recommendation("num_epochs", epochs, "num_epochs", (updates * epochs,))
    longest = min(MODEL_SECONDS, max(AUTO_SECONDS, math.ceil(data.longest)))
    values = {
        "max_audio_length": longest,
        "reference": "auto",
        "embedding_warmup_steps": 0 if languages.find(data.language).in_xtts else 500,
        "text_loss_weight": 0.01,
        "weight_decay": 1e-2,
        "freeze_first_n_gpt_layers": 0,
        "enable_ema": updates * epochs > 2000,
    }
    yield from (Recommendation(name, value, name) for name, value in values.items())


def _missing(data: TrainingData) -> Iterator[Improvement]:
    if data.gpu_gib is None and data.version != "tiny":
        yield "no_gpu"
    if data.minutes < 120:
        yield "more_speech"
    if data.speakers == 1 and data.minutes > 3000:
        yield "more_speakers"
    if data.longest < 10:
        yield "longer_clips"
