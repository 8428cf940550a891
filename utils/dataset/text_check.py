"""Check the texts of a project: learn its sound, choose the limits, cut its recordings by their words, judge its clips.

Each half of the recordings, in blocks of half a minute, is judged by a recogniser that learnt from the other half, so
that no wrong text is believed because it was learnt by heart.
"""

import contextlib
import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import torch

from utils.config import DatasetConfig
from utils.core.batching import grouped
from utils.core.errors import AmharicTtsError
from utils.core.facts import Report, ShouldStop, WarningFact, counted, ignore, never_stop
from utils.core.folders import seal, verify_hashes
from utils.core.storage import cached_while_unchanged, make_folder, read_json, write_atomically
from utils.dataset.clip import Clip, Recording
from utils.dataset.facts import Reason, SentencesMissing, TextsNotChecked, UnsaidSentence
from utils.dataset.transcript import Group, words_of_cues, words_of_transcript
from utils.dataset.word_cutting import cut_words, trim, unsure_words, with_words
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import RATE as PROJECT_RATE
from utils.recognition.adaptation import adapt
from utils.recognition.aligner import WORST, Alignment, Rows, align, emit, emit_blocks
from utils.recognition.phone_recogniser import (
    EMBEDDED,
    RATE,
    PhoneRecogniser,
    load_recogniser,
    log_mels,
    save_recogniser,
)
from utils.recognition.spans import Cue, Span, read_spans
from utils.recognition.thresholds import Judged, Limits, calibrate, word_score
from utils.recognition.units import Units, units_in, units_of

FOLDER = "text_check"  # below the dataset
LIMITS = "limits.json"
DIGESTS = "files.json"
BLOCK_SECONDS = 30.0
LESSON_PADDING = 0.2  # seconds
LESSON_LENGTH = 8.0  # seconds, about as long as clips
LESSONS = 24  # of one recording, if it is too short for such long ones
LESSON_SECONDS = 1800.0  # at most, of the clips that are learnt from
MIN_LESSON_SECONDS = 120.0  # less is not learnt from
CLEAR = (0.03, 0.25)  # shares of wrong texts and words that may be missed without learning
LISTED = 100  # sentences of a transcript that are named if they are not said
UNSAID = -5.0  # score of a sentence of a transcript, below which nothing is learnt from it
LONG_SENTENCE = 20  # words; a text without punctuation is divided


class CutByWords(NamedTuple):
    """What a recording was cut into, in pauses between words."""

    clips: list[Cue]
    speech: list[Span]
    warnings: list[WarningFact]
    unsure: dict[Span, str]  # words that may not be said in these clips


@dataclass(frozen=True)
class TextCheck:
    """The recognisers and limits of a project; it is sent to worker processes."""

    folder: Path
    language: str
    limits: Limits
    pronunciations: Path | None  # of single words, in their file

    @property
    def units(self) -> Units:
        return units_of(self.language, self.pronunciations)

    def rows(self, path: Path, recording: str) -> Rows:
        """Return the log-probabilities of a whole recording: 14 MB an hour."""
        return _rows(self._models(), path, recording)

    def _models(self) -> tuple[PhoneRecogniser, ...]:
        return _load(self.folder / LIMITS, self.language)

    # Long because words do not help with every recording.
    def cut(
        self,
        rows: Rows,
        recording: Recording,
        speech: Sequence[Span],
        seconds: float,
        settings: DatasetConfig,
        should_stop: ShouldStop = never_stop,
    ) -> CutByWords:
        """Cut a recording with text in pauses between its words.

        There are no clips where words do not help: without speech, or for a short recording with another text. Beside
        speech that the text lacks, a word may be placed wrongly, so that its clip is cut through that speech. Such
        clips are found even where the project's recogniser is too weak to check single words.
        """
        groups, missing = find_words(rows, self.limits.score, recording, self.units, seconds, settings, should_stop)
        speech = with_words(speech, groups, settings)
        if not speech:
            return CutByWords([], [], [], {})
        if not recording.cues and seconds <= settings.max_seconds:
            clips = trim(groups[0], recording.text, speech, seconds, settings) if groups else []
            return CutByWords(clips, speech, [], {})
        clips = cut_words(groups, speech, seconds, settings)
        unsure = {
            clip.span: word.text
            for word in unsure_words(rows, groups)
            for clip in clips
            if clip.span.start <= word.span.middle < clip.span.end
        }
        warnings: list[WarningFact] = [SentencesMissing(len(missing), tuple(missing[:LISTED]))] if missing else []
        return CutByWords(clips, speech, warnings, unsure)

    def judge(self, clip: Clip, samples: Samples) -> Clip:
        """Return a clip with its words, excluded where its text does not match; it is heard alone, as in lessons.

        In a small project, a clip with only weak signs of an error stays in use, with the reason to listen to it.
        """
        model = self._models()[side(clip.recording, clip.span.middle)]
        aligned = align(emit(model, audio.resample(samples, PROJECT_RATE, RATE)), self.units.words(clip.text))
        if aligned is None:
            return clip.excluded("text does not match")
        times = [[word.text, round(word.span.start, 2), round(word.span.end, 2)] for word in aligned.words]
        scores = replace(clip.scores, text_match=round(aligned.score, 3))
        clip = replace(clip, scores=scores, words=json.dumps(times, ensure_ascii=False))
        reason, note = findings(aligned, self.limits, self.units)
        if reason and clip.status == "kept" and aligned.score >= self.limits.sure:
            return replace(clip, reason=reason, note=note)
        return clip.excluded(reason, note) if reason else clip


