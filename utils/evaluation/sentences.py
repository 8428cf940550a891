"""The sentences to evaluate with: a text file, held-out clips of a dataset, or the built-in ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from utils.core import languages
from utils.core.batching import evenly_spaced
from utils.dataset.metadata import FILES, HEADER, header_seconds, read_list
from utils.dataset.prompts import choose
from utils.dataset.text_files import MetadataRow, read_any_encoding
from utils.evaluation.facts import EvaluationError
from utils.speech.reference_choice import rank
from utils.xtts.language_packs import pack_for

T = TypeVar("T")

REFERENCE_SECONDS = 3.0, 12.0  # a shorter clip holds too little of a voice; of a longer one only a part is used
MAX_MEASURED, MAX_RANKED = 200, 6  # clips of a speaker whose length is read, and that are ranked as references
SHORT = ("አዎ።", "ሰላም!", "እሺ።", "ለምን?", "አመሰግናለሁ።", "ደህና እደሩ።")  # here models add words most often
LONG = (  # near the length limit, where models drop words
    "ባለፈው ዓመት በከተማው ውስጥ ብዙ ዝናብ ስለዘነበ ገበሬዎቹ ጥሩ ምርት አግኝተው ልጆቻቸውን ወደ ትምህርት ቤት ላኩ።",
    "እናቴ ጠዋት ከገበያ የገዛችውን ትኩስ ዳቦና ሙዝ ለጎረቤታችን ለአቶ በቀለ ሰጥታ ቡና እንድንጠጣ ጠራችን።",
)
PROMPTS = 16  # sentences that cover every sound of Amharic


@dataclass(frozen=True)
class EvaluationSentence:
    """A sentence, and what its audio is compared with."""

    text: str
    language: str  # canonical code
    voice: str = ""  # name of the speaker; results are grouped by it
    reference: str = ""  # audio files separated by |, or a speaker name; empty: the default voice
    recording: str = ""  # path of a recording of the same words


def built_in_sentences(language: str) -> list[EvaluationSentence]:
    """Return the built-in sentences of a language; for Amharic short, long and with every sound."""
    code = languages.canonical(language)
    texts = pack_for(code).samples
    if code == languages.AMHARIC.code:
        texts = (*SHORT, *LONG, *texts, *choose(PROMPTS))
    if not texts:
        raise EvaluationError(languages.find(code).name, "no_built_in")
    return [EvaluationSentence(text, code) for text in dict.fromkeys(texts)]


def sentences_from_file(path: Path, language: str) -> list[EvaluationSentence]:
    """Read a text file with one sentence per line, or a metadata list with its recordings."""
    code = languages.canonical(language)
    if not path.is_file():
        raise EvaluationError(str(path), "missing")
    lines = [line.strip() for line in read_any_encoding(path)[0].split("\n")]
    if lines[0] == HEADER:
        return sentences_from_clips(path, code)
    texts = dict.fromkeys(line for line in lines if line and not line.startswith("#"))
    if not texts:
        raise EvaluationError(str(path), "empty")
    return [EvaluationSentence(text, code) for text in texts]


def sentences_from_clips(path: Path, language: str, count: int = 10_000) -> list[EvaluationSentence]:
    """Read clips of a metadata list, each with its recording and another clip of the speaker as reference.

    At most ``count`` clips are read, spread evenly over the list.
    """
    if not path.is_file():
        raise EvaluationError(str(path), "no_dataset")
    rows = evenly_spaced([row for row in read_list(path) if row.text and row.path.is_file()], count)
    if not rows:
        raise EvaluationError(str(path), "no_clips")
    train = path.parent / FILES["train"]
    others = read_list(train) if train.is_file() and train != path else []
    references = {speaker: _references(speaker, [*others, *rows]) for speaker in {row.speaker for row in rows}}
    code = languages.canonical(language)
    sentences = []
    for row in rows:
        recording = str(row.path.resolve())
        others_of_speaker = (path for path in references[row.speaker] if path != recording)
        sentences.append(EvaluationSentence(row.text, code, row.speaker, next(others_of_speaker, ""), recording))
    return sentences


def _references(speaker: str, rows: Sequence[MetadataRow]) -> list[str]:
    """Return the two best reference clips of a speaker; one of them may be the sentence itself."""
    paths = [row.path for row in rows if row.speaker == speaker][:MAX_MEASURED]
    measured = [(seconds, path.resolve()) for path in paths if (seconds := header_seconds(path))]
    measured.sort(reverse=True)
    shortest, longest = REFERENCE_SECONDS
    good = [path for seconds, path in measured if shortest <= seconds <= longest] or [path for _, path in measured]
    return [str(clip.path) for clip in rank(good[:MAX_RANKED]) if not clip.error][:2]
