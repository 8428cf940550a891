"""What happens while models are evaluated, what a report says besides numbers, and what can go wrong."""

from typing import Literal

from utils.core.errors import DataError
from utils.core.facts import Fact


class ReportNote(Fact):
    """What to know about the numbers of a report."""

    reason: Literal["unfinished", "no_recogniser", "not_transcribed", "no_recordings", "flags", "other_encoders"]
    count: int = 0
    detail: str = ""


class EvaluationError(DataError):
    """The sentences of an evaluation, or its report, cannot be read."""

    source: str
    problem: Literal["no_built_in", "missing", "empty", "no_dataset", "no_clips", "no_report"]
    detail: str = ""
