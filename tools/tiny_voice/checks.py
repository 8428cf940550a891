"""Measures of a voice that need no ear: which sentence it said, how long it took, how it sounds, how fast it is.

A sentence counts as understood when, among espeak-ng's own renderings of many sentences in that voice, the one of the
same sentence is nearest to what was spoken, along the best path through both.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tools.tiny_voice.audio import render, trim_silence
from tools.tiny_voice.corpus import read_sentences
from tools.tiny_voice.progress import Progress
from tools.tiny_voice.speakers import SAMPLE_SPEAKER, SPEAKERS, Speaker
from utils.config import SpeechConfig
from utils.core.batching import evenly_spaced
from utils.core.wording import describe
from utils.evaluation.evaluate import EvaluatedModel, Vector
from utils.evaluation.metrics import Cepstra, mel_cepstra, mel_cepstral_distance, warped_distance
from utils.media import audio
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE, RATE
from utils.speech.reference_choice import pitches
from utils.speech.synthesizer import Caches, Synthesizer, open_voice
from utils.speech.types import Speech
from utils.studio import sample_project

EVERY = 2  # frames of 10 ms: halves what the paths cost twice over
AS_LONG = 0.3  # share by which a length may differ
EMPTY = 0.2  # seconds
BATCH = 8  # sentences that are spoken together

SAMPLE_SECONDS = 30.0  # seconds of the sample, which tell its voice and its pitch
FAR = math.inf  # from everything: what says nothing


@dataclass(frozen=True)
class Checks:
    """What the finished voice is asked.

    Attributes:
        retrieved: Unseen sentences, each of which has to be nearest to its own rendering.
        spoken: Sentences that have to come to an end.
        voices: Trained voices that speak them in turn.
    """

    retrieved: int = 50
    spoken: int = 200
    voices: int = 2


@dataclass(frozen=True)
class SpokenSentence:
    """One sentence as the model and as espeak-ng says it, both at 24 kHz and trimmed.

    Attributes:
        text: As it is written.
        speaker: Whose voice it is.
        spoken: What the model said.
        rendered: What espeak-ng says.
        ended: Whether the model ended by itself.
    """

    text: str
    speaker: Speaker
    spoken: Samples
    rendered: Samples
    ended: bool

    @property
    def ratio(self) -> float:
        """Return how long the model took in terms of espeak-ng."""
        return self.spoken.size / max(1, self.rendered.size)

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing that could be a word was said."""
        return self.spoken.size < EMPTY * OUTPUT_RATE


def measure(folder: Path, settings: Checks, progress: Progress) -> dict[str, Any]:
    """Let a model speak sentences that it never learnt, and compare."""
    model = open_voice(folder, "auto", "auto", caches=Caches(folder.parent / "heard"))
    texts = evenly_spaced(read_sentences()["eval"], settings.spoken)
    said, factor = speak(model, texts, {one: one.name for one in SPEAKERS[: settings.voices]}, progress)
    found = evenly_spaced(said, settings.retrieved)
    apart = [mel_cepstral_distance(one.spoken, one.rendered) for one in said]
    distances = [one for one in apart if one is not None and math.isfinite(one)]
    return {
        "sentences": len(said),
        "retrieved": retrieved(found, progress),
        "retrieved_of": len(found),
        "as_long": share(abs(one.ratio - 1) <= AS_LONG for one in said),
        "endless": sum(not one.ended for one in said),
        "empty": sum(one.is_empty for one in said),
        "mcd_db": round(float(np.mean(distances)), 2) if distances else None,
        "real_time_factor": round(factor, 3),
        "computed_in": [describe(model.precision.gpt_reason), describe(model.precision.vocoder_reason)],
    }


def nearest(spoken: Sequence[Samples], rendered: Sequence[Samples], progress: Progress) -> list[int]:
    """Return the index of the nearest rendering for each sound."""
    known = [_heard(sound) for sound in rendered]
    return [_nearest(_heard(sound), known) for sound in progress.over(spoken, len(spoken))]


def speak(
    model: Synthesizer, texts: Sequence[str], voices: Mapping[Speaker, str], progress: Progress, versions: int = 1
) -> tuple[list[SpokenSentence], float]:
    """Let speakers, each by a reference, speak the texts in turn; return that, and seconds of work for one of sound.

    Of several versions of a sentence, the program chooses one by its own checks.
    """
    own = {speaker: texts[place :: len(voices)] for place, speaker in enumerate(voices)}
    batches = [(one, its[at : at + BATCH]) for one, its in own.items() for at in range(0, len(its), BATCH)]
    said: list[SpokenSentence] = []
    work = seconds = 0.0
    for speaker, batch in progress.over(batches, len(batches)):
        settings = SpeechConfig(reference=voices[speaker], tries=1, candidates=versions, batch_size=BATCH)
        made = model.speak_many(batch, settings)
        work += made[0].timings["total"]  # one clock for all of a batch
        seconds += sum(speech.seconds for speech in made)
        said += [_said(text, speaker, speech) for text, speech in zip(batch, made, strict=True)]
    return said, work / max(seconds, 1e-9)


