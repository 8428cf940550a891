"""What is wrong with a dataset before anything is trained on it: every fault with its file and line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from utils.dataset.lengths import header_seconds
from utils.dataset.metadata import Row, list_files, read_list
from utils.dataset.store import Store

if TYPE_CHECKING:
    from utils.xtts.tokenizer import Tokenizer

ROUNDING = 0.02  # seconds by which a header may differ from the manifest


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, and where it stands."""

    list: Path
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.list}:{self.line}: {self.sentence}"


def check(place: Path, max_seconds: float, language: str, tokenizer: "Tokenizer | None" = None) -> Iterator[Fault]:
    """Yield every fault of a dataset folder or of one list.

    Args:
        place: The dataset folder or the list.
        max_seconds: Longest clip.
        language: Whose rules the text is read by.
        tokenizer: Finds what a vocabulary cannot hold; without one the tokens are not looked at.
    """
    expected = _expected(place)
    seen: dict[str, Row] = {}
    texts: dict[tuple[str, str], Row] = {}
    for path in list_files(place):
        rows = 0
        for row in read_list(path):
            rows += 1
            sentences = [
                *_line_faults(row),
                *_repeated(row, seen, texts),
                *_sound_faults(row, max_seconds, expected.get(row.audio)),
                *(_text_faults(row, tokenizer, language) if tokenizer else ()),
            ]
            yield from (Fault(row.list, row.line, sentence) for sentence in sentences)
        if not rows:
            yield Fault(path, 1, "The list is empty.")


def _line_faults(row: Row) -> Iterator[str]:
    if row.fault:
        yield f"{row.fault}."
    if not row.text.strip():
        yield "The text is empty."


def _repeated(row: Row, seen: dict[str, Row], texts: dict[tuple[str, str], Row]) -> Iterator[str]:
    """Find files that stand there twice, and texts that a speaker says in both lists: no fair evaluation."""
    first = seen.setdefault(row.audio, row)
    if first is not row:
        yield f"{row.audio} is already in {first.list.name}:{first.line}."
    same = texts.setdefault((row.speaker, row.text), row)
    if same.list != row.list and row.text.strip() and first is row:
        yield f"The same text is in {same.list.name}:{same.line}."


def _sound_faults(row: Row, max_seconds: float, expected: float | None) -> Iterator[str]:
    folder = row.list.parent.resolve()
    if not row.audio or not row.path.is_file():
        yield f"No such audio file: {row.audio or 'the cell is empty'}."
        return
    if not row.path.resolve().is_relative_to(folder):
        yield f"{row.audio} lies outside {folder}: the dataset cannot be moved."
    seconds = header_seconds(row.path)
    if not seconds:
        yield f"{row.audio} is not a readable audio file."
    elif seconds > max_seconds + ROUNDING:
        yield f"{row.audio} lasts {seconds:.2f} s, over {max_seconds:g}."
    elif expected is not None and abs(seconds - expected) > ROUNDING:
        yield f"{row.audio} lasts {seconds:.2f} s instead of {expected:.2f}."


def _text_faults(row: Row, tokenizer: "Tokenizer", language: str) -> Iterator[str]:
    reading = tokenizer.tokenize(row.text, language)
    limit = tokenizer.pack(language).token_limit
    if reading.unknown:
        yield f"The vocabulary has no symbol for {' '.join(reading.unknown)} ([UNK])."
    if len(reading.ids) > limit:
        yield f"The text has {len(reading.ids)} tokens, over {limit}."


def _expected(place: Path) -> dict[str, float]:
    """Return the length of each audio file that a manifest beside the lists tells."""
    folder = place if place.is_dir() else place.parent
    return {clip.audio: clip.span.seconds for clip in Store(folder).read().kept}
