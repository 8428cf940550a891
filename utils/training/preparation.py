"""What a run needs before its first update: base model, tokenizer, and the features of all clips."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils.config import TrainConfig
from utils.core import wording
from utils.core.batching import evenly_spaced
from utils.core.errors import ConfigError, DamagedError, DataError, RunError
from utils.core.events import Change
from utils.core.facts import Fact
from utils.core.languages import AMHARIC
from utils.core.paths import MODELS, SAMPLE_SPEECH
from utils.core.storage import link_or_copy, make_folder, read_json, write_atomically
from utils.dataset import features, metadata
from utils.dataset.clip import Clip
from utils.dataset.facts import ClipNotEncoded, FeaturesRemoved
from utils.dataset.features import Features
from utils.dataset.metadata import ClipLists, OtherClips
from utils.dataset.statistics import Lengths
from utils.media import audio
from utils.media.rates import RATE
from utils.studio.job import Job
from utils.studio.models import model_source
from utils.training.batches import NO_REPLAY, Replay
from utils.training.clips import ClipLimits, FeatureSource, JoinedSource, select_clips
from utils.xtts import model, pronunciations
from utils.xtts.base_models import base_folder
from utils.xtts.codec import AudioEncoder
from utils.xtts.device import choose_device
from utils.xtts.files import SETTINGS_FILE, VOCABULARY_FILE
from utils.xtts.language_packs import Backend, TextMode
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

TOKENIZER_FOLDER = "reading"  # in the run folder; fixed when the run first starts
BASE_FILE = "base.json"
START = "start"  # in the run folder: the voice it started from, if that was the project's own
PROGRESS_SECONDS = 0.5
MAX_NAMED = 20  # excluded clips that are reported one by one
CODEC_FILE = "codec.json"  # in the run folder
AUDITED_CLIPS, SAMPLE_SECONDS = 8, 8.0  # that are encoded and decoded
CONVERTED = {"latin": "texts as phonetic Latin letters", "ipa": "texts as IPA"}  # what a model of a text mode reads
WORSE = 1.5  # times the error on the sample speech; a choice, not a measurement


@dataclass(frozen=True)
class BaseModel:
    """The model that a run starts from, with a fingerprint of its files."""

    folder: Path
    fingerprint: str


def find_base(job: Job, config: TrainConfig) -> BaseModel:
    """Find the model to start from; a resumed run finds the one it started from."""
    note = job.run.folder / BASE_FILE
    if not note.exists():
        folder = base_folder(config.version, model_source(job.report, job.should_stop), config.custom_model)
        if folder.resolve() == job.run.project.ready.resolve():
            folder = _copy_voice(folder, job.run.folder / START)
        base = BaseModel(folder, model.fingerprint(folder))
        write_atomically(note, json.dumps({"folder": str(base.folder), "fingerprint": base.fingerprint}))
        return base
    try:
        known = read_json(note)
        folder, fingerprint = Path(known["folder"]), str(known["fingerprint"])
    except (OSError, ValueError, TypeError, LookupError) as error:
        hint = "Restore it from a backup, or start a new run from one of its checkpoints."
        raise DamagedError(f"{note} is damaged.", hint=hint) from error
    if place := model.find_recorded_base(folder, fingerprint, MODELS):
        return BaseModel(place, fingerprint)
    raise RunError(
        f"The base model of this run, {folder}, is missing or has changed.",
        hint=f"Restore it, or copy it to {MODELS / folder.name}.",
    )


def _copy_voice(ready: Path, own: Path) -> Path:
    """Link or copy the project's voice: a promoted checkpoint will replace it, and the run still needs it."""
    make_folder(own)
    for path in ready.iterdir():
        if path.is_file() and not (own / path.name).exists():
            link_or_copy(path, own / path.name)
    return own


def fixed_tokenizer(
    job: Job, config: TrainConfig, base: BaseModel, clips: Sequence[Clip], others: Sequence[str] = ()
) -> Tokenizer:
    """Create the tokenizer of a run, with the tokens of other languages, when it first starts; load it later."""
    folder = job.run.folder / TOKENIZER_FOLDER
    if not (folder / VOCABULARY_FILE).exists():
        make_folder(folder)
        texts = (clip.text for clip in clips)
        own = pronunciations.overrides(job.run.project.pronunciations)
        tokenizer = tokenizer_for(base.folder, config.language, texts, text_mode(config), config.g2p_backend, own)
        tokenizer.with_languages(others).save(folder)
    loaded = Tokenizer.load(folder)
    loaded.refuse_older_front_end()
    for notice in loaded.notices:
        job.events.emit("warning", message=notice)
    return loaded


