"""What a run needs before its first update: base model, tokenizer, and the features of all clips."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils.config import TrainConfig
from utils.core.batching import evenly_spaced
from utils.core.errors import FileDamagedError
from utils.core.facts import Optimization, Report, ShouldStop, to_json
from utils.core.folders import seal
from utils.core.languages import AMHARIC
from utils.core.paths import SAMPLE_SPEECH
from utils.core.storage import link_or_copy, make_folder, read_document, write_document
from utils.dataset import features
from utils.dataset.clip import Clip
from utils.dataset.features import FeatureStore
from utils.dataset.metadata import ClipLists, OtherClips
from utils.dataset.statistics import DatasetLengths
from utils.media import audio
from utils.media.rates import RATE
from utils.training import errors, facts
from utils.training.batches import NO_REPLAY, ReplayClips
from utils.training.clips import ClipLimits, FeatureSource, JoinedSource, select_clips
from utils.training.errors import SettingRefusedError, TrainingError
from utils.xtts import model, pronunciations
from utils.xtts.base_models import ModelSource, base_folder
from utils.xtts.codec import AudioEncoder
from utils.xtts.device import exact_device
from utils.xtts.files import DIGESTS_FILE, SETTINGS_FILE, VOCABULARY_FILE, verify_folder
from utils.xtts.language_packs import Backend, TextMode
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

TOKENIZER_FOLDER = "reading"  # in the run folder; fixed when the run first starts
BASE_FILE = "base.json"
START = "start"  # in the run folder: the voice it started from, if that was the project's own
MAX_NAMED = 20  # excluded clips that are reported one by one
CODEC_FILE = "codec.json"  # in the run folder
AUDITED_CLIPS, SAMPLE_SECONDS = 8, 8.0  # that are encoded and decoded
WORSE = 1.5  # times the error on the sample speech; a choice, not a measurement


@dataclass(frozen=True)
class BaseModel:
    """The model that a run starts from, with a fingerprint of its files."""

    folder: Path
    fingerprint: str


def find_base(config: TrainConfig, run: Path, source: ModelSource, replaced: Path | None = None) -> BaseModel:
    """Find the model to start from; a resumed run finds the one it started from.

    ``replaced`` is a folder that a promoted checkpoint will replace: a run that starts from it keeps a copy.
    """
    note = run / BASE_FILE
    if not note.exists():
        folder = base_folder(config.version, source, config.custom_model)
        if replaced and folder.resolve() == replaced.resolve():
            folder = _copy_voice(folder, run / START)
        base = BaseModel(folder, model.fingerprint(folder))
        write_document(note, {"folder": str(base.folder), "fingerprint": base.fingerprint})
        return base
    try:
        known = read_document(note)
        folder = Path(known["folder"])
        fingerprint = str(known["fingerprint"])
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise FileDamagedError(note) from error
    if place := model.find_recorded_base(folder, fingerprint, source.models):
        return BaseModel(place, fingerprint)
    raise TrainingError("base_missing", folder)


def _copy_voice(ready: Path, own: Path) -> Path:
    """Link or copy the project's voice: a promoted checkpoint will replace it, and the run still needs it."""
    make_folder(own)
    for path in ready.iterdir():
        if path.is_file() and not (own / path.name).exists():
            link_or_copy(path, own / path.name)
    return own


def fixed_tokenizer(
    config: TrainConfig,
    run: Path,
    base: BaseModel,
    texts: Iterable[str],
    others: Sequence[str] = (),
    overrides: Mapping[str, str] = pronunciations.NONE,
) -> Tokenizer:
    """Create the tokenizer of a run, with the tokens of other languages, when it first starts; load it later."""
    folder = run / TOKENIZER_FOLDER
    if not (folder / VOCABULARY_FILE).exists():
        make_folder(folder)
        tokenizer = tokenizer_for(base.folder, config.language, texts, text_mode(config), config.g2p_backend, overrides)
        tokenizer.with_languages(others).renewed().save(folder)
        seal(folder, DIGESTS_FILE, {})
    verify_folder(folder)
    loaded = Tokenizer.load(folder)
    loaded.refuse_older_front_end()
    return loaded