def findings(aligned: Alignment, limits: Limits, units: Units) -> tuple[Reason | None, str]:
    """Return the reason to exclude a clip, and the words concerned."""
    wrong = [word.text for word in aligned.words if word_score(word) < limits.word]
    if aligned.score < limits.score:
        return "text does not match", " ".join(wrong)
    if wrong:
        return "word not spoken", " ".join(wrong)
    if extra := [gap for gap in aligned.gaps if gap.evidence > limits.gap]:
        heard = ", ".join(
            f"{gap.span.start:.1f}-{gap.span.end:.1f} s: {''.join(units.symbols[unit - 1] for unit in gap.units)}"
            for gap in extra
        )
        return "speech without text", heard
    return None, ""


def find_words(
    rows: Rows,
    limit: float,
    recording: Recording,
    units: Units,
    seconds: float,
    settings: DatasetConfig,
    should_stop: ShouldStop,
) -> tuple[list[Group], list[UnsaidSentence]]:
    """Return the words of each subtitle or sentence, and the sentences that are not said."""
    if recording.cues:
        return words_of_cues(rows, recording.cues, units, limit), []
    whole = seconds <= settings.max_seconds
    sentences = [recording.text] if whole else sentences_of(recording.text, settings.language)
    return words_of_transcript(rows, sentences, units, limit, should_stop)


