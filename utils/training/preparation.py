"""What has to be there before the first update: base model, way of reading, and the features of all clips."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from utils.config import TrainConfig
from utils.core.errors import ConfigError, DataError, RunError
from utils.core.folders import DamagedError, link_or_copy
from utils.core.languages import AMHARIC
from utils.core.storage import make_folder, read_json, write_atomically
from utils.dataset import features
from utils.dataset.clip import Clip
from utils.dataset.features import Features
from utils.runs.job import Job
from utils.training.clips import ClipLimits, FeatureSource, select_clips
from utils.xtts import base_models, model, tokenizer
from utils.xtts.codec import AudioEncoder
from utils.xtts.files import SETTINGS_FILE, VOCABULARY_FILE, current_base_path
from utils.xtts.language_packs import TextMode
from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import Vocabulary

READING = "reading"  # folder of a run: how its model reads, fixed at its first start
BASE_FILE = "base.json"
START = "start"  # folder of a run: the voice that it began with, where that was the project's own
PROGRESS_SECONDS = 0.5
SHOWN = 20  # clips set aside that are named one by one


@dataclass(frozen=True)
class BaseModel:
    """The model that a run starts from.

    Attributes:
        folder: Where it lies.
        fingerprint: Tells it from any other.
    """

    folder: Path
    fingerprint: str


def find_base(job: Job, config: TrainConfig) -> BaseModel:
    """Find the model to start from; a run that goes on finds the one that it began with."""
    note = job.run.folder / BASE_FILE
    if not note.exists():
        folder = base_models.base_folder(
            config.version, config.custom_model, base_models.ModelSource(on_progress=download_progress(job))
        )
        folder = _kept(folder, job)
        base = BaseModel(folder, model.fingerprint(folder))
        write_atomically(note, json.dumps({"folder": str(base.folder), "fingerprint": base.fingerprint}))
        return base
    try:
        known = read_json(note)
        base = BaseModel(current_base_path(Path(known["folder"])), str(known["fingerprint"]))
        is_there = base.folder.is_dir()
    except (OSError, ValueError, TypeError, LookupError) as error:
        cure = "Put it back from a copy, or start a new run from one of its checkpoints."
        raise DamagedError(f"{note} is damaged: {error!r}.", hint=cure) from error
    if not is_there or model.fingerprint(base.folder) != base.fingerprint:
        raise RunError(f"{base.folder} is no longer the model that this run began with.", hint="Put it back.")
    return base


def _kept(folder: Path, job: Job) -> Path:
    """Hold on to the project's own voice: a promoted checkpoint will take its place, and the run still needs it."""
    if folder.resolve() != job.run.project.ready.resolve():
        return folder
    own = job.run.folder / START
    make_folder(own)
    for path in folder.iterdir():
        if path.is_file() and not (own / path.name).exists():
            link_or_copy(path, own / path.name)
    return own


def download_progress(job: Job) -> Callable[[base_models.DownloadProgress], None]:
    """Return what tells how far a download is, and hears when it should stop."""
    last = [0.0]

    def tell(step: base_models.DownloadProgress) -> None:
        job.stop_if_requested()  # what has arrived is on the disk already
        if time.monotonic() - last[0] > PROGRESS_SECONDS or step.done == step.total:
            last[0] = time.monotonic()
            job.events.emit("progress", part=step.file, step=step.done, total=step.total)

    return tell


def fixed_tokenizer(job: Job, config: TrainConfig, base: BaseModel, clips: Sequence[Clip]) -> Tokenizer:
    """Fix how the model reads the language, once for the run: as its base does, or in a way made for the language."""
    folder = job.run.folder / READING
    if not (folder / VOCABULARY_FILE).exists():
        make_folder(folder)
        texts = (clip.text for clip in clips)
        reading = tokenizer_for(base.folder, config.language, texts, text_mode(config))
        reading.save(folder)
    loaded = Tokenizer.load(folder)
    for notice in loaded.notices:
        job.events.emit("warning", message=notice)
    return loaded


def text_mode(config: TrainConfig) -> TextMode:
    """Return what the model reads: Latin letters for sounds, or the letters of Amharic themselves."""
    return "fidel" if config.language == AMHARIC.code and not config.use_amharic_g2p else "latin"


def tokenizer_for(base: Path, language: str, texts: Iterable[str], mode: TextMode | None = None) -> Tokenizer:
    """Read as a base does that was trained here for the language, or in a way made for the language.

    Args:
        base: The folder of the base model.
        language: The language's code.
        texts: The clips' texts, which some ways are learnt from.
        mode: What the model reads; None: what the base reads, or the usual.
    """
    known = Tokenizer.load(base) if (base / SETTINGS_FILE).exists() else None
    if known is None or known.settings is None or known.settings.language != language:
        return tokenizer.prepare_tokenizer(
            Vocabulary.load(base / VOCABULARY_FILE), language, mode=mode or "latin", texts=texts
        )
    if mode not in (None, known.settings.mode):
        raise ConfigError(
            f"use_amharic_g2p: {base} was trained to read {known.settings.mode}, not {mode}.",
            hint="Switch it as that model has it, or start from a published version.",
        )
    return known


def encode_clips(
    job: Job,
    folder: Path,
    encoder: AudioEncoder,
    reading: Tokenizer,
    clips: Sequence[Clip],
    language: str,
    *,
    thorough: bool = False,
) -> Features:
    """Encode every clip that has no features yet, and open the store.

    Args:
        job: Hears a stop, and writes how far the work is.
        folder: The dataset folder.
        encoder: Makes codes and mel frames.
        reading: Makes token ids.
        clips: What is to be encoded.
        language: Language of the texts.
        thorough: Read again every byte that is stored.
    """
    problems = 0
    with closing(features.build(folder, clips, encoder, reading, language, thorough=thorough)) as steps:
        for step in steps:
            for problem in step.problems:
                job.events.emit("problem", message=problem)
            problems += len(step.problems)
            job.events.emit(
                "progress",
                part=step.part,
                step=step.done,
                total=step.total,
                percent=step.percent,
                seconds_left=step.seconds_left,
            )
            job.stop_if_requested(save=steps.close)
    job.events.emit("features", clips=len(clips), problems=problems)
    return Features.open(folder, encoder.fingerprint, features.text_fingerprint(reading, language))


def choose_clips(job: Job, store: Features, clips: Sequence[Clip], limits: ClipLimits, what: str) -> FeatureSource:
    """Take the clips that can be used, and say why the others cannot."""
    chosen = select_clips(store, clips, limits)
    for clip, reason in chosen.aside[:SHOWN]:
        job.events.emit("aside", clip=clip.audio, message=reason)
    job.events.emit("clips", split=what, used=len(chosen.source.clips), aside=len(chosen.aside))
    if not chosen.source.clips:
        reasons = "; ".join(f"{clip.audio}: {reason}" for clip, reason in chosen.aside[:3])
        raise DataError(f"No clip of the {what} list can be used. {reasons}", hint="Raise the limits or prepare again.")
    return chosen.source