def text_mode(config: TrainConfig) -> TextMode:
    """Return what the model reads: Amharic that is not converted to phonemes stays in Ethiopic script."""
    return "fidel" if config.language == AMHARIC.code and not config.use_amharic_g2p else config.text_mode


def text_change(config: TrainConfig, clips: Sequence[Clip]) -> Optimization:
    """Report what the model reads, which ``use_amharic_g2p`` decides for Amharic."""
    mode = text_mode(config) if config.language == AMHARIC.code else "fidel"
    return Optimization("use_amharic_g2p", len(clips) if mode != "fidel" else 0, facts.TextRead(mode))


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
        return prepare_tokenizer(
            Vocabulary.load(base / VOCABULARY_FILE),
            language,
            mode=mode or "latin",
            backend=backend,
            overrides=overrides,
            texts=texts,
            allow_missing=allow_missing,
        )
    if mode not in (None, known.settings.mode):
        raise SettingRefusedError("text_mode", "other_mode", known.settings.mode)
    return known.with_pronunciations(overrides)


def encode_clips(  # noqa: PLR0913  # what is encoded, with what, and how
    folder: Path,
    encoder: AudioEncoder,
    tokenizer: Tokenizer,
    clips: Sequence[Clip],
    language: str,
    report: Report,
    should_stop: ShouldStop,
    *,
    thorough: bool = False,
) -> FeatureStore:
    """Encode every clip that has no features yet, and open the store; ``thorough`` verifies every stored byte."""
    problems = features.build(folder, clips, encoder, tokenizer, language, report, should_stop, thorough=thorough)
    report(facts.Features(len(clips), problems))
    return FeatureStore.open(folder, encoder.fingerprint, features.text_fingerprint(tokenizer, language))


def audit_codec(run: Path, encoder: AudioEncoder, clips: ClipLists, features: FeatureStore, report: Report) -> None:
    """Report once per run how well the codec represents the clips; refuse another codec when the run is resumed.

    What the codec loses, the model cannot learn: it never hears the clips themselves, only their codes.
    """
    path = run / CODEC_FILE
    if path.is_file():
        try:
            known = read_document(path)["codec"]
        except (ValueError, TypeError, LookupError) as reason:
            raise FileDamagedError(path) from reason
        if known != encoder.fingerprint:
            raise TrainingError("codec_changed")
        return
    stored = [clip for clip in clips.train if clip in features]
    measurable = stored and encoder.decoder is not None
    audited = _measure_codec(encoder, clips.folder, stored, features, report) if measurable else ()
    write_document(path, to_json(facts.Codec(encoder.fingerprint, *audited)))


def _measure_codec(
    encoder: AudioEncoder, folder: Path, clips: Sequence[Clip], features: FeatureStore, report: Report
) -> tuple[float, float, float, float]:
    """Report and return what the codec loses of the clips and of a sample, and how many of its codes they use."""
    chosen = evenly_spaced(clips, AUDITED_CLIPS)
    error = float(np.mean([encoder.error_db(audio.load(folder / clip.audio, RATE)) for clip in chosen]))
    expected = encoder.error_db(audio.load(SAMPLE_SPEECH, RATE, end=SAMPLE_SECONDS))
    used, perplexity = code_usage(features, clips, encoder.codebook.n_embed)
    measured = round(error, 2), round(expected, 2), round(used, 4), round(perplexity, 1)
    report(facts.Codec(encoder.fingerprint, *measured))
    if error > WORSE * expected:
        report(facts.CodecFitsBadly(*measured[:2]))
    return measured


def code_usage(features: FeatureStore, clips: Sequence[Clip], codes: int) -> tuple[float, float]:
    """Return the share of the codes that some clips use, and how many equally frequent codes that would be."""
    counts = np.zeros(codes, np.int64)
    for clip in evenly_spaced(clips, 2000):
        counts += np.bincount(features[clip].codes, minlength=codes)
    shares = counts[counts > 0] / counts.sum()
    return float((counts > 0).mean()), float(np.exp(-(shares * np.log(shares)).sum()))


