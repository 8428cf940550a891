"""Speech recognisers: the interface, the transcripts, and how far two transcripts of a clip disagree."""

import contextlib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from utils.core.errors import AmharicTtsError
from utils.dataset.clip import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from utils.media.audio import Samples

RATE = 16_000  # samples per second of what recognisers take
WHISPER = "utils.dataset.recognisers.whisper:Whisper"
CTC = "utils.dataset.recognisers.ctc:Ctc"

Device = Literal["auto", "cuda", "cpu"]


class RecognitionError(AmharicTtsError):
    """A recogniser cannot be loaded, or it failed."""


@dataclass(frozen=True, slots=True)
class Word:
    """A recognised word, its times in seconds from the start of the clip, and its confidence from 0 to 1."""

    text: str
    span: Span
    confidence: float


@dataclass(frozen=True, slots=True)
class Transcript:
    """The transcript of one clip.

    Attributes:
        text: Empty if no speech was recognised.
        confidence: From 0 to 1.
        words: In order; empty if the recogniser does not report times.
    """

    text: str
    confidence: float
    words: tuple[Word, ...] = ()


class Recogniser(Protocol):
    """Transcribes clips."""

    @property
    def name(self) -> str:
        """Return the display name."""

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        """Transcribe mono clips at ``RATE``; the language may be given by any of its names."""


class LoadedRecogniser(Recogniser, Protocol):
    """A recogniser whose model is in memory: what the factory of a ``RecogniserSpec`` returns."""

    @property
    def device(self) -> str:
        """Return the device in use: cpu or cuda."""


@dataclass(frozen=True, slots=True)
class RecogniserSpec:
    """Which recogniser to load, and how.

    Attributes:
        model: A size, a hub name or a folder.
        device: ``auto`` uses the GPU if there is one.
        compute_type: Of CTranslate2; ``auto`` is float16 on a GPU and int8 on a CPU.
        factory: "module:name" of a callable that takes a spec and returns a ``LoadedRecogniser``. It is imported in
            the child process and must come from code, never from a setting.
    """

    model: str
    device: Device = "auto"
    compute_type: str = "auto"
    factory: str = WHISPER

    @property
    def name(self) -> str:
        """Return the display name."""
        return f"{self.factory.rpartition(':')[2]} {self.model}"


@contextlib.contextmanager
def model_download(model: str) -> Iterator[None]:
    """Explain how to get a model that is neither on this machine nor can be downloaded."""
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError

    try:
        yield
    except (OSError, EntryNotFoundError, HFValidationError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise RecognitionError(
            f"The model {model} is missing or damaged, and could not be downloaded: {reason}.",
            hint="Connect to the internet, or enter the folder of a model on this machine.",
        ) from error


def clamped_word(text: str, start: float, end: float, confidence: float, clip: "Samples") -> Word:
    """Return a word whose times lie within its clip; those of a recogniser may not."""
    start, end = (round(min(max(0.0, time), clip.size / RATE), 3) for time in (start, end))
    return Word(text.strip(), Span(start, max(start, end)), confidence)


def second_cer(text_a: str, text_b: str) -> float:
    """Return the character disagreement of two transcripts, 0 to 1.

    Neither is the reference, so edits are divided by the longer one. Spaces, punctuation, case and the choice among
    Ethiopic letters of the same sound do not count.
    """
    import jiwer

    first, second = _comparable(text_a), _comparable(text_b)
    if not first or not second:
        return float(first != second)
    edits = jiwer.process_characters(first, second)
    return (edits.substitutions + edits.deletions + edits.insertions) / max(len(first), len(second))


def _comparable(text: str) -> str:
    """Keep letters, marks and digits, in one spelling."""
    from utils.amharic.fidel import fold

    letters = fold(unicodedata.normalize("NFC", text).casefold())
    return "".join(letter for letter in letters if unicodedata.category(letter)[0] in "LMN")
