"""What the models are asked to say: a file of one's own, the held-back clips of a project, or sentences of ours."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from utils.core import languages
from utils.core.errors import DataError
from utils.dataset.coqui_lists import FILES, HEADER
from utils.dataset.encodings import read_any
from utils.dataset.lengths import header_seconds
from utils.dataset.rows import Row, read_list
from utils.evaluation.utterance import TestSentence
from utils.speech.reference_choice import rank
from utils.xtts.language_packs import pack_for

T = TypeVar("T")

REFERENCE_SECONDS = 3.0, 12.0  # a shorter clip shows too little of a voice, a longer one is heard only in part
LOOKED_AT, LISTENED_TO = 200, 6  # clips of a speaker whose length is read, and that are scored as references
SHORT = (  # a word or two: where models of this kind add the most that nobody wrote
    "አዎ።",
    "ሰላም!",
    "እሺ።",
    "ለምን?",
    "አመሰግናለሁ።",
    "ደህና እደሩ።",
)
LONG = (  # near the limit of one piece: where words are lost
    "ባለፈው ዓመት በከተማው ውስጥ ብዙ ዝናብ ስለዘነበ ገበሬዎቹ ጥሩ ምርት አግኝተው ልጆቻቸውን ወደ ትምህርት ቤት ላኩ።",
    "እናቴ ጠዋት ከገበያ የገዛችውን ትኩስ ዳቦና ሙዝ ለጎረቤታችን ለአቶ በቀለ ሰጥታ ቡና እንድንጠጣ ጠራችን።",
)
OURS = 16  # sentences with every sound of Amharic, beside the short, the long and those with numbers


def built_in_sentences(language: str) -> list[TestSentence]:
    """Return sentences of ours: short and long ones, numbers, and every sound of Amharic; else those of the pack."""
    from utils.dataset.prompts import choose

    code = languages.canonical(language)
    texts: Sequence[str] = pack_for(code).samples
    if code == languages.AMHARIC.code:
        texts = (*SHORT, *LONG, *texts, *choose(OURS))
    if not texts:
        raise DataError(
            f"There are no sentences of ours in {languages.find(code).name}.", hint="Name a text file with --sentences."
        )
    return [TestSentence(text, code) for text in dict.fromkeys(texts)]


def sentences_from_file(path: Path, language: str) -> list[TestSentence]:
    """Read a text with one sentence a line, or a list of clips with its recordings."""
    code = languages.canonical(language)
    if not path.is_file():
        raise DataError(f"There is no file {path}.", hint="Name a text with one sentence a line.")
    lines = [line.strip() for line in read_any(path).text.split("\n")]
    if lines[0] == HEADER:
        return sentences_from_clips(path, code)
    texts = dict.fromkeys(line for line in lines if line and not line.startswith("#"))
    if not texts:
        raise DataError(f"{path} holds no sentence.", hint="Write one a line.")
    return [TestSentence(text, code) for text in texts]


def sentences_from_clips(path: Path, language: str, count: int = 10_000) -> list[TestSentence]:
    """Take clips of a list, each with its recording and with another clip of its speaker as the reference.

    Args:
        path: The list.
        language: Its language, by any name.
        count: Most clips, spread evenly over all.
    """
    if not path.is_file():
        raise DataError(f"There is no list {path}.", hint="Make a dataset with: python -m utils prepare.")
    rows = evenly_spaced(
        [row for row in read_list(path) if not row.fault and row.text.strip() and row.path.is_file()], count
    )
    if not rows:
        raise DataError(f"{path} names no clip that is there.", hint="Check it with: python -m utils dataset validate.")
    train = path.parent / FILES["train"]
    others = list(read_list(train)) if train.is_file() and train != path else []
    references = {speaker: _references(speaker, [*others, *rows]) for speaker in {row.speaker for row in rows}}
    code = languages.canonical(language)
    return [
        TestSentence(row.text, code, row.speaker, _unlike(references[row.speaker], row), str(row.path.resolve()))
        for row in rows
    ]


def evenly_spaced(items: Sequence[T], count: int) -> list[T]:
    """Return at most so many items, spread evenly over all; always the same ones."""
    if count >= len(items):
        return list(items)
    return [items[place * len(items) // count] for place in range(count)]


def _references(speaker: str, rows: Sequence[Row]) -> list[str]:
    """Return two clips of a speaker, the best first: one of them may be the very sentence."""
    shortest, longest = REFERENCE_SECONDS
    known = sorted(_measured(speaker, rows), reverse=True)
    good = [path for seconds, path in known if shortest <= seconds <= longest] or [path for _, path in known]
    return [str(one.path) for one in rank(good[:LISTENED_TO]) if not one.fault][:2]


def _measured(speaker: str, rows: Sequence[Row]) -> Iterator[tuple[float, Path]]:
    own = [row for row in rows if row.speaker == speaker and not row.fault]
    for row in own[:LOOKED_AT]:
        if seconds := header_seconds(row.path):
            yield seconds, row.path.resolve()


def _unlike(references: Sequence[str], row: Row) -> str:
    """Return a reference that is not the very recording; empty, for the voice of the model, where there is none."""
    return next((path for path in references if path != str(row.path.resolve())), "")