def choose_clips(
    store: FeatureStore, clips: Sequence[Clip], limits: ClipLimits, split: str, report: Report
) -> FeatureSource:
    """Select the clips that can be used, and report why the others are excluded."""
    source, excluded = select_clips(store, clips, limits)
    for clip in excluded[:MAX_NAMED]:
        report(clip)
    report(facts.Clips(split, len(source.clips), len(excluded)))
    if not source.clips:
        raise errors.NoUsableClipsError(split, tuple(excluded[:3]))
    if split == "train":
        lengths = DatasetLengths(tuple(source.lengths.samples / RATE), tokens=tuple(source.lengths.ids))
        report(facts.Lengths(**lengths.counts()))
    return source


class OtherData(NamedTuple):
    """Clips of another language, and their features."""

    clips: OtherClips
    features: FeatureStore


class PreparedData(NamedTuple):
    """What a run needs before its model is loaded."""

    clips: ClipLists
    base: BaseModel
    tokenizer: Tokenizer
    features: FeatureStore
    others: list[OtherData]


# Long because clips of every language are encoded by the same function, with what was found before.
def prepare_data(
    clips: ClipLists,
    others: Sequence[OtherClips],
    config: TrainConfig,
    run: Path,
    source: ModelSource,
    *,
    overrides: Mapping[str, str] = pronunciations.NONE,
    replaced: Path | None = None,
) -> PreparedData:
    """Find the base model, fix the tokenizer, and encode clips that have no features yet.

    Args:
        clips: Clips to train on.
        others: Clips of other languages that are mixed in.
        config: Settings of the run.
        run: Folder of the run.
        source: Where published models are; its ``report`` and ``should_stop`` are those of the preparation.
        overrides: The spoken form of written words, which corrects the tokenizer.
        replaced: A voice that a promoted checkpoint will replace; a run that starts from it keeps a copy.
    """
    report = source.report
    for problem in clips.problems:
        report(problem)
    base = find_base(config, run, source, replaced)
    tokenizer = fixed_tokenizer(
        config, run, base, (clip.text for clip in clips.train), [other.language for other in others], overrides
    )
    for notice in tokenizer.notices:
        report(notice)
    encoder = AudioEncoder.load(base.folder, exact_device(config.device))

    def encode(lists: ClipLists, language: str) -> FeatureStore:
        return encode_clips(lists.folder, encoder, tokenizer, lists.clips, language, report, source.should_stop)

    encoded = encode(clips, config.language)
    audit_codec(run, encoder, clips, encoded, report)
    mixed = [OtherData(other, encode(other.lists, other.language)) for other in others]
    return PreparedData(clips, base, tokenizer, encoded, mixed)


class ChosenClips(NamedTuple):
    """The clips of a run that can be used."""

    train: FeatureSource  # those of the run, then those of other languages
    held_out: FeatureSource
    others: dict[str, FeatureSource]  # held out, by language
    replay: ReplayClips = NO_REPLAY


def choose_all_clips(data: PreparedData, config: TrainConfig, limits: ClipLimits, report: Report) -> ChosenClips:
    """Choose the clips to train on and to evaluate with, and join those of all languages."""
    own = choose_clips(data.features, data.clips.train, limits, "train", report)
    held_out = choose_clips(data.features, data.clips.eval, limits, "eval", report)
    mixed = []
    others = {}
    for (lists, language, _), encoded in data.others:
        if config.replay_share:
            mixed.append(choose_clips(encoded, lists.train, limits, f"train {language}", report))
        others[language] = choose_clips(encoded, lists.eval, limits, f"eval {language}", report)
    if not mixed:
        return ChosenClips(own, held_out, others)
    sizes = [len(source.clips) for source in mixed]
    replay = _replay(config, len(own.clips), sizes, [clips for clips, _ in data.others], report)
    return ChosenClips(JoinedSource([own, *mixed]), held_out, others, replay)


def _replay(
    config: TrainConfig, own: int, sizes: Sequence[int], others: Sequence[OtherClips], report: Report
) -> ReplayClips:
    """Choose how many clips of each other language an epoch has, and report it."""
    replay = ReplayClips.of_share(config.replay_share, own, sizes, [clips.weight for clips in others])
    counts = zip((clips.language for clips in others), replay.counts, strict=True)
    report(facts.Replay({config.language: own, **dict(counts)}))
    return replay
