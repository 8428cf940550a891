"""What to know about a dataset before anyone trains on it: its facts, the texts to check, and what to do next.

The hum, the band and the reverberation are those of the recordings, measured on a sample of the clips of each speaker.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from utils.core.batching import evenly_spaced
from utils.core.errors import AmharicTtsError
from utils.core.facts import Fact, from_json
from utils.core.storage import parse_json
from utils.dataset import prompts, statistics
from utils.dataset.clip import Clip, group_clips, total_seconds
from utils.dataset.facts import PhonesRare, Reason, SpeakersConcerned, TextsDoubted, TextsRepeated
from utils.dataset.metadata import read_language
from utils.dataset.statistics import Account, DatasetLengths, Statistics
from utils.dataset.store import FINDING, Store, View, open_store
from utils.media import audio
from utils.media.rates import RATE
from utils.recognition import signal_checks
from utils.recognition.facts import BandLimited, NarrowBand
from utils.recognition.signal_checks import Signal, measure_signal, read_excerpt
from utils.recognition.spans import Span

MEASURED = 12  # clips of a speaker
MAX_SPEAKERS = 50  # that are measured, those who speak longest
WRONG_SHOWN = 4  # clips of each reason
DOUBTFUL_SHOWN = 8  # of those in use
SENTENCES = 10  # to record next
MAX_READ = 500  # texts that those are compared with; more hardly change which sentence adds most
TEXT_REASONS: tuple[Reason, ...] = (
    "text does not match",
    "word not spoken",
    "speech without text",
    "recognisers disagree",
)


@dataclass(frozen=True)
class SpeakerReport:
    """The clips of one speaker that are in use."""

    name: str
    clips: int
    seconds: float
    pace: float | None  # median of letters per second
    snr: float | None
    loudness: float | None
    rate: int | None = None  # samples per second of the recordings; None where they are gone or not measured
    signal: Signal | None = None


@dataclass(frozen=True)
class DatasetReport:
    """All of it; the seconds and counts are those that the page and ``dataset stats`` show."""

    language: str
    statistics: Statistics
    account: Account
    speakers: tuple[SpeakerReport, ...]  # who speaks longest first
    wrong: Mapping[Reason, Sequence[Clip]]  # excluded because of their text, by reason, the worst first
    duplicates: int  # clips whose exact audio is that of another one
    doubtful: tuple[Clip, ...]  # in use and not approved, the most suspicious first
    advice: tuple[Fact, ...]  # the most important first
    sentences: tuple[str, ...]  # that add most when they are recorded


def describe_dataset(folder: Path) -> DatasetReport:
    """Collect the facts of a dataset; only a few clips of each speaker are read."""
    store = open_store(folder)
    contents = store.read()
    language = read_language(folder)
    counted = statistics.count(store, language)
    kept = contents.kept
    speakers = tuple(_speakers(kept, folder))
    by_reason = group_clips(sorted(contents.excluded, key=lambda clip: clip.scores.text_match or 0.0), "reason")
    wrong = {reason: by_reason[reason] for reason in TEXT_REASONS if reason in by_reason}
    read = [clip.text for clip in kept[-MAX_READ:]]
    return DatasetReport(
        language,
        counted,
        statistics.account(contents),
        speakers,
        wrong,
        sum(clip.reason == "duplicate" for clip in contents.excluded),
        tuple(store.page(View("unchecked"), 1).clips[:DOUBTFUL_SHOWN]),
        tuple(_advice(store, counted, speakers, wrong)),
        tuple(prompts.choose(SENTENCES, read=read)) if counted.missing or counted.rare else (),
    )


def _advice(
    store: Store, counted: Statistics, speakers: Sequence[SpeakerReport], wrong: Mapping[Reason, Sequence[Clip]]
) -> Iterable[Fact]:
    """Yield what to do something about: first what spoils a voice, then what would make it better."""
    if store.proposed():
        yield from_json(parse_json(store.meta(FINDING)))
    if doubted := [clip for clips in wrong.values() for clip in clips]:
        yield TextsDoubted(len(doubted), total_seconds(doubted))
    yield from _losses(speakers)
    if rare := (*counted.missing, *counted.rare):
        yield PhonesRare(rare, statistics.FEW)
    if counted.seconds:
        yield from DatasetLengths(counted.seconds).gaps()
    if counted.repeated:
        yield TextsRepeated(counted.repeated)


def _losses(speakers: Sequence[SpeakerReport]) -> Iterable[Fact]:
    """Yield what the recordings have lost, each once: who is concerned, and the value of whoever speaks longest."""
    found = defaultdict(list)
    narrow = []
    for speaker in speakers:
        for loss in speaker.signal.problems if speaker.signal else []:
            found[type(loss)].append((speaker.name, loss))
        if speaker.signal and speaker.rate and speaker.rate < RATE:
            narrow.append(min(speaker.signal.band, speaker.rate / 2))
    if narrow and BandLimited not in found:
        yield NarrowBand(median(narrow) / 1000, len(narrow))
    for losses in found.values():
        yield SpeakersConcerned(tuple(name for name, _ in losses), losses[0][1])


def _speakers(kept: Iterable[Clip], folder: Path) -> Iterable[SpeakerReport]:
    clips = group_clips(kept, "speaker")
    length = {name: total_seconds(theirs) for name, theirs in clips.items()}
    for number, name in enumerate(sorted(length, key=lambda name: -length[name])):
        measured = _measured(clips[name], folder) if number < MAX_SPEAKERS else (None, None)
        scores = [clip.scores for clip in clips[name]]
        yield SpeakerReport(
            name,
            len(scores),
            length[name],
            _median(score.chars_per_second for score in scores),
            _median(score.snr_db for score in scores),
            _median(score.loudness_lufs for score in scores),
            *measured,
        )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _measured(clips: Sequence[Clip], folder: Path) -> tuple[int | None, Signal | None]:
    """Return the rate of the recordings of some clips, and their sound; clips stand in where they are gone."""
    rates = []
    excerpts = []
    for clip in evenly_spaced(clips, MEASURED):
        path = Path(clip.source)
        span = clip.span
        is_there = path.is_file()
        if not is_there:
            path = folder / clip.audio
            span = Span(0.0, span.seconds)
        try:
            if is_there:
                rates.append(audio.probe(path).rate)
            excerpts.append(read_excerpt(path, span))
        except AmharicTtsError:  # the recording is gone; ``validate`` names damaged clips
            continue
    excerpts = [samples for samples in excerpts if samples.size > signal_checks.WIDTH]
    return max(rates, default=None), measure_signal(excerpts) if excerpts else None
