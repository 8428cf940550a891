"""What speech is made of: how it is sampled, in which voice, and what came out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from utils.config import SpeechConfig
from utils.media.audio import Samples
from utils.media.encoding import Chapter, Tags, write_sound
from utils.media.rates import OUTPUT_RATE
from utils.xtts.tokenizer import TokenizedText

if TYPE_CHECKING:
    from torch import Tensor

USUAL = SpeechConfig()


@dataclass(frozen=True)
class Sampling:
    """How the next code is chosen.

    Attributes:
        temperature: Higher: livelier and less reliable.
        top_k: Most likely codes to choose from; 1: always the likeliest.
        top_p: Probability that those have together at least.
        repetition_penalty: What the score of a code that came before is divided by.
        length_penalty: Power of the length that beams are compared by.
        beams: Sentences followed at the same time; 1: codes are drawn.
    """

    temperature: float = USUAL.temperature
    top_k: int = USUAL.top_k
    top_p: float = USUAL.top_p
    repetition_penalty: float = USUAL.repetition_penalty
    length_penalty: float = USUAL.length_penalty
    beams: int = USUAL.beams

    @classmethod
    def of(cls, config: SpeechConfig) -> "Sampling":
        """Take what the settings say."""
        return cls(**{name: getattr(config, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Voice:
    """What the model hears of a speaker.

    Attributes:
        prompt: What the GPT begins with, of shape (1, 32, width).
        embedding: What the vocoder reads, of shape (1, 512, 1).
        name: What to call it.
        key: Tells voices apart, whatever they are called.
    """

    prompt: "Tensor"
    embedding: "Tensor"
    name: str
    key: str


@dataclass(frozen=True)
class Spoken:
    """One piece of a text, as it was spoken.

    Attributes:
        reading: What became of its letters on the way to the model.
        samples: Sound at 24 000 Hz, without pauses around it.
        codes: What the model said, without the code that ends it.
        ended: Whether the model ended by itself.
        seed: Makes the same sound again.
        flags: What the guards found wrong with it; empty: nothing.
        tries: How often it was spoken before it was taken.
        start: Second of the whole speech at which it begins.
        pause: Seconds of silence after it.
        paragraph: Number of its paragraph.
        chapter: Title of the chapter that begins with it.
    """

    reading: TokenizedText
    samples: Samples
    codes: npt.NDArray[np.int64]
    ended: bool
    seed: int
    flags: tuple[str, ...] = ()
    tries: int = 1
    start: float = 0.0
    pause: float = 0.0
    paragraph: int = 0
    chapter: str | None = None

    @property
    def seconds(self) -> float:
        """Return how long it is."""
        return len(self.samples) / OUTPUT_RATE


@dataclass(frozen=True)
class Speech:
    """A text that was spoken.

    Attributes:
        pieces: Its sentences, in order.
        samples: Sound of all at 24 000 Hz, pauses included.
        voice: What it was spoken with.
        seed: The seed that was asked for.
        took: Seconds of work by stage: reading, decoding, sound, all.
        notes: What was left out of the text, in sentences.
    """

    pieces: tuple[Spoken, ...]
    samples: Samples
    voice: str
    seed: int
    took: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Return how long it is."""
        return len(self.samples) / OUTPUT_RATE

    def save(self, path: Path | str, *, title: str = "", model: str = "", chapters: Sequence[Chapter] = ()) -> None:
        """Write it as an audio file, in the format that the file's extension names."""
        write_sound(path, self.samples, OUTPUT_RATE, tags=Tags(title, model, self.voice), chapters=chapters)

    @property
    def flags(self) -> tuple[str, ...]:
        """Return what the guards found, each with the number of its sentence."""
        return tuple(f"{number}: {flag}" for number, piece in enumerate(self.pieces, 1) for flag in piece.flags)

    @property
    def real_time_factor(self) -> float:
        """Return seconds of work for one second of sound."""
        return self.took.get("all", 0.0) / self.seconds if self.seconds else 0.0
