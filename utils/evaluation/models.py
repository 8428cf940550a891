"""The models that are judged: what they have to be able to do, and how they are told from each other."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from utils.config import SpeechConfig
from utils.media.audio import Samples
from utils.speech.types import Speech

Vector = npt.NDArray[np.float32]


class Model(Protocol):
    """What speaks, and knows voices."""

    @property
    def encoder(self) -> str:
        """Tell its speaker encoder from others."""

    def speak(self, text: str, config: SpeechConfig) -> Speech:
        """Speak a text."""

    def voice(self, reference: str) -> Vector:
        """Return what it knows of a voice, by sound files divided by |, by a name, or its own."""

    def voice_of(self, samples: Samples) -> Vector:
        """Return the voice that is heard in a sound at 24 kHz, as a vector of length 1."""


@dataclass(frozen=True)
class Candidate:
    """A model that can be loaded.

    Attributes:
        name: What to call it; no two candidates share one.
        fingerprint: Tells it from others.
        opened: Loads it, and frees it at the end of the ``with``.
    """

    name: str
    fingerprint: str
    opened: Callable[[], AbstractContextManager[Model]]