def text_mode(config: TrainConfig) -> TextMode:
    """Return what the model reads: Amharic that is not converted to phonemes stays in Ethiopic script."""
    return "fidel" if config.language == AMHARIC.code and not config.use_amharic_g2p else config.text_mode


def text_change(config: TrainConfig, clips: Sequence[Clip]) -> Change:
    """Report what the model reads, which ``use_amharic_g2p`` decides for Amharic."""
    detail = CONVERTED.get(text_mode(config), "") if config.language == AMHARIC.code else ""
    return Change("use_amharic_g2p", len(clips) if detail else 0, detail or "texts as they are written")


def tokenizer_for(
    base: Path,
    language: str,
    texts: Iterable[str],
    mode: TextMode | None = None,
    backend: Backend = "rules",
    overrides: Mapping[str, str] = pronunciations.NONE,
    *,
    allow_missing: bool = False,
) -> Tokenizer:
    """Return the tokenizer of a base that was trained here for the language, or prepare a new one.

    Some tokenizers are learned from the texts. Without a mode, it is that of the base, or the default. A base keeps its
    backend and its pronunciations; those of the project are added. With ``allow_missing``, for reports, a vocabulary
    that lacks letters is not an error.
    """
    known = Tokenizer.load(base) if (base / SETTINGS_FILE).exists() else None
    if known is None or known.settings is None or known.settings.language != language:
        published = Vocabulary.load(base / VOCABULARY_FILE)
        return prepare_tokenizer(
            published,
            language,
            mode=mode or "latin",
            backend=backend,
            overrides=overrides,
            texts=texts,
            allow_missing=allow_missing,
        )
    if mode not in (None, known.settings.mode):
        raise ConfigError(
            f"text_mode: {base} was trained to read {known.settings.mode}, not {mode}.",
            hint="Use the setting of that model, or start from a published version.",
        )
    return known.with_pronunciations(overrides)


def encode_clips(
    job: Job,
    folder: Path,
    encoder: AudioEncoder,
    tokenizer: Tokenizer,
    clips: Sequence[Clip],
    language: str,
    *,
    thorough: bool = False,
) -> Features:
    """Encode every clip that has no features yet, and open the store; ``thorough`` verifies every stored byte."""

    def report(fact: Fact) -> None:
        if isinstance(fact, (ClipNotEncoded, FeaturesRemoved)):
            job.events.emit("problem", message=wording.describe(fact))
        else:
            job.report(fact)

    problems = features.build(folder, clips, encoder, tokenizer, language, report, job.should_stop, thorough=thorough)
    job.events.emit("features", clips=len(clips), problems=problems)
    return Features.open(folder, encoder.fingerprint, features.text_fingerprint(tokenizer, language))


def audit_codec(job: Job, encoder: AudioEncoder, clips: ClipLists, features: Features) -> None:
    """Report once per run how well the codec represents the clips; refuse another codec when the run is resumed.

    What the codec loses, the model cannot learn: it never hears the clips themselves, only their codes.
    """
    path = job.run.folder / CODEC_FILE
    if path.is_file():
        if read_json(path).get("codec") != encoder.fingerprint:
            raise RunError(
                "The codec (dvae.pth) of the base model is not the one that this run started with.", hint="Restore it."
            )
        return
    stored = [clip for clip in clips.train if clip in features]
    audited: dict[str, object] = {"codec": encoder.fingerprint}
    if stored and encoder.decoder is not None:
        chosen = evenly_spaced(stored, AUDITED_CLIPS)
        error = float(np.mean([encoder.error_db(audio.load(clips.folder / clip.audio, RATE)) for clip in chosen]))
        expected = encoder.error_db(audio.load(SAMPLE_SPEECH, RATE, end=SAMPLE_SECONDS))
        used, perplexity = code_usage(features, stored, encoder.codebook.n_embed)
        audited |= {"error_db": round(error, 2), "sample_error_db": round(expected, 2), "codes_used": round(used, 4)}
        message = (
            f"Codec error: {error:.1f} dB on the clips ({expected:.1f} dB on the sample speech). "
            f"The clips use {used:.0%} of its codes."
        )
        job.events.emit("codec", message=message, perplexity=round(perplexity, 1), **audited)
        if error > WORSE * expected:
            warning = f"{message} It represents this audio badly: look for noise, music or a narrow frequency band."
            job.events.emit("warning", message=warning)
    write_atomically(path, json.dumps(audited))


