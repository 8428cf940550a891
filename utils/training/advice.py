"""Advice on the settings of a run: a value for this dataset and device, and the source of each.

Sources are what people published, upstream's recipe, or "not measured". docs/TRAINING_RECIPES.md holds the evidence.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from utils.config import AUTO_SECONDS, MODEL_SECONDS, TrainConfig
from utils.core import languages
from utils.core.languages import AMHARIC
from utils.dataset.metadata import read_language
from utils.dataset.store import Store
from utils.training.facts import Gap, Promise

NOT_MEASURED = "not measured"
UPSTREAM = "upstream's recipe"
NEW_LANGUAGE = "XTTSv2-Finetuning-for-New-Languages"
TIERS = {"standard": 19.0, "t4": 14.0, "memory_optimized": 11.0, "extreme_memory_optimized": 7.5}  # presets by GiB
BATCHES = ((60, 16), (600, 32), (3000, 64), (math.inf, 252))  # minutes of data, clips per step
PROMISES = (  # up to so many minutes
    (30, Promise.RESEMBLES, NOT_MEASURED),
    (300, Promise.FEW_HOURS, NEW_LANGUAGE),
    (3000, Promise.TENS_OF_HOURS, "NileTTS, arXiv 2602.15675"),
    (math.inf, Promise.HUNDRED_HOURS, NEW_LANGUAGE),
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
    """A setting with its value and the source of it."""

    setting: str
    value: object
    reason: str
    source: str


@dataclass(frozen=True)
class Advice:
    """Recommended settings, and what to expect from this amount of data."""

    preset: str
    recommendations: list[Recommendation]
    promise: Promise
    promise_source: str
    gaps: list[Gap]  # what would improve the result more than any setting

    @property
    def config(self) -> TrainConfig:
        return TrainConfig.parse({item.setting: item.value for item in self.recommendations})


def advise(data: TrainingData) -> Advice:
    promise, source = next((text, source) for limit, text, source in PROMISES if data.minutes <= limit)
    items = list(_tiny(data) if data.version == "tiny" else _published(data))
    return Advice(preset_for(data), items, promise, source, list(_missing(data)))


def preset_for(data: TrainingData) -> str:
    """Return the preset of a device, or for little data."""
    if data.version == "tiny" or data.gpu_gib is None:
        return "tiny_cpu"
    if data.minutes < 120:
        return "small_dataset"
    return next((name for name, least in TIERS.items() if data.gpu_gib >= least), "lora_6gb")


def _tiny(data: TrainingData) -> Iterator[Recommendation]:
    epochs = min(100, max(3, round(130 * 8 / max(1, data.clips))))
    measured = "configs/tiny_cpu.yaml, measured by the demo"
    yield Recommendation("version", "tiny", "the embedded voice", "chosen")
    yield Recommendation("language", data.language, "of the dataset", "chosen")
    yield Recommendation("learning_rate", 3e-4, "a small model takes a higher rate than XTTS v2", measured)
    yield Recommendation("batch_size", 8, "fits any computer", measured)
    yield Recommendation("grad_acumm", 1, "few clips need many updates", measured)
    yield Recommendation("num_epochs", epochs, "about 130 updates", measured)
    yield Recommendation("warmup_steps", 4, "the run is short", measured)


def _published(data: TrainingData) -> Iterator[Recommendation]:
    is_new = not languages.find(data.language).in_xtts
    has_little = data.minutes < 120
    lora = has_little or (data.gpu_gib or 0) < FULL_GIB
    clips = next(clips for limit, clips in BATCHES if data.minutes <= limit)
    updates = max(1, data.clips // clips)
    epochs = min(20, max(5, math.ceil(UPDATES / updates)))
    yield Recommendation("version", data.version, "", "chosen")
    yield Recommendation("language", data.language, "of the dataset", "chosen")
    if data.language == AMHARIC.code:
        why = "sounds in Latin letters need no random embeddings"
        yield Recommendation(setting="use_amharic_g2p", value=True, reason=why, source="GPT-SoVITS#2173, ZipVoice#50")
    if lora:
        why = "less than two hours overfit" if has_little else f"full tuning needs {FULL_GIB:g} GiB"
        source = NOT_MEASURED if has_little else "memory-plan"
        yield Recommendation(setting="enable_lora", value=True, reason=why, source=source)
        rank = 64 if data.minutes > 600 else 16
        yield Recommendation("lora_rank", rank, "best opinion scores at 64 with 26 h", "Khmer, arXiv 2606.26618")
        yield Recommendation("learning_rate", 1e-4, "adapters take a higher rate", NOT_MEASURED)
    else:
        yield Recommendation("learning_rate", 5e-6, "all weights are trained", f"{UPSTREAM}; {NEW_LANGUAGE}")
    source = UPSTREAM if clips == 252 else f"{NEW_LANGUAGE} (16 to 32), {UPSTREAM} (252)"
    yield Recommendation("batch_size", min(clips, 8), "", "divides the clips per step")
    yield Recommendation("grad_acumm", max(1, round(clips / 8)), f"{clips} clips per step", source)
    yield Recommendation(
        "find_batch_size", data.gpu_gib is not None, "the largest batch that fits", "measured at the start"
    )
    yield Recommendation("num_epochs", epochs, f"{updates * epochs} updates", f"{NEW_LANGUAGE} (5 epochs of 100 h)")
    longest = min(MODEL_SECONDS, max(AUTO_SECONDS, math.ceil(data.longest)))
    yield Recommendation("max_audio_length", longest, "untrained lengths are spoken badly", "ttts#11")
    yield Recommendation("reference", "auto", "masking cannot protect short clips", NOT_MEASURED)
    yield Recommendation("embedding_warmup_steps", 500 if is_new else 0, "new text embeddings first", NOT_MEASURED)
    yield Recommendation("text_loss_weight", 0.01, "", UPSTREAM)
    yield Recommendation("weight_decay", 1e-2, "", f"{UPSTREAM}; {NEW_LANGUAGE}")
    yield Recommendation("freeze_first_n_gpt_layers", 0, "", NOT_MEASURED)
    yield Recommendation(
        "enable_ema", updates * epochs > 2000, "weights with and without EMA are evaluated", NOT_MEASURED
    )


def _missing(data: TrainingData) -> Iterator[Gap]:
    if data.gpu_gib is None and data.version != "tiny":
        yield Gap.NO_GPU
    if data.minutes < 120:
        yield Gap.MORE_SPEECH
    if data.speakers == 1 and data.minutes > 3000:
        yield Gap.MORE_SPEAKERS
    if data.longest < 10:
        yield Gap.LONGER_CLIPS
