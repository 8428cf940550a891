"""Turn one recording into clips: a pure function, whichever process or machine runs it."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from utils.config import DatasetConfig
from utils.core.facts import Fact, ShouldStop, WarningFact, log_fact, never_stop
from utils.dataset import cutting, filters
from utils.dataset.clip import Clip, Recording, Source, clip_id
from utils.dataset.facts import CueDiffers
from utils.media import audio
from utils.media.audio import Samples
from utils.media.facts import AudioCutOff
from utils.media.loudness import levelled
from utils.media.rates import RATE
from utils.recognition import levels, rumble, signal_checks, vad
from utils.recognition.facts import RecogniserChanged, RecognitionError
from utils.recognition.levels import ClipScores
from utils.recognition.recognisers import RATE as ASR_RATE
from utils.recognition.recognisers import Recogniser, Transcript, second_cer
from utils.recognition.spans import Cue, Span, near, read_spans

if TYPE_CHECKING:
    from utils.dataset.text_check import TextCheck

BORDER = 0.2  # seconds that a turn may reach into the clip of another speaker
BATCH = 16  # clips transcribed at a time: at most three minutes of audio in memory

ClipAudio = tuple[Clip, Samples]  # a clip and its audio at ``RATE``


# Long because the steps are generators around each other, which hold one clip at a time.
def process_recording(
    recording: Recording,
    source: Source,
    settings: DatasetConfig,
    recogniser: Recogniser | None = None,
    second: Recogniser | None = None,
    check: "TextCheck | None" = None,
    should_stop: ShouldStop = never_stop,
) -> tuple[Source, Iterator[ClipAudio]]:
    """Cut a recording, transcribe it if it has no text, measure and filter its clips; ``check`` judges given texts.

    Return the source with its length and warnings, and the clips one by one, so that a long recording needs little
    memory. A second recogniser is for comparison, also with a text that was given.
    """
    at_end = list[Fact]()
    damage = list[Fact]()
    seconds = audio.duration(recording.path, at_end.append)
    speech = vad.speech_segments(recording.path, settings, damage.append)
    cut_off = [fact for fact in at_end if isinstance(fact, AudioCutOff)]  # any other damage is found again in the whole
    check = None if needs_transcription(recording) else check
    cues = list[Cue]()
    warnings = list[WarningFact]()
    unsure: Mapping[Span, str] = {}
    if check and not recording.turns:
        rows = check.rows(recording.path, source.recording)
        cues, speech, warnings, unsure = check.cut(rows, recording, speech, seconds, settings, should_stop)
    if not cues:
        cues, differing = _cut(recording, speech, seconds, settings)
        warnings += differing
    warnings += signal_checks.find_problems(recording.path, speech)
    drafts = (_draft(recording, source.recording, cue) for cue in cues)
    drafts = (clip.excluded("word not spoken", unsure[clip.span]) if clip.span in unsure else clip for clip in drafts)
    clips: Iterator[ClipAudio] = zip(drafts, read_spans(recording.path, [cue.span for cue in cues]), strict=True)
    if check:
        judge = check.judge
        clips = ((judge(clip, samples) if clip.text and samples.size else clip, samples) for clip, samples in clips)
    first = recogniser if needs_transcription(recording) else None
    if first or second:
        clips = _transcribed(clips, first, second, settings.language)
    source = replace(source, seconds=seconds, warnings=(*recording.warnings, *cut_off, *damage, *warnings))
    return source, (_finished(clip, samples, speech, settings) for clip, samples in clips)


def needs_transcription(recording: Recording) -> bool:
    """Return whether a recording has no text at all; gaps in subtitles are not transcribed."""
    return not recording.text and not recording.cues


def content_hash(path: Path) -> str:
    """Return the hash that identifies a recording."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def sound_hash(samples: Samples) -> str:
    """Return a hash of the samples as stored."""
    return hashlib.sha256((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()).hexdigest()[:16]


def _cut(
    recording: Recording, speech: Sequence[Span], seconds: float, settings: DatasetConfig
) -> tuple[list[Cue], list[CueDiffers]]:
    """Return the spans of the clips in order, with their text if known."""
    if recording.cues:
        clips = list[Cue]()
        warnings = list[CueDiffers]()
        for cues, within in _runs(recording, speech, seconds):
            more, differing = cutting.cut_cues(cues, within, seconds, settings)
            clips = clips + more
            warnings = warnings + differing
        return sorted(clips, key=lambda cue: cue.span.start), warnings
    if not recording.text:
        return [Cue(span, "") for span in cutting.cut_speech(speech, seconds, settings)], []
    span = Span(0.0, seconds)
    padding = settings.padding_seconds
    if speech:  # without the silence around it
        span = Span(speech[0].start - padding, speech[-1].end + padding).within(0.0, seconds)
    return [Cue(span, recording.text)], []


def _runs(
    recording: Recording, speech: Sequence[Span], seconds: float
) -> Iterator[tuple[Sequence[Cue], Sequence[Span]]]:
    """Yield the cues of each speaker in turn, with the speech between the middles of the pauses around them."""
    runs = [list(run) for _, run in groupby(recording.cues, key=lambda cue: _speakers(recording, cue.span))]
    middles = [(before[-1].span.end + after[0].span.start) / 2 for before, after in pairwise(runs)]
    for run, left, right in zip(runs, [0.0, *middles], [*middles, seconds], strict=True):
        inside = (span.within(left, right) for span in speech)
        yield run, [span for span in inside if span.seconds > 0]


def _speakers(recording: Recording, span: Span) -> list[str]:
    """Return who talks in a stretch, if several people talk in the recording."""
    return list(dict.fromkeys(turn.speaker for turn in recording.turns if turn.span.overlap(span) > BORDER))


def _draft(recording: Recording, content: str, cue: Cue) -> Clip:
    """Make a clip; one in which several speakers talk is excluded."""
    speakers = _speakers(recording, cue.span)
    speaker = speakers[0] if speakers else recording.speaker
    clip = Clip(clip_id(content, cue.span), content, str(recording.path), cue.span, speaker, cue.text)
    clip = with_other(clip, _other_text(recording, cue.span))
    return clip.excluded("another speaker", ", ".join(speakers)) if len(speakers) > 1 else clip


def _other_text(recording: Recording, span: Span) -> str:
    """Return what another text says in a stretch; one of far more than that says nothing of it."""
    inside = (cue for cue in recording.other if cue.span.seconds <= 2 * span.seconds)
    return " ".join(cue.text for cue in inside if 2 * cue.span.overlap(span) > min(cue.span.seconds, span.seconds))


def with_other(clip: Clip, text: str) -> Clip:
    """Return a clip with the text that another source has of it, if that has other words."""
    differs = text and (not clip.text or second_cer(clip.text, text))
    return replace(clip, other_text=text) if differs else clip


def _transcribed(
    clips: Iterator[ClipAudio], recogniser: Recogniser | None, second: Recogniser | None, language: str
) -> Iterator[ClipAudio]:
    """Transcribe clips in batches unless they have a text, and compare with the second recogniser."""
    while batch := list(islice(clips, BATCH)):
        batch_audio = [audio.resample(samples, RATE, ASR_RATE) for _, samples in batch]
        transcripts = recogniser.transcribe(batch_audio, language) if recogniser else [None] * len(batch)
        others = _second_opinion(second, batch_audio, language)
        for (clip, samples), transcript, other in zip(batch, transcripts, others, strict=True):
            if transcript:
                measured = ClipScores(confidence=transcript.confidence)
                clip = replace(clip, text=transcript.text.strip(), scores=measured)  # noqa: PLW2901
            if other:
                measured = replace(clip.scores, second_cer=second_cer(clip.text, other.text))
                clip = with_other(replace(clip, scores=measured), other.text.strip())  # noqa: PLW2901
            yield clip, samples


def _second_opinion(second: Recogniser | None, clips: Sequence[Samples], language: str) -> Sequence[Transcript | None]:
    """Return the transcripts of the second recogniser; clips are used without them if it cannot be loaded."""
    if second:
        try:
            return second.transcribe(clips, language)
        except RecognitionError as error:
            log_fact(RecogniserChanged(second.name, "not_used", str(error)))
    return [None] * len(clips)


def _finished(clip: Clip, samples: Samples, speech: Sequence[Span], settings: DatasetConfig) -> ClipAudio:
    """Measure and filter a clip, and process its audio for storage."""
    if not samples.size:
        return clip.excluded("no sound"), samples
    measured = levels.measure(samples, RATE, _within(speech, clip.span), clip.text)
    known = {name: value for name, value in dataclasses.asdict(clip.scores).items() if value is not None}
    is_humming = rumble.hum(samples, RATE)[0] > signal_checks.HUM_BELOW_VOICE
    samples = rumble.steadied(samples, RATE) if is_humming else audio.centred(samples)
    if settings.normalise_loudness:
        samples = levelled(samples, RATE, measured.loudness_lufs)
    samples = audio.faded(samples, RATE)
    clip = replace(clip, scores=replace(measured, **known), content=sound_hash(samples))
    reason = filters.judge(clip, settings)
    can_replace = clip.status == "kept" or reason == "no speech"  # silence outweighs any other reason
    return filters.filtered(clip, reason) if reason and can_replace else clip, samples


def _within(speech: Sequence[Span], clip: Span) -> list[Span]:
    """Return the speech within a clip, relative to its start."""
    parts = (span.within(clip.start, clip.end) for span in speech[near(speech, clip.start, clip.end)])
    return [Span(part.start - clip.start, part.end - clip.start) for part in parts]
