"""What a fine-tuning on the sample recording made of the voice: is its speaker nearer than before, and understood."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from utils import audio, sample
from utils.audio import Samples
from utils.evaluation.loading import Loaded
from utils.evaluation.sentences import some
from utils.synthesis.references import pitches
from utils.synthesis.synthesizer import Synthesizer
from utils.voice.corpus import read_sentences
from utils.voice.measuring import AS_LONG, Said, retrieved, share, speak
from utils.voice.progress import Progress
from utils.voice.speakers import HELD_OUT
from utils.xtts.rates import OUTPUT_RATE

FAR = float("inf")  # from everything: what says nothing


def compare(before: Path, after: Path, reference: Path, sentences: int, progress: Progress) -> dict[str, Any]:
    """Let both models speak unseen sentences in the voice of a clip; the ears of the first one judge both.

    Args:
        before: Folder of the voice.
        after: Folder of what was made of it.
        reference: A clip of the held-out speaker.
        sentences: How many.
        progress: Hears how far it is.
    """
    texts = some(read_sentences()["eval"], sentences)
    models = [Synthesizer.load(folder, "auto", "auto", cache=after.parent / "heard") for folder in (before, after)]
    first, last = (speak(model, texts, {HELD_OUT: str(reference)}, progress)[0] for model in models)
    wanted, ears = audio.load(sample.MADE / sample.SOUND, OUTPUT_RATE), Loaded(models[0])
    return {
        "sentences": len(texts),
        "retrieved": retrieved(last, progress),
        "retrieved_before": retrieved(first, progress),
        "as_long": share(abs(one.ratio - 1) <= AS_LONG for one in last),
        **_moved("voice", _strange(ears, wanted, first), _strange(ears, wanted, last)),
        **_moved("pitch", _off(wanted, first), _off(wanted, last)),
    }


def _moved(what: str, before: Sequence[float], after: Sequence[float]) -> dict[str, float]:
    """Tell in how many sentences a distance became smaller, and what is usual before and after."""
    return {
        f"{what}_nearer": share(now < then for then, now in zip(before, after, strict=True)),
        f"{what}_before": round(float(np.median(before)), 4),
        f"{what}_after": round(float(np.median(after)), 4),
    }


def _strange(ears: Loaded, wanted: Samples, said: Sequence[Said]) -> list[float]:
    """Return how far each voice is from the one that was wanted: 1 minus the cosine."""
    voice = ears.voice_of(wanted)
    return [FAR if one.is_empty else 1 - float(voice @ ears.voice_of(one.spoken)) for one in said]


def _off(wanted: Samples, said: Sequence[Said]) -> list[float]:
    """Return how far the median pitch of each is from the one that was wanted, in semitones."""
    return [abs(12 * float(np.log2(_pitch(one.spoken) / _pitch(wanted)))) for one in said]


def _pitch(sound: Samples) -> float:
    found = pitches(sound, OUTPUT_RATE)
    return float(np.median(found)) if found.size else FAR
