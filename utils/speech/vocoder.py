"""From what the GPT said to sound: coqui's vocoder for whole sentences, or piece by piece as they are said."""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Barrier
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from utils.media.audio import Samples
from utils.speech.convolutions import Generator
from utils.speech.precision import require
from utils.speech.quantized import DTYPES, Precision
from utils.speech.upsampling import Ladder
from utils.xtts.narrow import without_silent_channels

PART = 1024  # frames computed at once on a CPU, 11 seconds: shorter parts spend more on margins, longer ones memory
SMALLEST = 24  # frames worth a thread of their own
WHOLE = 1 << 14  # frames computed at once on a GPU


class Part(NamedTuple):
    """A run of frames with its margins."""

    frames: Tensor
    left: int
    right: int


@dataclass(frozen=True)
class Vocoder:
    """Turns the vectors of the GPT into sound at 24 000 Hz.

    Attributes:
        network: What computes the sound.
        ladder: How codes become frames.
        device: Where it computes.
        threads: What shares the parts of a sentence; None: there is one thread only.
        workers: How many they are.
    """

    network: Generator = field(repr=False)
    ladder: Ladder
    device: torch.device
    threads: ThreadPoolExecutor | None
    workers: int

    @classmethod
    def of(cls, decoder: nn.Module, precision: Precision = "fp32", device: str = "cpu") -> Self:
        """Take over the weights of coqui's HifiDecoder, which is left as it is.

        Args:
            decoder: The HifiDecoder.
            precision: What to compute in.
            device: Where to compute.
        """
        require("vocoder", precision, device)
        place = torch.device(device)
        network = Generator.of(without_silent_channels(decoder), DTYPES[precision], place)
        workers = torch.get_num_threads() if place.type == "cpu" else 1
        threads = _single_threads(workers) if workers > 1 else None
        return cls(network, Ladder.of(decoder), place, threads, workers)

    def sound(self, latents: Tensor, embedding: Tensor) -> Samples:
        """Return the sound of a sentence.

        Args:
            latents: One row a code.
            embedding: The voice, of shape (1, 512, 1).
        """
        return self.sounds([latents], embedding)[0]

    def sounds(self, sentences: Sequence[Tensor], embedding: Tensor) -> list[Samples]:
        """Return the sound of several sentences in one voice."""
        biases = self.biases(embedding)
        return self.work([self._whole(latents) for latents in sentences], biases)

    def stream(self, embedding: Tensor) -> "Stream":
        """Begin a sentence whose codes come bit by bit."""
        return Stream(self, self.biases(embedding))

    @torch.inference_mode()
    def biases(self, embedding: Tensor) -> list[Tensor]:
        """Return what the voice is to the network."""
        return self.network.biases(embedding)

    def work(self, wholes: Sequence[Part], biases: list[Tensor]) -> list[Samples]:
        """Return the sound of runs of frames, each without its margins."""
        parts = [list(self._cut(whole)) for whole in wholes]
        flat = [part for each in parts for part in each]
        spread = self.threads.map if self.threads and len(flat) > 1 else map
        sounds = spread(lambda part: self._one(part, biases), flat)
        return [_joined([next(sounds) for _ in each]) for each in parts]

    @torch.inference_mode()
    def _one(self, part: Part, biases: list[Tensor]) -> Samples:
        sound: Samples = self.network(*part, biases).cpu().numpy()
        return sound

    @torch.inference_mode()
    def _whole(self, latents: Tensor) -> Part:
        count = self.ladder.count(len(latents))
        latents = latents.to(self.device, torch.float32)
        return Part(self.ladder.take(latents, 0, 0, count) if count else latents, 0, 0)

    def _cut(self, whole: Part) -> Iterator[Part]:
        """Cut a run of frames into parts of like size, one or more for each thread."""
        frames, reach = whole.frames, self.network.reach
        size = len(frames) - whole.left - whole.right
        most = PART if self.device.type == "cpu" else WHOLE
        count = max(math.ceil(size / most), min(self.workers, size // SMALLEST), 1) if size else 0
        edges = [whole.left + size * number // count for number in range(count + 1)] if count else []
        for first, last in pairwise(edges):
            start, stop = max(0, first - reach), min(len(frames), last + reach)
            yield Part(frames[start:stop], first - start, stop - last)


class Stream:
    """The sound of a sentence whose codes come bit by bit; the pieces joined are the sound of the whole.

    Args:
        vocoder: What makes the sound.
        biases: The voice.
    """

    def __init__(self, vocoder: Vocoder, biases: list[Tensor]) -> None:
        self.vocoder, self.biases = vocoder, biases
        self.kept: Tensor | None = None  # codes that coming frames need
        self.dropped = self.done = 0  # codes that are no longer kept, frames that were sounded
        self.finished = False

    def push(self, latents: Tensor) -> Samples:
        """Take further codes, and return the sound that is certain by now; that may be none."""
        if self.finished:
            raise ValueError("The sentence is finished.")
        latents = latents.to(self.vocoder.device, torch.float32)
        self.kept = latents if self.kept is None else torch.cat((self.kept, latents))
        certain = self.vocoder.ladder.settled(self.codes)
        return self._sound(certain - self.vocoder.network.reach, certain)

    def finish(self) -> Samples:
        """Return the rest of the sound."""
        self.finished = True
        end = self.vocoder.ladder.count(self.codes)
        return self._sound(end, end)

    @property
    def codes(self) -> int:
        """Return how many codes came."""
        return self.dropped + (0 if self.kept is None else len(self.kept))

    @torch.inference_mode()
    def _sound(self, last: int, end: int) -> Samples:
        """Return the sound from where it stopped up to a frame, with a margin up to another one."""
        if self.kept is None or last <= self.done:
            return np.zeros(0, np.float32)
        vocoder, start = self.vocoder, max(0, self.done - self.vocoder.network.reach)
        frames = vocoder.ladder.take(self.kept, self.dropped, start, end)
        sound = vocoder.work([Part(frames, self.done - start, end - last)], self.biases)[0]
        self.done = last
        first = vocoder.ladder.first_code(max(0, last - vocoder.network.reach))
        self.kept, self.dropped = self.kept[first - self.dropped :].clone(), first
        return sound


def _single_threads(count: int) -> ThreadPoolExecutor:
    """Return threads that compute on one core each.

    Parts of a sentence need nothing of each other, so nobody waits for the slower one after every layer, as the threads
    inside a layer do.
    """
    before, ready = torch.get_num_threads(), Barrier(count)
    pool = ThreadPoolExecutor(count, thread_name_prefix="vocoder")
    list(pool.map(_alone, [ready] * count))
    torch.set_num_threads(before)  # the last thread has set the number for all those to come
    return pool


def _alone(ready: Barrier) -> None:
    torch.get_num_threads()  # takes over the number for all, which would come after ours otherwise
    torch.set_num_threads(1)
    ready.wait()  # or one thread would do this for the others too


def _joined(pieces: list[Samples]) -> Samples:
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