def _said(text: str, speaker: Speaker, speech: Speech) -> SpokenSentence:
    ended = all(one.ended for one in speech.utterances)
    return SpokenSentence(text, speaker, trim_silence(speech.samples), _rendered(text, speaker), ended)


def retrieved(said: Sequence[SpokenSentence], progress: Progress) -> float:
    """Return the share of sentences that are nearest to their own rendering, among all in the same voice."""
    right = 0
    for speaker in dict.fromkeys(one.speaker for one in said):
        rendered = [one.rendered if one.speaker == speaker else _rendered(one.text, speaker) for one in said]
        own = [number for number, one in enumerate(said) if one.speaker == speaker]
        found = nearest([said[number].spoken for number in own], rendered, progress)
        right += sum(one == number for one, number in zip(found, own, strict=True))
    return round(right / max(1, len(said)), 4)


def _rendered(text: str, speaker: Speaker) -> Samples:
    return trim_silence(resample(render(text, speaker), RATE, OUTPUT_RATE))


def _heard(sound: Samples) -> Cepstra:
    """Return the cepstra of a sound with the colour of the whole taken out: a vocoder has one of its own."""
    found = mel_cepstra(sound)[::EVERY]
    if not len(found):
        return found
    return np.asarray((found - found.mean(0)) / (found.std(0) + 1e-3), np.float32)


def _nearest(one: Cepstra, known: Sequence[Cepstra]) -> int:
    if not len(one):
        return -1
    return int(np.argmin([warped_distance(one, each) for each in known]))


def share(found: Iterable[bool]) -> float:
    """Return how many of some facts hold, from 0 to 1."""
    values = list(found)
    return round(sum(values) / max(1, len(values)), 4)


def compare_fine_tuned(
    before: Path, after: Path, reference: Path, sentences: int, progress: Progress
) -> dict[str, Any]:
    """Let both models speak unseen sentences in the voice of a clip; the speaker_encoder of the first one judge both.

    Args:
        before: Folder of the voice.
        after: Folder of what was made of it.
        reference: A clip of the held-out speaker.
        sentences: How many.
        progress: Hears how far it is.
    """
    texts = evenly_spaced(read_sentences()["eval"], sentences)
    models = [open_voice(folder, "auto", "auto", caches=Caches(after.parent / "heard")) for folder in (before, after)]
    first, last = (speak(model, texts, {SAMPLE_SPEAKER: str(reference)}, progress)[0] for model in models)
    wanted, speaker_encoder = (
        audio.load(sample_project.DATA / sample_project.AUDIO_FILE, OUTPUT_RATE, end=SAMPLE_SECONDS),
        EvaluatedModel(models[0]),
    )
    voice, pitch = speaker_encoder.voice_of(wanted), _pitch(wanted)
    return {
        "sentences": len(texts),
        "retrieved": retrieved(last, progress),
        "retrieved_before": retrieved(first, progress),
        "as_long": share(abs(one.ratio - 1) <= AS_LONG for one in last),
        **improvement("voice", _strange(speaker_encoder, voice, first), _strange(speaker_encoder, voice, last)),
        **improvement("pitch", _off(pitch, first), _off(pitch, last)),
    }


def improvement(what: str, before: Sequence[float], after: Sequence[float]) -> dict[str, float | None]:
    """Tell in how many sentences a distance became smaller, and what is usual before and after."""
    return {
        f"{what}_nearer": share(now < then for then, now in zip(before, after, strict=True)),
        f"{what}_before": _usual(before),
        f"{what}_after": _usual(after),
    }


def _usual(distances: Sequence[float]) -> float | None:
    """Return the median; None when most of them say nothing."""
    median = float(np.median(distances))
    return round(median, 4) if math.isfinite(median) else None


def _strange(speaker_encoder: EvaluatedModel, wanted: Vector, said: Sequence[SpokenSentence]) -> list[float]:
    """Return how far each voice is from the one that was wanted: 1 minus the cosine."""
    return [FAR if one.is_empty else 1 - float(wanted @ speaker_encoder.voice_of(one.spoken)) for one in said]


def _off(wanted: float, said: Sequence[SpokenSentence]) -> list[float]:
    """Return how far the median pitch of each is from the one that was wanted, in semitones."""
    return [abs(12 * math.log2(_pitch(one.spoken) / wanted)) for one in said]


def _pitch(sound: Samples) -> float:
    found = pitches(sound, OUTPUT_RATE)
    return float(np.median(found)) if found.size else FAR
