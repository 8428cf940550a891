"""Pieces to one sound: silence between them, and ends that fade so fast that nobody hears it, yet nothing clicks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from utils.media.audio import Samples, faded
from utils.media.rates import OUTPUT_RATE
from utils.speech.types import Spoken


def silence(seconds: float) -> Samples:
    """Return silence of so many seconds."""
    return np.zeros(max(0, round(seconds * OUTPUT_RATE)), np.float32)


class Piece(Protocol):
    """A sound and the seconds of silence after it."""

    @property
    def samples(self) -> Samples:
        """Return the sound."""

    @property
    def pause(self) -> float:
        """Return the seconds of silence."""


def starts(pieces: Iterable[Piece]) -> Iterator[float]:
    """Say of each piece at which second it begins in the joined sound, to the sample."""
    position = 0
    for piece in pieces:
        yield position / OUTPUT_RATE
        position += piece.samples.size + silence(piece.pause).size


def placed(pieces: Iterable[Spoken]) -> tuple[Spoken, ...]:
    """Note in each piece when it begins in the joined sound."""
    known = tuple(pieces)
    return tuple(replace(piece, start=start) for piece, start in zip(known, starts(known), strict=True))


def parts(pieces: Iterable[Piece]) -> Iterator[Samples]:
    """Yield the sound of each piece, faded, and the silence after it: joined, they are ``join`` of all."""
    for piece in pieces:
        yield np.concatenate([faded(piece.samples, OUTPUT_RATE), silence(piece.pause)])


def join(pieces: Sequence[Piece]) -> Samples:
    """Return the sound of all pieces with their pauses."""
    return np.concatenate([np.zeros(0, np.float32), *parts(pieces)])
