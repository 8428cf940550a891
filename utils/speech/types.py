"""What a text becomes on its way to sound: sentences, then utterances, then speech."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from utils.config import SpeechConfig
from utils.media.audio import Samples, faded
from utils.media.encoding import Chapter, Tags, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.xtts.tokenizer import TokenizedText

if TYPE_CHECKING:
    from torch import Tensor

DEFAULTS = SpeechConfig()


@dataclass(frozen=True)
class Voice:
    """A speaker as the model knows it."""

    prompt: "Tensor"  # conditioning latents for the GPT, of shape (1, 32, width)
    embedding: "Tensor"  # speaker embedding for the vocoder, of shape (1, 512, 1)
    name: str
    key: str  # hash that identifies the voice


@dataclass(frozen=True)
class Sentence:
    """A part of a text that is spoken in one go.

    Attributes:
        tokenized: Its text, phonemes and token ids.
        seed: Seed for sampling.
        max_codes: Maximum number of audio codes.
        pause: Seconds of silence after it.
        paragraph: Number of its paragraph, from 0.
        chapter: Title of the chapter that begins with it.
        line: Line number in the text, from 1.
    """

    tokenized: TokenizedText
    seed: int = 0
    max_codes: int = 10_000
    pause: float = 0.0
    paragraph: int = 0
    chapter: str | None = None
    line: int = 1

    @property
    def text(self) -> str:
        """Return the sentence as it was written."""
        return self.tokenized.written


@dataclass(frozen=True)
class Utterance:
    """A spoken sentence.

    Attributes:
        sentence: What was spoken, with the seed that produced it.
        samples: Audio at 24 kHz, without the pause.
        codes: Audio codes, without the stop code.
        ended: Whether the model ended the sentence itself.
        flags: What the guards found wrong with it.
        tries: How many times it was spoken.
        start: Second at which it starts in the speech.
    """

    sentence: Sentence
    samples: Samples
    codes: npt.NDArray[np.int64]
    ended: bool
    flags: tuple[str, ...] = ()
    tries: int = 1
    start: float = 0.0

    @property
    def pause(self) -> float:
        """Return the seconds of silence after it."""
        return self.sentence.pause

    @property
    def seconds(self) -> float:
        """Return its duration."""
        return len(self.samples) / OUTPUT_RATE


@dataclass(frozen=True)
class Speech:
    """A spoken text.

    Attributes:
        utterances: Its sentences, in order.
        samples: Audio at 24 kHz, pauses included.
        voice: Name of the voice.
        seed: Seed of the request.
        timings: Seconds of work by stage: planning, decoding, vocoding, total.
        notes: What was left out of the text.
    """

    utterances: tuple[Utterance, ...]
    samples: Samples
    voice: str
    seed: int
    timings: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Return its duration."""
        return len(self.samples) / OUTPUT_RATE

    @property
    def flags(self) -> tuple[str, ...]:
        """Return what the guards found, each prefixed with the number of its sentence."""
        return tuple(f"{number}: {flag}" for number, each in enumerate(self.utterances, 1) for flag in each.flags)

    @property
    def real_time_factor(self) -> float:
        """Return the seconds of work per second of audio."""
        return self.timings.get("total", 0.0) / self.seconds if self.seconds else 0.0

    def save(self, path: Path | str, *, title: str = "", model: str = "", chapters: Sequence[Chapter] = ()) -> None:
        """Write an audio file in the format that the file extension names."""
        write_audio(path, self.samples, OUTPUT_RATE, tags=Tags(title, model, self.voice), chapters=chapters)


def silence(seconds: float) -> Samples:
    """Return silence at 24 kHz."""
    return np.zeros(max(0, round(seconds * OUTPUT_RATE)), np.float32)


def start_times(utterances: Sequence[Utterance]) -> Iterator[float]:
    """Yield the second at which each utterance starts once all are joined."""
    position = 0
    for utterance in utterances:
        yield position / OUTPUT_RATE
        position += utterance.samples.size + silence(utterance.pause).size


def join(utterances: Sequence[Utterance]) -> Samples:
    """Join utterances with their pauses; the ends of each are faded so that nothing clicks."""
    parts = [(faded(each.samples, OUTPUT_RATE), silence(each.pause)) for each in utterances]
    return np.concatenate([np.zeros(0, np.float32), *(sound for pair in parts for sound in pair)])
