"""What a text becomes on its way to sound: sentences, then utterances, then speech."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from utils.config import SpeechConfig
from utils.core.facts import Fact
from utils.media.arrays import Int64Array
from utils.media.audio import NO_SAMPLES, Samples, faded
from utils.media.encoding import Chapter, Tags, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.speech.facts import Flag
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
    """A part of a text that is spoken in one go."""

    tokenized: TokenizedText  # its text, phonemes and token ids
    seed: int = 0  # seed for sampling
    max_codes: int = 10_000  # maximum number of audio codes
    pause: float = 0.0  # seconds of silence after it
    paragraph: int = 0  # number of its paragraph, from 0
    chapter: str | None = None  # title of the chapter that begins with it
    line: int = 1  # line number in the text, from 1
    reference: str = ""  # voice of its speaker in a script; empty: the voice of the settings

    @property
    def text(self) -> str:
        """Return the sentence as it was written."""
        return self.tokenized.written


@dataclass(eq=False)
class Generation:
    """The codes of one sentence; it grows while the decoder steps."""

    codes: list[int] = field(default_factory=list)  # with the stop code where the model ended the sentence
    latents: list["Tensor"] = field(default_factory=list)  # one vector per code in fp32, which the vocoder reads
    logprobs: list[float] = field(default_factory=list)  # the model's log-probability of each code
    ended: bool = False  # whether the last code is the stop code
    finished: bool = False  # whether no more codes follow


@dataclass(frozen=True)
class Utterance:
    """A spoken sentence."""

    sentence: Sentence  # what was spoken, with the seed that produced it
    samples: Samples  # audio at 24 kHz, without the pause
    codes: Int64Array  # audio codes, without the stop code
    ended: bool  # whether the model ended the sentence itself
    flags: tuple[Flag, ...] = ()  # what the guards found wrong with it
    tries: int = 1  # how many times it was spoken
    start: float = 0.0  # second at which it starts in the speech
    words: int = 0  # that were looked for in its sound; 0: that could not be told

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
    """A spoken text."""

    utterances: tuple[Utterance, ...]  # its sentences, in order
    samples: Samples  # audio at 24 kHz, pauses included
    voice: str  # name of the voice
    seed: int  # seed of the request
    timings: dict[str, float] = field(default_factory=dict)  # seconds of planning, decoding, vocoding, total
    notes: tuple[Fact, ...] = ()  # what was left out of the text

    @property
    def seconds(self) -> float:
        """Return its duration."""
        return len(self.samples) / OUTPUT_RATE

    @property
    def flags(self) -> tuple[Flag, ...]:
        """Return what the guards found in all sentences."""
        return tuple(flag for each in self.utterances for flag in each.flags)

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
    return np.concatenate([NO_SAMPLES, *(sound for pair in parts for sound in pair)])
