"""Turns the latents of the GPT into audio with coqui's vocoder: whole sentences, or chunks while they are generated.

Latents become frames by two linear interpolations: a code lasts 1024 samples at 22 050 Hz, and the vocoder makes 256
samples at 24 000 Hz of each frame. Positions are counted from the beginning of the sentence as torch's ``interpolate``
counts them, in float32 too, so any part of a sentence has the same frames as in the whole.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from threading import Barrier
from typing import Any, NamedTuple

import numpy as np
import soxr
import torch
from torch import Tensor, nn

from utils.core.facts import log_fact
from utils.media.audio import NO_SAMPLES, Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.speech.facts import SpeechHindered
from utils.speech.hifigan import HifiGan
from utils.speech.layers import DTYPES, Precision
from utils.speech.precision import require
from utils.xtts.device import Arrival, Lane, to_device, to_host, trim_heap
from utils.xtts.narrow_vocoder import without_silent_channels

Latents = Tensor | Sequence[Tensor]  # one row per code

# Longer parts leave memory that is never returned; shorter ones spend more on margins.
MAX_FRAMES_CPU = 256
WINDOWS = (64, 96, 144, 216, 324, 486, 729, 1024)  # frames at once on a GPU, where each new length selects kernels
MIN_FRAMES = 24  # worth a thread of their own


@dataclass(frozen=True)
class Upsampling:
    """The linear interpolations from codes to frames, each by a factor."""

    scales: tuple[float, ...]

    def count(self, codes: int, step: int | None = None) -> int:
        """Return the number of frames of this many codes, after all interpolations or the first ``step``."""
        for scale in self.scales[:step]:
            codes = int(codes * scale)
        return codes

    def settled(self, codes: int) -> int:
        """Return how many frames stay the same whatever codes follow."""
        for scale in self.scales:
            count = int(codes * scale)
            if count == codes:
                return 0
            while count and int(_positions(count - 1, count, scale)) + 1 > codes - 1:
                count -= 1
            codes = count
        return codes

    def first_code(self, frame: int) -> int:
        """Return the first code that a frame and those after it depend on."""
        for scale in reversed(self.scales):
            frame = int(_positions(frame, frame + 1, scale))
        return frame

    # Long because each line is a step of torch's own arithmetic.
    def frames(self, latents: Tensor, offset: int, first: int, last: int, step: int | None = None) -> Tensor:
        """Return the frames from ``first`` up to ``last``, after all interpolations or the first ``step``.

        ``latents`` has one row per code; ``offset`` codes before them are no longer there.
        """
        step = len(self.scales) if step is None else step
        if not step:
            return latents[first - offset : last - offset]
        size = self.count(offset + len(latents), step - 1)
        positions = _positions(first, last, self.scales[step - 1], size)
        left = positions.long().clamp(max=size - 1)
        right = (left + 1).clamp(max=size - 1)
        start = int(left[0])
        below = self.frames(latents, offset, start, int(right[-1]) + 1, step - 1)
        share = (positions - left).clamp(max=1)[:, None]
        share, left, right = (to_device(part, below.device) for part in (share, left - start, right - start))
        return below[left] * (1 - share) + below[right] * share


def _positions(first: int, last: int, scale: float, size: int = 0) -> Tensor:
    """Return the positions of the longer sequence in the shorter one, of ``size`` rows if that is known."""
    each = torch.arange(first, last, dtype=torch.float32, device="cpu")
    if size and int(size * scale) == size:  # torch copies what is too short to grow by one row
        return each
    return ((each + 0.5) * torch.tensor(1 / scale, dtype=torch.float32) - 0.5).clamp(min=0)


class PaddedFrames(NamedTuple):
    """Frames, with the number of those that are only margin on each side."""

    frames: Tensor
    left: int
    right: int


class Vocoder:
    """coqui's HifiDecoder, prepared for turning latents into audio at 24 kHz, whatever its own rate is."""

    def __init__(self, decoder: nn.Module, precision: Precision = "fp32", device: str = "cpu") -> None:
        require("vocoder", precision, device)
        self.device = torch.device(device)
        self.lane = Lane(self.device)
        self._source = decoder
        self.network = self._prepared(DTYPES[precision])
        sizes: Any = decoder
        to_frames = sizes.ar_mel_length_compression / sizes.output_hop_length
        self.rate = int(sizes.output_sample_rate)
        to_output_rate = sizes.output_sample_rate / sizes.input_sample_rate
        self.upsampling = Upsampling((to_frames,) if to_output_rate == 1 else (to_frames, to_output_rate))
        self.workers = torch.get_num_threads() if self.device.type == "cpu" else 1
        # They share the parts of a sentence.
        self.threads = _single_threads(self.workers) if self.workers > 1 else None

    def _prepared(self, dtype: torch.dtype) -> HifiGan:
        return self.lane.run(lambda: HifiGan.of(without_silent_channels(self._source), dtype, self.device))

    def sound(self, latents: Latents, embedding: Tensor) -> Samples:
        """Return the audio of a sentence, from one row per code and a speaker embedding of shape (1, 512, 1)."""
        count = self.upsampling.count(len(latents))

        def frames() -> PaddedFrames:
            rows = self.rows(latents)
            return PaddedFrames(self.upsampling.frames(rows, 0, 0, count) if count else rows, 0, 0)

        sound = self.run(frames, embedding)
        if self.device.type == "cpu":
            trim_heap()  # the gaps of one length do not fit the next: 1.3 GB after eight sentences
        return resample(sound, self.rate, OUTPUT_RATE)

    def rows(self, latents: Latents) -> Tensor:
        """Return latents as one tensor on the device."""
        rows = latents if isinstance(latents, Tensor) else torch.stack(list(latents))
        return to_device(rows, self.device).float()

    def stream(self, embedding: Tensor) -> "VocoderStream":
        """Begin a sentence whose latents come in chunks."""
        return VocoderStream(self, embedding)

    def run(self, frames: Callable[[], PaddedFrames], embedding: Tensor) -> Samples:
        """Return the audio of frames; where half precision overflows, in fp32, as all that follows."""
        sound = self._audio(frames, embedding)
        if self.network.dtype != torch.float32 and not np.isfinite(sound).all():
            log_fact(SpeechHindered("overflow", str(self.network.dtype).removeprefix("torch.")))
            self.network = self._prepared(torch.float32)
            sound = self._audio(frames, embedding)
        return sound

    def _audio(self, frames: Callable[[], PaddedFrames], embedding: Tensor) -> Samples:
        network = self.network

        @torch.inference_mode()
        def start() -> Arrival:
            biases = network.biases(embedding)
            whole = frames()

            @torch.inference_mode()
            def compute(part: PaddedFrames) -> Tensor:
                return network(*part, biases)

            parts = list(self._split(whole))
            sounds = (self.threads.map if self.threads and len(parts) > 1 else map)(compute, parts)
            return to_host(torch.cat([torch.zeros(0, device=self.device), *sounds]))

        sound: Samples = self.lane.run(start).wait().numpy()
        return sound

    def _split(self, whole: PaddedFrames) -> Iterator[PaddedFrames]:
        """Split frames into parts of similar size, at least one per thread if that is worth it."""
        frames = whole.frames
        reach = self.network.reach
        size = len(frames) - whole.left - whole.right
        if not size:
            return
        if self.device.type != "cpu":
            yield from windows(whole, reach)
            return
        rounds = math.ceil(size / (MAX_FRAMES_CPU * self.workers))
        count = max(1, min(rounds * self.workers, size // MIN_FRAMES))
        for first, last in pairwise(whole.left + size * number // count for number in range(count + 1)):
            start = max(0, first - reach)
            stop = min(len(frames), last + reach)
            yield PaddedFrames(frames[start:stop], first - start, stop - last)


def windows(whole: PaddedFrames, reach: int) -> Iterator[PaddedFrames]:
    """Cut frames into windows of one of few sizes; they overlap, so that each sample has all that it depends on."""
    size = len(whole.frames)
    width = max((each for each in WINDOWS if each <= size), default=size)
    count = 1 + (math.ceil((size - width) / (width - 2 * reach)) if size > width else 0)
    first = whole.left
    end = size - whole.right
    for number in range(count):
        start = (size - width) * number // max(1, count - 1)
        last = end if number == count - 1 else min(end, start + width - reach)
        if last > first:
            yield PaddedFrames(whole.frames[start : start + width], first - start, start + width - last)
            first = last


class VocoderStream:
    """The audio of a sentence whose latents come in chunks; the audio joined is that of the whole."""

    def __init__(self, vocoder: Vocoder, embedding: Tensor) -> None:
        self.vocoder = vocoder
        self.embedding = embedding
        self.resampler = soxr.ResampleStream(vocoder.rate, OUTPUT_RATE, 1, dtype="float32")
        self.latents: Tensor | None = None  # those that coming frames need
        self.dropped = self.done = 0  # latents that were dropped again, frames that were returned

    def push(self, latents: Latents) -> Samples:
        """Add latents and return the audio that is certain by now, which may be empty."""
        before = [] if self.latents is None else [self.latents]
        self.latents = self.vocoder.lane.run(lambda: torch.cat([*before, self.vocoder.rows(latents)]))
        certain = self.vocoder.upsampling.settled(self.dropped + len(self.latents))
        return self._resampled(self._sound(certain - self.vocoder.network.reach, certain))

    def finish(self) -> Samples:
        end = self.vocoder.upsampling.count(self.dropped + (0 if self.latents is None else len(self.latents)))
        return self._resampled(self._sound(end, end), is_last=True)

    def _resampled(self, sound: Samples, *, is_last: bool = False) -> Samples:
        if self.vocoder.rate == OUTPUT_RATE:
            return sound
        converted: Samples = self.resampler.resample_chunk(sound, last=is_last)
        return converted

    def _sound(self, last: int, end: int) -> Samples:
        """Return the audio up to a frame, computed with a margin up to another one."""
        known = self.latents
        if known is None or last <= self.done:
            return NO_SAMPLES
        vocoder = self.vocoder
        start = max(0, self.done - self.vocoder.network.reach)

        def frames() -> PaddedFrames:
            part = vocoder.upsampling.frames(known, self.dropped, start, end)
            return PaddedFrames(part, self.done - start, end - last)

        sound = vocoder.run(frames, self.embedding)
        self.done = last
        first = vocoder.upsampling.first_code(max(0, last - vocoder.network.reach))
        self.latents = known[first - self.dropped :]
        self.dropped = first
        return sound


def _single_threads(count: int) -> ThreadPoolExecutor:
    """Return threads that compute on one core each.

    The parts of a sentence are independent, so no thread waits for the slowest after every layer, as the threads
    inside a layer do.
    """
    before = torch.get_num_threads()
    ready = Barrier(count)
    pool = ThreadPoolExecutor(count, thread_name_prefix="vocoder")
    list(pool.map(_use_one_core, [ready] * count))
    torch.set_num_threads(before)  # the last thread has set the number for all threads to come
    return pool


def _use_one_core(ready: Barrier) -> None:
    torch.get_num_threads()  # initializes the number for this thread, which would override ours later
    torch.set_num_threads(1)
    ready.wait()  # or one thread would do this for the others too
