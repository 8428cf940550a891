"""Facts: typed values that survive a log."""

import math
import pickle
from enum import StrEnum
from pathlib import Path

import pytest

from utils.core.errors import AmharicTtsError, DataError, InternalError, RecordedError, for_others
from utils.core.facts import Fact, Progress, Unrecognised, WarningFact, from_json, to_json


class Colour(StrEnum):
    """An enumeration."""

    RED = "red"


class ProbeInner(Fact):
    """A fact in a fact."""

    count: int


class ProbeOuter(WarningFact):
    """A fact with a field of every type."""

    name: str
    share: float
    words: tuple[str, ...] = ()
    colour: Colour = Colour.RED
    inner: ProbeInner = ProbeInner(1)
    path: Path | None = None
    cause: AmharicTtsError | str = ""


class ProbeError(DataError):
    """A typed error."""

    clip: str
    seconds: float = 1.0


@pytest.mark.parametrize(
    "fact",
    [
        ProbeOuter("a", 0.5),
        ProbeOuter("a", math.inf, ("ሰላም", "b"), Colour.RED, ProbeInner(3), Path("x")),
        ProbeOuter("a", 0.5, cause=ProbeError("c", 2.0)),
        ProbeOuter("a", 0.5, cause=RecordedError("OldError", "A sentence.")),
        ProbeOuter("a", 0.5, cause="a sentence of version 1.1"),
        Progress(1, 2, "train"),
    ],
)
def test_a_fact_survives_json(fact: Fact) -> None:
    assert from_json(to_json(fact)) == fact


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "probe_inner"},
        {"kind": "probe_inner", "count": "3"},
        {"kind": "probe_inner", "count": True},
        {"kind": "probe_outer", "name": "a", "share": "much"},
        {"kind": "probe_outer", "name": "a", "share": 1.0, "colour": "blue"},
        {"kind": "probe_outer", "name": "a", "share": 1.0, "words": ["a", 3]},
        {"kind": "what", "message": "Said by version 1.1."},
    ],
)
def test_a_damaged_fact_is_unrecognised(event: dict[str, object]) -> None:
    assert isinstance(from_json(event), Unrecognised)


def test_an_error_of_another_process_has_its_fields() -> None:
    error = pickle.loads(pickle.dumps(ProbeError("c1", seconds=2.0)))
    assert (error.clip, error.seconds) == ("c1", 2.0)


def test_what_others_are_told_names_no_folder_of_a_detail() -> None:
    said = str(for_others(InternalError("OSError: /home/linda/voice/a.wav: no such file")))
    assert ("a.wav: no such file" in said, "linda" in said) == (True, False)
