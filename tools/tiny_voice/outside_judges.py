"""Judges of another make, which measure nothing where they are not installed: ``pip install hama==1.7 distillmos``.

hama is a phone recogniser of other languages, so it is asked only what they share: whether a consonant of the right
kind is heard, and where. Distill-MOS predicts how natural people find a sound, from 1 to 5.
"""

import contextlib
import itertools
import re
from collections.abc import Sequence
from typing import Any

import jiwer
import torch

from tools.tiny_voice.phone_judge import LONG, phones_of
from utils.media.audio import Samples, resample

RATE = 16_000
CLASSES = {  # sounds that listeners of another language take for one another
    "P": "p b pʼ",
    "T": "t d tʼ θ ð",
    "K": "k g ɡ kʼ",
    "S": "s z sʼ ʃ ʒ",
    "C": "t͡ʃ d͡ʒ t͡ʃʼ",
    "F": "f v",
    "M": "m",
    "N": "n ɲ ŋ",
    "L": "l",
    "R": "r ɹ ɾ",
}
CLASS_OF = {phone: name for name, phones in CLASSES.items() for phone in phones.split()}
MARKS = re.compile("[ːˈˌʰ]")


class ConsonantJudge:
    """hama."""

    def __init__(self) -> None:
        self.recogniser: Any = None
        with contextlib.suppress(ImportError):
            from hama import ASRModel

            self.recogniser = ASRModel()

    def errors(self, text: str, sound: Samples, rate: int) -> tuple[int, int]:
        """Return how many consonants are wrong, and how many the text has; 0 of 0 where it is not installed."""
        if self.recogniser is None:
            return 0, 0
        heard = self.recogniser.transcribe_waveform(resample(sound, rate, RATE), RATE).phonemes
        wanted = _classes([phone for phone in phones_of(text) if phone != LONG])
        result = jiwer.process_words(" ".join(wanted), " ".join(_classes(heard)) or "-")
        return result.substitutions + result.deletions + result.insertions, len(wanted)


class NaturalnessJudge:
    """Distill-MOS."""

    def __init__(self) -> None:
        self.model: Any = None
        with contextlib.suppress(ImportError):
            import distillmos

            self.model = distillmos.ConvTransformerSQAModel().eval()

    @torch.inference_mode()
    def score(self, sound: Samples, rate: int) -> float:
        """Return its score; NaN where it is not installed."""
        if self.model is None:
            return float("nan")
        return float(self.model(torch.from_numpy(resample(sound, rate, RATE))[None]))


def _classes(phones: Sequence[str]) -> list[str]:
    named = [CLASS_OF.get(MARKS.sub("", phone)) for phone in phones]
    return [name for name, _ in itertools.groupby(name for name in named if name)]  # it hears a long one twice
