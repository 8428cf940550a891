"""Check the texts of a project: learn its sound, choose the limits, cut its recordings by their words, judge its clips.

Each half of the recordings, in blocks of half a minute, is judged by a recogniser that learnt from the other half, so
that no wrong text is believed because it was learnt by heart.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.core.storage import cached_while_unchanged, make_folder, read_json, write_atomically
from utils.dataset.clip import MISMATCHES, Clip, Recording
from utils.dataset.transcript import Group, words_of_cues, words_of_transcript
from utils.dataset.word_cutting import cut_words, trim, with_words
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
from utils.recognition.units import Units, units_of

FOLDER = "text_check"  # below the dataset
LIMITS = "limits.json"
BLOCK_SECONDS = 30.0
LESSON_PADDING = 0.2  # seconds
LESSON_LENGTH = 8.0  # seconds, about as long as clips
LESSONS = 24  # of one recording, if it is too short for such long ones
LESSON_SECONDS = 1800.0  # at most, of the clips that are learnt from
MIN_LESSON_SECONDS = 120.0  # less is not learnt from
CLEAR = (0.03, 0.25)  # shares of wrong texts and words that may be missed without learning
LONG_SENTENCE = 20  # words; a text without punctuation is divided


@dataclass(frozen=True)
class TextCheck:
    """The recognisers and limits of a project; it is sent to worker processes."""

    folder: Path
    language: str
    limits: Limits

    @property
    def units(self) -> Units:
        return _units(self.folder.parent, self.language)

    def rows(self, path: Path, recording: str) -> Rows:
        """Return the log-probabilities of a whole recording: 14 MB an hour."""
        return _rows(self._models(), path, recording)

    def _models(self) -> tuple[PhoneRecogniser, ...]:
        return _load(self.folder / LIMITS, self.language)

    def cut(
        self, rows: Rows, recording: Recording, speech: Sequence[Span], seconds: float, settings: DatasetConfig
    ) -> tuple[list[Cue], list[Span], list[str]]:
        """Return the clips of a recording with text, cut in pauses between words, its speech, and warnings.

        There are none where words do not help: without speech, or for a short recording with another text.
        """
        groups, missing = find_words(rows, self.limits.score, recording, self.units, seconds, settings)
        speech = with_words(speech, groups, settings)
        if not speech:
            return [], [], []
        if not recording.cues and seconds <= settings.max_seconds:
            return (trim(groups[0], recording.text, speech, seconds, settings) if groups else []), speech, []
        first = " / ".join(sentence[:60] for sentence in missing[:3])
        warning = f"{len(missing)} sentences of the text were not found in the recording: {first}"
        return cut_words(groups, speech, seconds, settings), speech, [warning] if missing else []

    def judge(self, clip: Clip, samples: Samples) -> Clip:
        """Return a clip with its words, excluded where its text does not match; it is heard alone, as in lessons."""
        model = self._models()[side(clip.recording, (clip.span.start + clip.span.end) / 2)]
        aligned = align(emit(model, audio.resample(samples, PROJECT_RATE, RATE)), self.units.words(clip.text))
        if aligned is None:
            return clip.excluded(MISMATCHES[0])
        times = [[word.text, round(word.span.start, 2), round(word.span.end, 2)] for word in aligned.words]
        scores = dataclasses.replace(clip.scores, text_match=round(aligned.score, 3))
        clip = dataclasses.replace(clip, scores=scores, words=json.dumps(times, ensure_ascii=False))
        reason, note = findings(aligned, self.limits, self.units)
        return clip.excluded(reason, note) if reason else clip


def findings(aligned: Alignment, limits: Limits, units: Units) -> tuple[str, str]:
    """Return the reason to exclude a clip, and the words concerned."""
    wrong = [word.text for word in aligned.words if word_score(word) < limits.word]
    if aligned.score < limits.score:
        return MISMATCHES[0], " ".join(wrong)
    if wrong:
        return MISMATCHES[1], " ".join(wrong)
    if extra := [gap for gap in aligned.gaps if gap.evidence > limits.gap]:
        heard = ", ".join(
            f"{gap.span.start:.1f}-{gap.span.end:.1f} s: {''.join(units.symbols[unit - 1] for unit in gap.units)}"
            for gap in extra
        )
        return MISMATCHES[2], heard
    return "", ""


def find_words(
    rows: Rows, limit: float, recording: Recording, units: Units, seconds: float, settings: DatasetConfig
) -> tuple[list[Group], list[str]]:
    """Return the words of each subtitle or sentence, and the sentences that are not said."""
    if recording.cues:
        return words_of_cues(rows, recording.cues, units, limit), []
    whole = seconds <= settings.max_seconds
    sentences = [recording.text] if whole else sentences_of(recording.text, settings.language)
    return words_of_transcript(rows, sentences, units, limit)


def _units(dataset: Path, language: str) -> Units:
    """Return the units of a project's texts, which its own pronunciations correct."""
    return units_of(language, Project(dataset.parent).pronunciations)


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


