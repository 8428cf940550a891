"""Pieces to one sound: silence between them, and ends that fade so fast that nobody hears it, yet nothing clicks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from utils.audio import Samples
from utils.synthesis.speech import Spoken
from utils.xtts.rates import OUTPUT_RATE

FADE = 0.004  # seconds


def faded(
    samples: Samples, rate: int = OUTPUT_RATE, seconds: float = FADE, *, start: bool = True, end: bool = True
) -> Samples:
    """Let a sound begin and end in silence.

    Args:
        samples: One channel; it is not changed.
        rate: Its samples per second.
        seconds: How long each fade is; half the sound at most.
        start: Whether to fade in.
        end: Whether to fade out.
    """
    size = min(round(seconds * rate), samples.size // 2)
    quiet = samples.astype(np.float32)  # a copy
    if size:
        ramp = (0.5 - 0.5 * np.cos(np.pi * np.arange(size) / size)).astype(np.float32)
        if start:
            quiet[:size] *= ramp
        if end:
            quiet[-size:] *= ramp[::-1]
    return quiet


def silence(seconds: float, rate: int = OUTPUT_RATE) -> Samples:
    """Return silence of so many seconds."""
    return np.zeros(max(0, round(seconds * rate)), np.float32)


def placed(pieces: Iterable[Spoken]) -> tuple[Spoken, ...]:
    """Say of each piece when it begins in the joined sound, to the sample."""
    done: list[Spoken] = []
    position = 0
    for piece in pieces:
        done.append(replace(piece, start=position / OUTPUT_RATE))
        position += piece.samples.size + silence(piece.pause).size
    return tuple(done)


def parts(pieces: Iterable[Spoken]) -> Iterator[Samples]:
    """Yield the sound of each piece, faded, and the silence after it: joined, they are ``join`` of all."""
    for piece in pieces:
        yield np.concatenate([faded(piece.samples), silence(piece.pause)])


def join(pieces: Sequence[Spoken]) -> Samples:
    """Return the sound of all pieces with their pauses."""
    return np.concatenate([np.zeros(0, np.float32), *parts(pieces)])
