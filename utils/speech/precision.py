"""Chooses the number format for speech: whatever was measured to be fastest on this machine.

The GPT generates one code at a time, so its speed is that of reading its weights: fewer bytes, faster speech. The
vocoder multiplies the same weights with thousands of samples, so its speed is that of arithmetic. Each machine is
measured once, the first time that it speaks.
"""

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, cast

import torch
from pydantic import Field, TypeAdapter
from torch import nn
from torch.nn import functional

from utils.core.errors import StorageError
from utils.core.facts import FileIgnored, NotStored, log_fact
from utils.core.storage import file_lock, make_folder, read_object, write_document
from utils.speech.facts import PrecisionError, SpeechHindered
from utils.speech.layers import DTYPES, Precision, can_pack, int8_engine, linear
from utils.xtts.certificate import GPT, VOCODING, failure
from utils.xtts.device import (
    BF16_FLAGS,
    choose_device,
    choose_precision,
    limit_kernel_cache,
    processor_fact,
    processor_flags,
)
from utils.xtts.facts import PrecisionReason

Part = Literal["gpt", "vocoder"]
Seconds = Mapping[Precision, Annotated[float, Field(gt=0)]]  # of the same work in each precision
FORMAT = 2  # of the measurements
MIN_GAIN = 1.15  # times faster than fp32; less is not worth any inexactness
EMULATED = 0.5  # of fp32's speed; slower bf16 is not done by the processor itself
ROUNDS = 15  # the best of which counts, in case another program disturbs some
LAYERS, WIDTH = 8, 1024  # together larger than a processor's cache
SMALL_BYTES = 64 << 20  # a GPT of this size in fp32 is read quickly as it is


@dataclass(frozen=True)
class PrecisionChoice:
    """The device and the precision of each part of a model, with the reasons."""

    device: str  # as torch names it
    gpt: Precision
    vocoder: Precision
    gpt_reason: PrecisionReason
    vocoder_reason: PrecisionReason

    def for_model(self, gpt: nn.Module) -> "PrecisionChoice":
        """Return fp32 for a small model on a processor, where fewer bytes save little.

        Small networks also lose more: the bf16 vocoder of the embedded voice is 37 dB above its noise, which takes a
        third of the likeness to the speaker by its own encoder.
        """
        size = sum(4 * weight.numel() for weight in gpt.parameters())
        if self.device != "cpu" or size > SMALL_BYTES:
            return self
        reason = PrecisionReason("small_model", f"{size >> 20} MB")
        return PrecisionChoice(self.device, "fp32", "fp32", reason, reason)

    def as_tested(self, certificate: Path | None) -> "PrecisionChoice":
        """Return it with fp32 for each part whose format failed the test of this device, and log that."""
        failed = PrecisionReason("failed")
        choice = self
        if self.vocoder != "fp32" and (problem := failure(self.device, certificate, VOCODING)):
            log_fact(SpeechHindered("half_failed", problem))
            choice = replace(choice, vocoder="fp32", vocoder_reason=failed)
        if self.gpt != "fp32" and (problem := failure(self.device, certificate, GPT)):
            log_fact(SpeechHindered("gpt_failed", problem))
            choice = replace(choice, gpt="fp32", gpt_reason=failed)
        return choice


@dataclass(frozen=True)
class Measurement:
    """How long the same work took in each precision."""

    gpt: Seconds  # of products with few rows and large weights; for training, of a layer forward and backward
    vocoder: Seconds  # of a convolution; none for training
    date: str


def choose(device: str = "auto", precision: str = "auto", path: Path | None = None) -> PrecisionChoice:
    """Choose the fastest precision, or the requested one if the device supports it.

    int8 is for the GPT only; the vocoder then gets the fastest for it. ``path`` has earlier measurements.
    """
    limit_kernel_cache()  # before a weight is packed or a kernel timed
    device = choose_device(device)
    if precision not in ("auto", *DTYPES):
        raise PrecisionError(precision, "unknown", ", ".join(DTYPES))
    if precision != "auto":
        require("gpt", precision, device)
    requested = cast("Precision", precision)
    asked = PrecisionReason("requested")
    if precision not in ("auto", "int8"):
        return PrecisionChoice(device, requested, requested, asked, asked)
    if torch.device(device).type != "cpu":
        best = choose_precision(device)
        name: Precision = "fp32" if best.dtype == "no" else best.dtype
        return PrecisionChoice(device, name, name, best.reason, best.reason)
    measured = measurement(path, machine(), measure)
    vocoder, vocoder_reason = choose_fastest(measured.vocoder, measured.date)
    gpt, reason = (requested, asked) if precision == "int8" else choose_fastest(measured.gpt, measured.date)
    return PrecisionChoice(device, gpt, vocoder, reason, vocoder_reason)