def code_usage(features: Features, clips: Sequence[Clip], codes: int) -> tuple[float, float]:
    """Return the share of the codes that some clips use, and how many equally frequent codes that would be."""
    counts = np.zeros(codes, np.int64)
    for clip in evenly_spaced(clips, 2000):
        counts += np.bincount(features[clip].codes, minlength=codes)
    shares = counts[counts > 0] / counts.sum()
    return float((counts > 0).mean()), float(np.exp(-(shares * np.log(shares)).sum()))


def choose_clips(job: Job, store: Features, clips: Sequence[Clip], limits: ClipLimits, split: str) -> FeatureSource:
    """Select the clips that can be used, and report why the others are excluded."""
    source, excluded = select_clips(store, clips, limits)
    for clip, reason in excluded[:MAX_NAMED]:
        job.events.emit("aside", clip=clip.audio, message=reason)
    job.events.emit("clips", split=split, used=len(source.clips), aside=len(excluded))
    if source.clips and split == "train":
        lengths = Lengths(tuple(source.lengths.samples / RATE), tokens=tuple(source.lengths.ids))
        job.events.emit("lengths", message=" ".join(map(wording.describe, lengths.gaps())), **lengths.counts())
    if not source.clips:
        reasons = "; ".join(f"{clip.audio}: {reason}" for clip, reason in excluded[:3])
        raise DataError(
            f"No clip of the {split} list can be used. {reasons}",
            hint="Raise the limits, or prepare the dataset again.",
        )
    return source


class OtherData(NamedTuple):
    """Clips of another language, and their features."""

    clips: OtherClips
    features: Features


class PreparedData(NamedTuple):
    """What a run needs before its model is loaded."""

    clips: ClipLists
    base: BaseModel
    tokenizer: Tokenizer
    features: Features
    others: list[OtherData]


def prepare_data(job: Job, config: TrainConfig) -> PreparedData:
    """Read the clip lists, find the base model, fix the tokenizer, and encode clips that have no features yet."""
    clips = metadata.clips_of_run(job.run.folder, config, job.run.project.dataset)
    metadata.store_clips_of_run(job.run.folder, config, clips)
    for problem in clips.problems:
        job.events.emit("problem", message=wording.describe(problem))
    base = find_base(job, config)
    others = metadata.other_clips_of_run(job.run.folder, config)
    tokenizer = fixed_tokenizer(job, config, base, clips.train, [other.language for other in others])
    encoder = AudioEncoder.load(base.folder, choose_device("auto"))
    encoded = encode_clips(job, clips.folder, encoder, tokenizer, clips.clips, config.language)
    audit_codec(job, encoder, clips, encoded)
    encode = partial(encode_clips, job, encoder=encoder, tokenizer=tokenizer)
    mixed = [
        OtherData(other, encode(other.lists.folder, clips=other.lists.clips, language=other.language))
        for other in others
    ]
    return PreparedData(clips, base, tokenizer, encoded, mixed)


def mix_clips(
    job: Job, config: TrainConfig, own: FeatureSource, others: Sequence[OtherData], limits: ClipLimits
) -> tuple[FeatureSource, Replay]:
    """Join the training clips of a run with those of other languages, if it trains on them."""
    if not others or not config.replay_share:
        return own, NO_REPLAY
    mixed = [
        choose_clips(job, encoded, clips.lists.train, limits, f"train {clips.language}") for clips, encoded in others
    ]
    sizes, weights = [len(source.clips) for source in mixed], [clips.weight for clips, _ in others]
    replay = Replay.of_share(config.replay_share, len(own.clips), sizes, weights)
    shares = [f"{count} of {clips.language}" for (clips, _), count in zip(others, replay.counts, strict=True)]
    message = (
        f"Each epoch has {len(own.clips)} clips of {config.language} and, from other datasets, {', '.join(shares)}."
    )
    job.events.emit("replay", message=message, counts=replay.counts)
    return JoinedSource([own, *mixed]), replay
