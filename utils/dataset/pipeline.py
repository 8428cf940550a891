"""One recording becomes clips: a pure function, the same in this process, in a pool or on another machine."""

import dataclasses
import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils.config import DatasetConfig
from utils.dataset import cutting, rules, scores, vad
from utils.dataset.clip import Clip, Cue, Recording, Scores, Span
from utils.dataset.recognisers import RATE as ASR_RATE
from utils.dataset.recognisers import Recogniser, Transcript, second_cer
from utils.media import audio, loudness
from utils.media.audio import Samples
from utils.media.rates import RATE

BATCH = 16  # clips transcribed at a time: at most three minutes of sound in memory


class Piece(NamedTuple):
    """A clip and its sound at ``RATE``."""

    clip: Clip
    samples: Samples


@dataclass(frozen=True)
class Processed:
    """What became of one recording.

    Attributes:
        seconds: Its length.
        warnings: What was odd about it.
        pieces: Its clips, judged; they are made while one goes through them, so a long recording needs little memory.
    """

    seconds: float
    warnings: tuple[str, ...]
    pieces: Iterator[Piece]


def process(
    recording: Recording,
    content: str,
    settings: DatasetConfig,
    recogniser: Recogniser | None = None,
    second: Recogniser | None = None,
) -> Processed:
    """Cut a recording, find the text of its clips, measure and judge them.

    Args:
        recording: Where it is and what is known of it.
        content: The hash of its file, which names its clips.
        settings: How it is cut and judged.
        recogniser: Finds the text of the clips that have none.
        second: Another opinion on that text.
    """
    seconds = audio.duration(recording.path)
    spoken = vad.speech_segments(recording.path, settings)
    cues, warnings = _cues(recording, spoken, seconds, settings)
    drafts = (_draft(recording, content, cue) for cue in cues)
    pieces: Iterator[Piece] = map(Piece, drafts, read_spans(recording.path, [cue.span for cue in cues]))
    if recogniser is not None and needs_transcription(recording):
        pieces = _transcribed(pieces, recogniser, second, settings.language)
    judged = (_finished(piece, spoken, settings) for piece in pieces)
    return Processed(seconds, (*recording.warnings, *warnings), judged)


def needs_transcription(recording: Recording) -> bool:
    """Tell whether nothing is known of what is said; speech that subtitles leave out is not for a recogniser."""
    return not recording.text and not recording.cues


def read_spans(path: Path, spans: Sequence[Span]) -> Iterator[Samples]:
    """Yield the sound of each span, in order of their starts, in one pass over the file."""
    blocks = audio.stream(path, RATE)
    held, first = np.zeros(0, np.float32), 0
    for span in spans:
        begin, end = round(span.start * RATE), round(span.end * RATE)
        while first + held.size < end:
            block = next(blocks, None)
            if block is None:
                break
            passed = min(max(0, begin - first), held.size)
            held, first = np.concatenate([held[passed:], block]), first + passed
        yield held[max(0, begin - first) : end - first].copy()


def _cues(
    recording: Recording, spoken: Sequence[Span], seconds: float, settings: DatasetConfig
) -> tuple[list[Cue], list[str]]:
    """Return the clips of a recording in order, with the text where it is known."""
    if recording.cues:
        cues, warnings = cutting.cut_cues(recording.cues, spoken, seconds, settings)
        return sorted(cues, key=lambda cue: cue.span.start), warnings
    if recording.text:
        return [Cue(_trimmed(spoken, seconds, settings.padding_seconds), recording.text)], []
    return [Cue(span, "") for span in cutting.cut_speech(spoken, seconds, settings)], []


def _trimmed(spoken: Sequence[Span], seconds: float, padding: float) -> Span:
    """Return all of a recording but the silence around its speech."""
    if not spoken:
        return Span(0.0, seconds)
    return Span(max(0.0, spoken[0].start - padding), min(seconds, spoken[-1].end + padding))


def _draft(recording: Recording, content: str, cue: Cue) -> Clip:
    start, end = (round(1000 * time) for time in (cue.span.start, cue.span.end))
    return Clip(
        id=f"{content}-{start:08d}-{end:08d}",
        recording=content,
        source=str(recording.path),
        span=cue.span,
        speaker=recording.speaker,
        text=cue.text,
    )


def _transcribed(
    pieces: Iterator[Piece], recogniser: Recogniser, second: Recogniser | None, language: str
) -> Iterator[Piece]:
    """Find the text of clips, a batch at a time, and how far another recogniser agrees."""
    while batch := list(islice(pieces, BATCH)):
        sounds = [audio.resample(piece.samples, RATE, ASR_RATE) for piece in batch]
        said = recogniser.transcribe(sounds, language)
        others = [other.text for other in second.transcribe(sounds, language)] if second else [None] * len(said)
        for piece, transcript, other in zip(batch, said, others, strict=True):
            yield _with_text(piece, transcript, other)


def _with_text(piece: Piece, said: Transcript, other: str | None) -> Piece:
    differing = None if other is None else second_cer(said.text, other)
    scored = Scores(confidence=said.confidence, second_cer=differing)
    return piece._replace(clip=dataclasses.replace(piece.clip, text=said.text.strip(), scores=scored))


def _finished(piece: Piece, spoken: Sequence[Span], settings: DatasetConfig) -> Piece:
    """Measure and judge a clip as it was recorded, then give its sound the form in which it is stored."""
    clip, samples = piece
    if not samples.size:
        return Piece(clip.excluded("no sound"), samples)
    measured = scores.measure(samples, RATE, _within(spoken, clip.span), clip.text)
    heard = {"confidence": clip.scores.confidence, "second_cer": clip.scores.second_cer}
    clip = dataclasses.replace(clip, scores=dataclasses.replace(measured, **heard))
    samples = loudness.centred(samples)
    if settings.normalise_loudness:
        samples = loudness.levelled(samples, RATE, measured.loudness_lufs)
    samples = audio.faded(samples, RATE)
    clip = dataclasses.replace(clip, content=sound_hash(samples))
    reason = rules.judge(clip, settings)
    return Piece(clip.excluded(reason) if reason else clip, samples)


def sound_hash(samples: Samples) -> str:
    """Name a sound by its samples as they are stored."""
    return hashlib.sha256((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()).hexdigest()[:16]


def _within(spoken: Sequence[Span], clip: Span) -> list[Span]:
    """Return the speech inside a clip, counted from its start."""
    first = bisect_right(spoken, clip.start, key=lambda span: span.end)
    stop = bisect_left(spoken, clip.end, key=lambda span: span.start)
    return [
        Span(max(0.0, span.start - clip.start), min(clip.end, span.end) - clip.start) for span in spoken[first:stop]
    ]