def require(part: Part, precision: str, device: str) -> None:
    """Refuse a precision that a device does not support, or not well, and name the alternatives."""
    if part == "vocoder" and precision == "int8":
        raise PrecisionError(precision, "noisy_vocoder")
    if torch.device(device).type != "cpu":
        if precision == "int8":
            raise PrecisionError(precision, "cpu_only")
        if precision == "bf16" and (best := choose_precision(device)).dtype != "bf16":
            raise PrecisionError(precision, "gpu_lacks", str(best.reason))
    elif precision == "fp16":
        raise PrecisionError(precision, "slow")
    elif precision == "bf16" and not computes_bf16(part):
        raise PrecisionError(precision, "emulated")
    elif precision == "int8" and not int8_engine():
        raise PrecisionError(precision, "torch_lacks")


def measurement(path: Path | None, key: str, measure: Callable[[], Measurement]) -> Measurement:
    """Return what was measured on this machine and stored in a file; to measure it takes a second or two."""
    if path is None:
        return measure()
    if known := _read(path).get(key):
        return known
    result = measure()
    try:
        make_folder(path.parent)
        with file_lock(path.with_name(f".{path.name}.lock")):
            every = {key: result, **_read(path)}  # that of a process that was faster, which this one then uses, too
            write_document(path, {name: vars(each) for name, each in every.items()})
    except StorageError as error:  # speech works all the same
        log_fact(NotStored(error))
        return result
    return every[key]


def machine() -> str:
    """Return what a measurement is valid for: the processor with its flags, torch, and the number of threads."""
    flags = sorted(processor_flags() & {*BF16_FLAGS, "avx2", "avx512_vnni", "avx_vnni", "amx_int8"})
    name = processor_fact("model name")
    processor = " ".join([name, *flags]) if name else platform.processor() or platform.machine()
    return f"{processor} | torch {torch.__version__} | {torch.get_num_threads()} threads | format {FORMAT}"


def measure() -> Measurement:
    with torch.inference_mode(), torch.random.fork_rng(devices=[]):  # also around the timing in computes_bf16
        gpt: list[Precision] = ["fp32", "bf16"] if computes_bf16("gpt") else ["fp32"]
        gpt += ["int8"] if int8_engine() else []
        vocoder: list[Precision] = ["fp32", "bf16"] if computes_bf16("vocoder") else ["fp32"]
        products = time_in_turns({name: _products(name) for name in gpt})
        convolutions = time_in_turns({name: _convolution(name) for name in vocoder})
    return Measurement(products, convolutions, datetime.now(UTC).date().isoformat())


def computes_bf16(part: Part) -> bool:
    """Return whether bf16 is worth anything here: the GPT also needs a torch that packs its weights."""
    return multiplies_bf16() and (part == "vocoder" or can_pack("bf16"))


def multiplies_bf16() -> bool:
    """Return whether the processor multiplies bf16: by its flags, or else by timing a small product."""
    if flags := processor_flags():
        return any(flag in flags for flag in BF16_FLAGS)
    with torch.inference_mode():
        names: list[Precision] = ["fp32", "bf16"]
        works = {name: _convolution(name, channels=32, samples=256) for name in names}
        seconds = time_in_turns(works, rounds=3)
    return seconds["fp32"] / seconds["bf16"] > EMULATED


def choose_fastest(seconds: Seconds, date: str) -> tuple[Precision, PrecisionReason]:
    """Return the fastest precision, which is fp32 unless another one is clearly faster, and the reason."""
    gains = {name: seconds["fp32"] / each for name, each in seconds.items() if name != "fp32"}
    best = max(gains, key=lambda name: gains[name], default=None)
    if best and gains[best] >= MIN_GAIN:
        return best, PrecisionReason("faster", f"{gains[best]:.1f}", date)
    others = ", ".join(f"{name} {gain:.1f}x" for name, gain in gains.items()) or "–"
    return "fp32", PrecisionReason("nothing_faster", others, date)


def _products(precision: Precision) -> Callable[[], object]:
    layers = [linear(torch.randn(4 * WIDTH, WIDTH), torch.zeros(4 * WIDTH), precision) for _ in range(LAYERS)]
    row = torch.randn(1, WIDTH)
    return lambda: [layer(row) for layer in layers]


def _convolution(precision: Precision, channels: int = 128, samples: int = 3000) -> Callable[[], object]:
    dtype = DTYPES[precision]
    order = torch.channels_last
    weight = torch.randn(channels, channels, 1, 7).to(dtype).contiguous(memory_format=order)
    sound = torch.randn(1, channels, 1, samples).to(dtype).contiguous(memory_format=order)
    return lambda: functional.conv2d(sound, weight, padding=(0, 3))


def time_in_turns(works: Mapping[Precision, Callable[[], object]], rounds: int = ROUNDS) -> dict[Precision, float]:
    """Return the shortest time of each work; they take turns, so that a disturbance affects all."""
    for work in works.values():
        work()
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def _read(path: Path) -> dict[str, Measurement]:
    """Read earlier measurements; a damaged file counts as empty."""
    try:
        return TypeAdapter(dict[str, Measurement]).validate_python(read_object(path))
    except ValueError as error:
        log_fact(FileIgnored(path, str(error)))
        return {}
