"""What happens while models are evaluated, what a report says besides numbers, and what can go wrong."""

from enum import StrEnum

from utils.core.errors import DataError
from utils.core.facts import Fact


class NoteReason(StrEnum):
    """Why a column is empty, or what to know about it."""

    UNFINISHED = "unfinished"
    NO_RECOGNISER = "no_recogniser"
    NOT_TRANSCRIBED = "not_transcribed"
    NO_RECORDINGS = "no_recordings"
    FLAGS = "flags"
    OTHER_ENCODERS = "other_encoders"


class ReportNote(Fact):
    """What to know about the numbers of a report."""

    reason: NoteReason
    count: int = 0
    detail: str = ""


class SentencesProblem(StrEnum):
    """Why there is nothing to evaluate, or nothing to read."""

    NO_BUILT_IN = "no_built_in"
    MISSING = "missing"
    EMPTY = "empty"
    NO_DATASET = "no_dataset"
    NO_CLIPS = "no_clips"
    NO_REPORT = "no_report"


class EvaluationError(DataError):
    """The sentences of an evaluation, or its report, cannot be read."""

    source: str
    problem: SentencesProblem
    detail: str = ""
