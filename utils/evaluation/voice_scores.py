"""Scores of a checkpoint from what it speaks, and the composite that picks the best one.

All scores are from 0 to 1, higher is better, and come from sentences that are never trained on:

* ``intelligibility``: 1 minus the phone or character error of a recogniser;
* ``endings``: share of sentences that neither stopped early nor ran on nor repeated something;
* ``duration``: 1 minus the mean difference from the recording of the same words;
* ``similarity``: cosine similarity to the voice of the reference, by an encoder that is not the model's own;
* ``loss``: how much lower the evaluation loss is than that of the base model.

The composite is their mean with ``WEIGHTS``; what is not measured is left out. Without intelligibility there is none,
because the other scores do not tell speech from noise.
"""

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol, get_args

import jiwer
import numpy as np
import torch

from utils.core.languages import AMHARIC, canonical
from utils.dataset.text_check import saved_check
from utils.evaluation.metrics import error_rates
from utils.media import audio
from utils.media.arrays import Float32Array
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.recognition.aligner import emit, heard_units
from utils.recognition.phone_recogniser import EMBEDDED, load_recogniser
from utils.recognition.recognisers import RATE as RECOGNISER_RATE
from utils.recognition.recognisers import Recogniser
from utils.recognition.units import units_in, units_of
from utils.speech import guards
from utils.speech.facts import Flag, FlagKind

WEIGHTS = {"intelligibility": 0.4, "endings": 0.2, "similarity": 0.2, "duration": 0.1, "loss": 0.1}
EARLY, LATE = 0.6, 1.6  # of the recording's length: the speech stopped early, or ran on
# Those with which a sentence is still finished, or that the scores tell better.
HARMLESS: set[FlagKind] = {"unclear", "pause", "noise", "ending", "clipped", "unheard", "added"}
UNFINISHED = set(get_args(FlagKind)) - HARMLESS
ENCODER_RATE = 16_000


class SpokenSentence(NamedTuple):
    """A sentence as a checkpoint speaks it."""

    text: str
    samples: Samples  # at 24 kHz
    reference: Path  # clip of the voice
    recording: Path | None  # of the same words
    flags: tuple[Flag, ...] = ()  # of the speech checks


class Judge(Protocol):
    """Tells how much of each text cannot be recognised in its speech, such as a phone recogniser."""

    def errors(self, clips: Sequence[Samples], texts: Sequence[str], language: str) -> list[float | None]:
        """Return the error of each clip (mono, at the rate of the recognisers); None where it cannot be told."""


class TranscriptJudge:
    """Judges by the character error of a recogniser that writes text; letters of the same sound are folded."""

    def __init__(self, recogniser: Recogniser) -> None:
        self.recogniser = recogniser

    def errors(self, clips: Sequence[Samples], texts: Sequence[str], language: str) -> list[float | None]:
        transcripts = self.recogniser.transcribe(clips, language)
        rates = [error_rates(text, heard.text, language) for text, heard in zip(texts, transcripts, strict=True)]
        return [rate.cer if rate else None for rate in rates]


class PhoneJudge:
    """Judges by the phone error of the small recogniser that also checks texts (see ``find_phone_judge``)."""

    def __init__(self, weights: Path, pronunciations: Path | None = None) -> None:
        self.weights = weights
        self.pronunciations = pronunciations

    def errors(self, clips: Sequence[Samples], texts: Sequence[str], language: str) -> list[float | None]:
        units = units_of(language, self.pronunciations)
        with torch.random.fork_rng([]):  # building a model draws numbers, and a training must not notice
            model = load_recogniser(self.weights, units)
        errors = []
        for samples, text in zip(clips, texts, strict=True):
            heard, _ = heard_units(emit(model, samples))
            expected = units_in(units.words(text))
            written, spoken = (" ".join(map(str, numbers)) for numbers in (expected, heard))
            errors.append(float(jiwer.wer(written, spoken)) if expected else None)
        return errors


