"""What a recogniser is, what it hears, and how far two of them agree."""

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from utils.core.errors import AmharicTtsError
from utils.dataset.clip import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from utils.media.audio import Samples

RATE = 16_000  # what every recogniser listens to, in samples a second
WHISPER = "utils.dataset.recognisers.whisper:Whisper"
CTC = "utils.dataset.recognisers.ctc:Ctc"

Device = Literal["auto", "cuda", "cpu"]


class RecognitionError(AmharicTtsError):
    """A recogniser cannot be loaded, or it failed."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word and where in its clip it was heard.

    Attributes:
        text: The word.
        span: From and to, in seconds from the start of the clip.
        confidence: How sure the recogniser was, 0 to 1.
    """

    text: str
    span: Span
    confidence: float


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was heard in one clip.

    Attributes:
        text: Empty when nothing was heard.
        confidence: How sure the recogniser was, 0 to 1.
        words: In the order in which they were spoken; empty when the recogniser keeps no times.
    """

    text: str
    confidence: float
    words: tuple[Word, ...] = ()


class Recogniser(Protocol):
    """Finds the text of clips."""

    @property
    def name(self) -> str:
        """Say which one it is, for people."""

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        """Return what is said in each clip, which is mono at ``RATE``; the language goes by any of its names."""


class LoadedRecogniser(Recogniser, Protocol):
    """A recogniser with its model in memory: what the factory of an ``Engine`` makes, a plug-in for instance."""

    @property
    def device(self) -> str:
        """Say where it computes: cpu or cuda."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Which recogniser to load, and how.

    Attributes:
        model: A size or name that can be downloaded, or a folder.
        device: Where to compute; auto is the GPU when there is one.
        compute_type: Arithmetic of CTranslate2; auto is float16 on a GPU and int8 on a CPU.
        factory: "module:name" of what takes an engine and returns a LoadedRecogniser. It is imported in the child
            process and may be anybody's; it comes from code, never from a setting.
    """

    model: str
    device: Device = "auto"
    compute_type: str = "auto"
    factory: str = WHISPER

    @property
    def name(self) -> str:
        """Say which recogniser this is, for people."""
        return f"{self.factory.rpartition(':')[2]} {self.model}"


def heard_word(text: str, start: float, end: float, confidence: float, clip: "Samples") -> Word:
    """Make a word whose times lie inside its clip, which those of a recogniser need not."""
    start, end = (round(min(max(0.0, time), clip.size / RATE), 3) for time in (start, end))
    return Word(text.strip(), Span(start, max(start, end)), confidence)


def second_cer(text_a: str, text_b: str) -> float:
    """Return the share of letters, 0 to 1, in which two transcripts of one clip differ.

    Neither is taken for the truth, so the edits are counted against the longer one. Spaces, punctuation and case are
    not heard, and of Ethiopic letters that sound alike each engine has its own choice: they do not count.
    """
    import jiwer

    first, second = _heard(text_a), _heard(text_b)
    if not first or not second:
        return float(first != second)
    edits = jiwer.process_characters(first, second)
    return (edits.substitutions + edits.deletions + edits.insertions) / max(len(first), len(second))


def _heard(text: str) -> str:
    """Keep letters, their marks and digits."""
    from utils.amharic.fidel import fold

    letters = fold(unicodedata.normalize("NFC", text).casefold())
    return "".join(letter for letter in letters if unicodedata.category(letter)[0] in "LMN")
