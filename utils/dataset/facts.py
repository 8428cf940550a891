"""What happens to recordings, texts and clips, as typed facts."""

from pathlib import Path
from typing import Literal

from utils.core.errors import AmharicTtsError
from utils.core.facts import Fact, WarningFact

# Why a clip is left out, or that a person approved it; the values are those that version 1.1 stored.
Reason = Literal[
    "too short",
    "too long",
    "no speech",
    "clipped",
    "noisy",
    "empty text",
    "too fast",
    "too slow",
    "low confidence",
    "recognisers disagree",
    "text does not match",
    "word not spoken",
    "speech without text",
    "duplicate",
    "no sound",
    "no text left",
    "trimmed",
    "split in two",
    "joined",
    "undone",
    "approved",
    "wrong transcript",  # these are what a person heard
    "noise",
    "another speaker",
    "cut off",
    "music",
    "reviewed",
    "other",  # in the person's own words, which are the note of the clip
]


class Bad(WarningFact):
    """A file cannot be used."""

    path: Path
    reason: AmharicTtsError | Fact | str  # version 1.1 wrote sentences


class RecordingWarning(WarningFact):
    """Something about a recording, or its text, that somebody should know."""

    path: Path
    about: Fact


class Found(Fact):
    """The inputs were searched."""

    recordings: int
    problems: int


class Fetched(Fact):
    """How much of a download has arrived."""

    name: str
    percent: int


class CorpusUsed(WarningFact):
    """A published corpus is read, under its licence."""

    title: str
    size: str
    licence: str
    note: str = ""


class Checking(Fact):
    """The sound of a project is learnt from its texts."""

    recordings: int


class TextsNotChecked(WarningFact):
    """Some errors in texts are not found."""

    why: Literal["too_few", "no_better", "words"]
    clips: int


class ClipsDoubted(WarningFact):
    """Clips of a small project are in use although a text, or a word of it, may be wrong."""

    clips: int
    first: str  # file


class TextsDiffer(WarningFact):
    """A recogniser, or another file, has other texts than those that are used; one of them is shown."""

    clips: int
    used: str
    other: str


# How the texts of a list were mixed up.
ListPattern = Literal["shifted", "groups", "mixed", "foreign"]


class TextsFitOtherClips(WarningFact):
    """Many texts of a list belong to other clips than those that it names."""

    texts: int
    clips: int
    pattern: ListPattern
    repeated: int  # texts that are listed more than once
    unused: int  # texts that fit no clip
    without: int  # clips that no text fits
    details: Path


class UnsaidSentence(Fact):
    """A sentence of a transcript that is not said, and the time after which it would be."""

    after: float
    text: str


class SentencesMissing(WarningFact):
    """Sentences of a transcript were not found in its recording."""

    count: int
    first: tuple[UnsaidSentence, ...]


# What is wrong with the times of a subtitle; the first three are in older datasets, since reading drops such subtitles.
CueIssue = Literal["empty", "after_end", "no_time", "no_speech", "inside_speech", "no_pause"]


class CueDiffers(WarningFact):
    """A subtitle does not fit its recording."""

    start: float
    issue: CueIssue
    text: str


class SideTotal(Fact):
    """One side of the split."""

    clips: int
    recordings: int
    seconds: float


class Split(Fact):
    """How many clips are trained on, and how many are held out; version 1.1 wrote sentences."""

    train: SideTotal | str
    eval: SideTotal | str


class HeldOut(WarningFact):
    """The held-out clips were chosen otherwise than was asked."""

    how: Literal["one_recording", "one_speaker"]


class ReasonTotal(Fact):
    """How much was excluded for one reason."""

    reason: Reason | str
    seconds: float


class Ledger(Fact):
    """Where the seconds of a recording, or of all, went; the rest is the pauses between the clips."""

    source: str
    seconds: float
    kept: float
    between: float
    excluded: tuple[ReasonTotal, ...] = ()


class Prepared(Fact):
    """A preparation is finished."""

    clips: int
    added: int
    known: int
    bad: int


class MergeTotal(Fact):
    """What another dataset adds to one, and what of it is left out."""

    recordings: int
    clips: int
    seconds: float
    known: int
    duplicates: int
    missing: int


class ClipNotEncoded(WarningFact):
    """A clip cannot be encoded for training."""

    clip: str
    cause: AmharicTtsError


class FeaturesRemoved(WarningFact):
    """Damaged features were deleted; they are computed again."""

    cause: AmharicTtsError


class LengthGap(WarningFact):
    """Few clips have a length, so a model trained on them will speak such texts badly."""

    gap: Literal["short", "long", "between"]
    what: str


class TextsDoubted(WarningFact):
    """Clips are excluded because their text does not match what is heard."""

    clips: int
    seconds: float


class TextsRepeated(WarningFact):
    """Some texts are those of several clips in use."""

    texts: int


class PhonesRare(WarningFact):
    """Some phonemes of the language do not occur in a dataset, or hardly."""

    phones: tuple[str, ...]
    few: int  # each occurs less often


class SpeakersConcerned(WarningFact):
    """Something about the recordings of some speakers."""

    speakers: tuple[str, ...]
    about: Fact


# What is wrong with a line of a metadata list.
LineIssue = Literal[
    "unreadable_list",
    "empty_list",
    "no_text",
    "repeated_file",
    "repeated_text",
    "no_file",
    "outside",
    "unreadable",
    "too_long",
    "changed",
    "no_symbol",
    "many_tokens",
]


class LineProblem(WarningFact):
    """A line of a metadata list cannot be used, or should be looked at."""

    path: Path
    line: int
    issue: LineIssue
    what: str = ""
    limit: str = ""


class NoCaptions(WarningFact):
    """A recording from the web has no captions in the spoken language."""

    title: str
    language: str