def saved_check(folder: Path, language: str) -> TextCheck | None:
    """Return what an earlier build of the project has learnt."""
    path = folder / FOLDER / LIMITS
    return TextCheck(folder / FOLDER, language, Limits(**read_json(path))) if path.is_file() else None


def learn(
    recordings: Sequence[tuple[Recording, str]],
    folder: Path,
    settings: DatasetConfig,
    check_stop: Callable[[], None] = lambda: None,
) -> tuple[TextCheck | None, str]:
    """Learn the sound of a project from its recordings, given with their content hashes.

    Return what checks its texts, and what it cannot check and why.
    """
    torch.set_num_threads(max(1, settings.workers or torch.get_num_threads()))
    saved = saved_check(folder, settings.language)
    units = _units(folder, settings.language)
    models = [load_recogniser(EMBEDDED, units)] * 2
    if saved:
        models = [load_recogniser(saved.folder / f"{number}.safetensors", units) for number in (0, 1)]
    lessons = list(_lessons(recordings, models, units, settings, check_stop))
    seconds = sum(lesson.samples.size for lesson in lessons) / RATE
    limits = _limits(lessons, models, units)
    is_clear = limits and limits.missed <= CLEAR[0] and limits.missed_words <= CLEAR[1]
    if not is_clear and seconds >= MIN_LESSON_SECONDS and not saved:
        examples = [
            (
                log_mels(lesson.samples),
                tuple(unit for word in units.words(lesson.text) for unit in word.units),
                lesson.side,
            )
            for lesson in lessons
        ]
        learnt = [
            adapt(
                models[number],
                [(mels, spoken) for mels, spoken, half in examples if half != number],
                check_stop,
                number,
            )
            for number in (0, 1)
        ]
        better = _limits(lessons, learnt, units)
        if better and (limits is None or better.missed + better.missed_words < limits.missed + limits.missed_words):
            models, limits = learnt, better
    if saved and (limits is None or not limits.usable):
        return saved, saved.limits.note
    if limits is None:
        return None, f"Texts were not checked: {len(lessons)} clips are too few to learn what a wrong text looks like."
    if not limits.usable:
        return None, (
            "Texts were not checked: they match their audio no better than the texts of other clips do. "
            "The recogniser may not know this voice or language, or the texts may belong to other clips."
        )
    return _save(folder / FOLDER, settings.language, models, limits), limits.note


def _limits(lessons: Sequence[Lesson], models: Sequence[PhoneRecogniser], units: Units) -> Limits | None:
    judged = [Judged(emit(models[lesson.side], lesson.samples), units.words(lesson.text)) for lesson in lessons]
    return calibrate(judged)


def _lessons(
    recordings: Sequence[tuple[Recording, str]],
    models: Sequence[PhoneRecogniser],
    units: Units,
    settings: DatasetConfig,
    check_stop: Callable[[], None],
) -> Iterator[Lesson]:
    """Yield the subtitles and sentences of the recordings, in an order that is random but always the same."""
    total = 0.0
    for recording, content in sorted(recordings, key=lambda pair: pair[1]):
        check_stop()
        with contextlib.suppress(AmharicTtsError):  # reported when the recording is processed
            for lesson in _lessons_of(recording, content, models, units, settings):
                yield lesson
                total += lesson.samples.size / RATE
                if total > LESSON_SECONDS:
                    return


def _lessons_of(
    recording: Recording, content: str, models: Sequence[PhoneRecogniser], units: Units, settings: DatasetConfig
) -> Iterator[Lesson]:
    seconds = audio.duration(recording.path)
    groups, _ = find_words(_rows(models, recording.path, content), WORST, recording, units, seconds, settings)
    cues = [_around(group, seconds) for group in _joined(groups, min(LESSON_LENGTH, seconds / LESSONS))]
    for cue, samples in zip(cues, read_spans(recording.path, [cue.span for cue in cues], RATE), strict=True):
        if samples.size and cue.span.seconds <= settings.max_seconds:
            yield Lesson(samples, cue.text, side(content, (cue.span.start + cue.span.end) / 2))


def _joined(groups: Sequence[Group], length: float) -> list[Group]:
    """Join the words of subtitles or sentences to parts of about this length, as clips are."""
    parts: list[Group] = []
    for group in filter(None, groups):
        if parts and group[-1].span.end - parts[-1][0].span.start <= length:
            parts[-1] = [*parts[-1], *group]
        else:
            parts.append(group)
    return parts


def _around(group: Group, seconds: float) -> Cue:
    """Return a clip of these words with a little sound around it."""
    start, end = max(0.0, group[0].span.start - LESSON_PADDING), min(seconds, group[-1].span.end + LESSON_PADDING)
    return Cue(Span(start, max(start, end)), " ".join(word.text for word in group))


def _save(folder: Path, language: str, models: Sequence[PhoneRecogniser], limits: Limits) -> TextCheck:
    make_folder(folder)
    for number, model in enumerate(models):
        save_recogniser(model, folder / f"{number}.safetensors")
    write_atomically(folder / LIMITS, json.dumps(dataclasses.asdict(limits)))
    return TextCheck(folder, language, limits)
