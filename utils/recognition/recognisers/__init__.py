"""Speech recognisers: the interface, the transcripts, and how far two transcripts of a clip disagree."""

import contextlib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from utils.core.errors import first_line
from utils.core.storage import hash_text
from utils.recognition.facts import RecogniserError

if TYPE_CHECKING:
    from utils.media.audio import Samples

RATE = 16_000  # samples per second of what recognisers take
MIN_SAMPLES = RATE // 10  # shorter clips are padded with silence
WHISPER = "utils.recognition.recognisers.whisper:Whisper"
CTC = "utils.recognition.recognisers.transformers_models:Ctc"
TRANSFORMERS = "utils.recognition.recognisers.transformers_models:TransformersWhisper"

Device = Literal["auto", "cuda", "cpu"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The transcript of one clip; without speech, its text is empty."""

    text: str
    confidence: float  # 0 to 1


class Recogniser(Protocol):
    """Transcribes clips."""

    @property
    def name(self) -> str:
        """Return the display name."""

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        """Transcribe mono clips at ``RATE``; the language may be given by any of its names."""


@dataclass(frozen=True, slots=True)
class RecogniserSpec:
    """Which recogniser to load, and how.

    The factory, "module:name", takes the spec and returns a ``Recogniser`` with the ``device`` in use. It is imported
    in the child process and must come from code, never from a setting.
    """

    model: str  # a size, a hub name or a folder
    device: Device = "auto"  # auto uses the GPU if there is one
    compute_type: str = "auto"  # auto is float16 on a GPU, and on a CPU int8 (CTranslate2) or float32
    factory: str = WHISPER

    @property
    def name(self) -> str:
        """Return the display name, which reports keep: of a folder its own name, and a code for its place."""
        folder = Path(self.model)
        code = hash_text(self.model, 3)
        model = f"{folder.name} ({code})" if folder.is_absolute() else self.model
        return f"{self.factory.rpartition(':')[2]} {model}"


@contextlib.contextmanager
def model_download(model: str) -> Iterator[None]:
    """Explain how to get a model that is neither on this machine nor can be downloaded."""
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError

    try:
        yield
    except (OSError, EntryNotFoundError, HFValidationError) as error:
        raise RecogniserError(model, "missing", first_line(error)) from error


def second_cer(text_a: str, text_b: str) -> float:
    """Return the character disagreement of two transcripts, 0 to 1.

    Neither is the reference, so edits are divided by the longer one. Spaces, punctuation, case and the choice among
    Ethiopic letters of the same sound do not count.
    """
    import jiwer

    from utils.amharic.alphabet import fold

    folded = (fold(unicodedata.normalize("NFC", text).casefold()) for text in (text_a, text_b))
    plain = ("".join(char for char in text if unicodedata.category(char)[0] in "LMN") for text in folded)
    shorter, longer = sorted(plain, key=len)
    return float(jiwer.cer(longer, shorter)) if longer else 0.0