def find_phone_judge(language: str, dataset: Path, pronunciations: Path | None = None) -> PhoneJudge | None:
    """Return the recogniser that learnt from a dataset when its texts were checked, or the embedded one for Amharic."""
    if learnt := saved_check(dataset, language):
        return PhoneJudge(learnt.folder / "0.safetensors", pronunciations)
    return PhoneJudge(EMBEDDED, pronunciations) if canonical(language) == AMHARIC.code else None


class VoiceScorer:
    """Scores the spoken sentences of a checkpoint; without a judge, their intelligibility is left out."""

    def __init__(self, language: str, judge: Judge | None = None) -> None:
        self.language = language
        self.judge = judge

    def __call__(self, spoken: Sequence[SpokenSentence]) -> dict[str, float]:
        analysed = [guards.AudioAnalysis(sentence.samples) for sentence in spoken]
        ratios = [
            analysis.spoken / recorded if sentence.recording and (recorded := _recorded(sentence.recording)) else None
            for sentence, analysis in zip(spoken, analysed, strict=True)
        ]
        is_whole = [
            not {flag.kind for flag in sentence.flags} & UNFINISHED and (ratio is None or EARLY <= ratio <= LATE)
            for sentence, ratio in zip(spoken, ratios, strict=True)
        ]
        scores = {
            "endings": _mean(is_whole),
            "duration": _mean([max(0.0, 1 - abs(ratio - 1)) for ratio in ratios if ratio is not None]),
            "similarity": self._similarity(spoken),
            "intelligibility": self._intelligibility(spoken),
        }
        return {name: round(score, 4) for name, score in scores.items() if score is not None}

    def _intelligibility(self, spoken: Sequence[SpokenSentence]) -> float | None:
        if self.judge is None:
            return None
        clips = [resample(sentence.samples, OUTPUT_RATE, RECOGNISER_RATE) for sentence in spoken]
        errors = self.judge.errors(clips, [sentence.text for sentence in spoken], self.language)
        return _mean([max(0.0, 1 - error) for error in errors if error is not None])

    def _similarity(self, spoken: Sequence[SpokenSentence]) -> float | None:
        encode = speaker_encoder()
        if encode is None:
            return None
        voices = [encode(sentence.samples) for sentence in spoken if sentence.samples.size > OUTPUT_RATE // 2]
        references = {sentence.reference: encode(_load(sentence.reference)) for sentence in spoken}
        reference = np.mean(list(references.values()), axis=0)
        reference /= max(1e-9, float(np.linalg.norm(reference)))
        return _mean([max(0.0, float(voice @ reference)) for voice in voices])


def composite(scores: dict[str, float], loss: float, base_loss: float | None) -> float | None:
    """Return the weighted mean of what was measured, or None without intelligibility."""
    if "intelligibility" not in scores:
        return None
    known = dict(scores)
    if base_loss:
        known["loss"] = min(1.0, max(0.0, 1 - loss / base_loss))
    weights = {name: WEIGHTS[name] for name in WEIGHTS if name in known}
    return round(sum(weight * known[name] for name, weight in weights.items()) / sum(weights.values()), 4)


@cache
def speaker_encoder() -> Callable[[Samples], Float32Array] | None:
    """Return the encoder of resemblyzer, which maps 24 kHz audio to a vector of length 1; None if not installed."""
    if importlib.util.find_spec("resemblyzer") is None:
        return None
    resemblyzer = importlib.import_module("resemblyzer")  # optional
    encoder = resemblyzer.VoiceEncoder("cpu", verbose=False)

    def encode(samples: Samples) -> Float32Array:
        prepared = resemblyzer.preprocess_wav(resample(samples, OUTPUT_RATE, ENCODER_RATE))
        return np.asarray(encoder.embed_utterance(prepared), np.float32)

    return encode


def _load(path: Path) -> Samples:
    return audio.load(path, OUTPUT_RATE)


@cache
def _recorded(path: Path) -> float:
    return guards.AudioAnalysis(_load(path)).spoken


def _mean(values: Sequence[float | bool]) -> float | None:
    return float(np.mean(values)) if values else None