def sentences_of(text: str, language: str) -> list[str]:
    """Split a transcript into sentences; a text without punctuation is divided."""
    from utils.xtts.language_packs import pack_for

    parts = []
    for sentence in pack_for(language).split(text):
        words = sentence.split()
        count = -(-len(words) // LONG_SENTENCE)
        borders = [at * len(words) // count for at in range(count + 1)]
        parts += [" ".join(words[first:end]) for first, end in pairwise(borders)]
    return parts


def side(recording: str, seconds: float) -> int:
    """Return which of the two recognisers judges this part of a recording; the other one may learn from it."""
    return (int(recording[:8], 16) + int(seconds // BLOCK_SECONDS)) % 2


def _rows(models: Sequence[PhoneRecogniser], path: Path, recording: str) -> Rows:
    return emit_blocks(models, audio.stream(path, RATE, BLOCK_SECONDS), side(recording, 0.0))


@cached_while_unchanged(2)
def _load(limits: Path, language: str) -> tuple[PhoneRecogniser, ...]:
    """Load both recognisers; those of an earlier build have other limits."""
    return tuple(load_recogniser(limits.with_name(f"{number}.safetensors"), units_of(language)) for number in (0, 1))


# --- learning ---


@dataclass(frozen=True)
class Lesson:
    """A clip to learn from and to calibrate with."""

    samples: Samples
    text: str
    side: int

    @property
    def seconds(self) -> float:
        return self.samples.size / RATE


def saved_check(folder: Path, language: str, pronunciations: Path | None = None) -> TextCheck | None:
    """Return what an earlier preparation of the dataset has learnt."""
    path = folder / FOLDER / LIMITS
    if not path.is_file():
        return None
    if (path.parent / DIGESTS).is_file():  # version 1.1 wrote none
        verify_hashes(path.parent, DIGESTS)
    return TextCheck(folder / FOLDER, language, Limits(**read_json(path)), pronunciations)


# Long because it is the recipe: each step is one call, and models, lessons and limits pass between them.
def learn(
    recordings: Sequence[tuple[Recording, str]],
    folder: Path,
    settings: DatasetConfig,
    report: Report = ignore,
    should_stop: ShouldStop = never_stop,
    *,
    pronunciations: Path | None = None,
) -> TextCheck | None:
    """Learn the sound of a dataset from its recordings, given with their content hashes.

    Return what checks its texts; what it cannot check is reported.
    """
    torch.set_num_threads(settings.workers or torch.get_num_threads())
    saved = saved_check(folder, settings.language, pronunciations)
    units = units_of(settings.language, pronunciations)
    sources = [saved.folder / f"{number}.safetensors" for number in (0, 1)] if saved else [EMBEDDED] * 2
    models = [load_recogniser(path, units) for path in sources]
    lessons = list(_lessons(recordings, models, units, settings, report, should_stop))
    limits = _limits(lessons, models, units)
    if not saved and not _is_clear(limits) and sum(lesson.seconds for lesson in lessons) >= MIN_LESSON_SECONDS:
        learnt = _adapted(models, lessons, units, report, should_stop)
        better = _limits(lessons, learnt, units)
        if better and _missed(better) < _missed(limits):
            models = learnt
            limits = better
    check = saved
    if limits and limits.usable:
        check = _save(TextCheck(folder / FOLDER, settings.language, limits, pronunciations), models)
    if not check:
        report(TextsNotChecked("no_better" if limits else "too_few", len(lessons)))
    elif not check.limits.checks_words:
        report(TextsNotChecked("words", len(lessons)))
    return check


def _missed(limits: Limits | None) -> float:
    return limits.missed + limits.missed_words if limits else math.inf


def _is_clear(limits: Limits | None) -> bool:
    return limits is not None and limits.missed <= CLEAR[0] and limits.missed_words <= CLEAR[1]


def _adapted(
    models: Sequence[PhoneRecogniser],
    lessons: Sequence[Lesson],
    units: Units,
    report: Report,
    should_stop: ShouldStop,
) -> list[PhoneRecogniser]:
    """Let each recogniser learn from the clips that the other one judges."""
    examples = [
        (lesson.side, (log_mels(lesson.samples), tuple(units_in(units.words(lesson.text))))) for lesson in lessons
    ]
    return [
        adapt(model, [example for side, example in examples if side != number], should_stop, report, seed=number)
        for number, model in enumerate(models)
    ]


def _limits(lessons: Sequence[Lesson], models: Sequence[PhoneRecogniser], units: Units) -> Limits | None:
    judged = [Judged(emit(models[lesson.side], lesson.samples), units.words(lesson.text)) for lesson in lessons]
    return calibrate(judged)


def _lessons(
    recordings: Sequence[tuple[Recording, str]],
    models: Sequence[PhoneRecogniser],
    units: Units,
    settings: DatasetConfig,
    report: Report,
    should_stop: ShouldStop,
) -> Iterator[Lesson]:
    """Yield the subtitles and sentences of the recordings, in an order that is random but always the same."""
    total = 0.0
    ordered = sorted(recordings, key=lambda pair: pair[1])
    for recording, content in counted(ordered, report, "check_texts", should_stop):
        with contextlib.suppress(AmharicTtsError):  # reported when the recording is processed
            for lesson in _lessons_of(recording, content, models, units, settings, should_stop):
                yield lesson
                total += lesson.seconds
                if total > LESSON_SECONDS:
                    return


def _lessons_of(
    recording: Recording,
    content: str,
    models: Sequence[PhoneRecogniser],
    units: Units,
    settings: DatasetConfig,
    should_stop: ShouldStop,
) -> Iterator[Lesson]:
    seconds = audio.duration(recording.path)
    limit = WORST if recording.cues or seconds <= settings.max_seconds else UNSAID
    rows = _rows(models, recording.path, content)
    groups, _ = find_words(rows, limit, recording, units, seconds, settings, should_stop)
    cues = [_around(group, seconds) for group in _joined(groups, min(LESSON_LENGTH, seconds / LESSONS))]
    for cue, samples in zip(cues, read_spans(recording.path, [cue.span for cue in cues], RATE), strict=True):
        if samples.size and cue.span.seconds <= settings.max_seconds:
            yield Lesson(samples, cue.text, side(content, cue.span.middle))


def _joined(groups: Sequence[Group], length: float) -> list[Group]:
    """Join the words of subtitles or sentences to parts of about this length, as clips are."""
    parts = grouped(filter(None, groups), lambda part, group: group[-1].span.end - part[0][0].span.start <= length)
    return [list(chain.from_iterable(part)) for part in parts]


def _around(group: Group, seconds: float) -> Cue:
    """Return a clip of these words with a little sound around it."""
    start = max(0.0, group[0].span.start - LESSON_PADDING)
    end = min(seconds, group[-1].span.end + LESSON_PADDING)
    return Cue(Span(start, max(start, end)), " ".join(word.text for word in group))


def _save(check: TextCheck, models: Sequence[PhoneRecogniser]) -> TextCheck:
    make_folder(check.folder)
    (check.folder / DIGESTS).unlink(missing_ok=True)
    for number, model in enumerate(models):
        save_recogniser(model, check.folder / f"{number}.safetensors")
    write_atomically(check.folder / LIMITS, json.dumps(dataclasses.asdict(check.limits)))
    seal(check.folder, DIGESTS, {})
    return check
