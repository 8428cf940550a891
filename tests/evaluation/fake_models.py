"""Models and recognisers with known behaviour and no weights."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from tests.dataset.recordings import babble
from tests.speech.made_speech import reading
from tests.worded import worded
from utils.config import SpeechConfig
from utils.core.errors import TextError
from utils.evaluation.evaluate import Candidate, EvaluatedModel
from utils.media.arrays import Float32Array
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.recognition.facts import RecognitionError
from utils.recognition.recognisers import Transcript
from utils.speech.facts import Flag
from utils.speech.guards import SpeechLimits, sounds
from utils.speech.types import Sentence, Speech, Utterance


@dataclass
class FakeModel(EvaluatedModel):
    """Babbles for the usual length of a text times ``pace``; refuses questions."""

    pace: float = 1.0
    likeness: float = 0.9
    encoder: str = "encoder"
    flags: tuple[Flag, ...] = ()
    spoken: list[str] = field(default_factory=list)
    stop_after: int = 1000

    def speak(self, text: str, config: SpeechConfig) -> Speech:
        if "?" in text:
            raise worded(TextError, "No questions.", "Leave it out.")
        if len(self.spoken) >= self.stop_after:
            raise KeyboardInterrupt
        self.spoken.append(text)
        read = reading(text, config.language)
        seconds = self.pace * sounds(read) / SpeechLimits.of(config.language).usual
        samples = resample(babble(seconds, seed=len(text)), 16_000, OUTPUT_RATE)
        utterance = Utterance(Sentence(read, config.seed), samples, np.arange(20), ended=True, flags=self.flags)
        return Speech((utterance,), samples, "fake", config.seed, {"total": 0.5 * len(samples) / OUTPUT_RATE})

    def voice(self, reference: str) -> Float32Array:  # noqa: ARG002
        return np.array([1, 0], np.float32)

    def voice_of(self, samples: Samples) -> Float32Array:  # noqa: ARG002
        return np.array([self.likeness, np.sqrt(1 - self.likeness**2)], np.float32)


def candidate(name: str, model: FakeModel, on_load: Callable[[str], object] = str) -> Candidate:
    @contextmanager
    def load() -> Iterator[FakeModel]:
        on_load(name)
        yield model

    return Candidate(name, f"fingerprint of {name}", load)


@dataclass
class FakeRecogniser:
    """Transcribes every clip as the same text, and fails after some clips."""

    text: str
    name: str = "Fake"
    fails_after: int = 1000
    clips: int = 0
    fails_with: RecognitionError | None = None

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:  # noqa: ARG002
        if self.fails_with:
            raise self.fails_with
        if self.clips + len(clips) > self.fails_after:
            raise worded(RecognitionError, "It is out of memory.", "Choose a smaller one.")
        self.clips += len(clips)
        return [Transcript(self.text, 1.0) for _ in clips]
