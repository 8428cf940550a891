"""What a fine-tuning on the sample recording made of the voice: is its speaker nearer than before, and understood."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tools.tiny_voice.corpus import read_sentences
from tools.tiny_voice.measure import AS_LONG, Said, retrieved, share, speak
from tools.tiny_voice.progress import Progress
from tools.tiny_voice.speakers import HELD_OUT
from utils.evaluation.candidates import LoadedModel, Vector
from utils.evaluation.sentences import evenly_spaced
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech.reference_choice import pitches
from utils.speech.synthesizer import Synthesizer
from utils.workspace import sample_project

HEARD = 30.0  # seconds of the sample, which tell its voice and its pitch
FAR = math.inf  # from everything: what says nothing


def compare(before: Path, after: Path, reference: Path, sentences: int, progress: Progress) -> dict[str, Any]:
    """Let both models speak unseen sentences in the voice of a clip; the ears of the first one judge both.

    Args:
        before: Folder of the voice.
        after: Folder of what was made of it.
        reference: A clip of the held-out speaker.
        sentences: How many.
        progress: Hears how far it is.
    """
    texts = evenly_spaced(read_sentences()["eval"], sentences)
    models = [Synthesizer.load(folder, "auto", "auto", cache=after.parent / "heard") for folder in (before, after)]
    first, last = (speak(model, texts, {HELD_OUT: str(reference)}, progress)[0] for model in models)
    wanted, ears = (
        audio.load(sample_project.DATA / sample_project.AUDIO_FILE, OUTPUT_RATE, end=HEARD),
        LoadedModel(models[0]),
    )
    voice, pitch = ears.voice_of(wanted), _pitch(wanted)
    return {
        "sentences": len(texts),
        "retrieved": retrieved(last, progress),
        "retrieved_before": retrieved(first, progress),
        "as_long": share(abs(one.ratio - 1) <= AS_LONG for one in last),
        **moved("voice", _strange(ears, voice, first), _strange(ears, voice, last)),
        **moved("pitch", _off(pitch, first), _off(pitch, last)),
    }


def moved(what: str, before: Sequence[float], after: Sequence[float]) -> dict[str, float | None]:
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


def _strange(ears: LoadedModel, wanted: Vector, said: Sequence[Said]) -> list[float]:
    """Return how far each voice is from the one that was wanted: 1 minus the cosine."""
    return [FAR if one.is_empty else 1 - float(wanted @ ears.voice_of(one.spoken)) for one in said]


def _off(wanted: float, said: Sequence[Said]) -> list[float]:
    """Return how far the median pitch of each is from the one that was wanted, in semitones."""
    return [abs(12 * math.log2(_pitch(one.spoken) / wanted)) for one in said]


def _pitch(sound: Samples) -> float:
    found = pitches(sound, OUTPUT_RATE)
    return float(np.median(found)) if found.size else FAR
