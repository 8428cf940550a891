"""How clearly the sounds of an Amharic text are heard in its speech, by the recogniser that also checks clips.

The phones of the text are aligned with the audio, and so are the same phones in random orders. Only the comparison
counts, because the recogniser hears some voices, human ones above all, less well than others.
"""

import random
from functools import cache
from typing import NamedTuple

import numpy as np
import torch

from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.recognition.aligner import Rows, emit, score
from utils.recognition.phone_recogniser import EMBEDDED, RATE, PhoneRecogniser, load_recogniser
from utils.recognition.units import PHONE, PHONES, units_of

FEWEST = 8  # phones; a random order of fewer ones is too similar
ORDERS = 12
SMALLEST = 1e-3  # deviation; random orders of the same phone are all alike


class Clarity(NamedTuple):
    """How much better a text explains its audio than its phones in random orders do."""

    gain: float  # nats per phone
    deviations: float  # the same in standard deviations of the random orders


def hear(samples: Samples) -> Rows:
    """Return what the recogniser hears in audio at 24 kHz."""
    return emit(_recogniser(), resample(samples, OUTPUT_RATE, RATE))


def to_units(phones: str) -> tuple[int, ...]:
    """Return the numbers of the phones that the recogniser knows."""
    return tuple(PHONES.index(phone) + 1 for phone in PHONE.findall(phones))


def clarity(phones: str, rows: Rows) -> Clarity | None:
    """Compare a text with its audio; None if it is too short to tell."""
    units = to_units(phones)
    if len(units) < FEWEST:
        return None
    shuffle = random.Random(0)  # noqa: S311  # no secret: the same for each text
    others = [score(rows, shuffle.sample(units, len(units))) for _ in range(ORDERS)]
    gain = score(rows, units) - float(np.mean(others))
    return Clarity(gain, gain / max(float(np.std(others)), SMALLEST))


@cache
def _recogniser() -> PhoneRecogniser:
    with torch.random.fork_rng([]):  # building a model draws numbers, and a training must not notice
        return load_recogniser(EMBEDDED, units_of("am"))
