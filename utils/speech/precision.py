"""Which numbers to compute speech with: what this machine is fastest at is measured, and remembered.

The first few times that speech is wanted all are measured, and the best of each counts, so that a measurement which
another program disturbed does not decide for ever. What counts differs by part. The GPT says one code at a time, so its
speed is that of fetching its weights: fewer bytes, faster speech. The vocoder multiplies the same weights with
thousands of samples, so its speed is that of arithmetic.
"""

import json
import logging
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import torch
from torch.nn import functional

from utils.core.errors import SpeedupError, StorageError
from utils.core.paths import PRECISIONS
from utils.core.storage import file_lock, make_folder, read_json, write_atomically
from utils.speech.quantized import DTYPES, Precision, can_pack, engine, linear
from utils.xtts.dtypes import BF16_FLAGS, choose_precision, processor_flags

logger = logging.getLogger(__name__)

Part = Literal["gpt", "vocoder"]
Seconds = Mapping[str, float]  # of the same work in each precision
FORMAT = 2  # counts changes of what is measured
WORTH = 1.15  # times faster than fp32; less is not worth any inexactness
EMULATED = 0.5  # of fp32's speed; what is slower than that is not done by the processor itself
ROUNDS = 7  # the best of which counts, since other programs disturb
TIMES = 3  # that a machine is measured, a second each, on different occasions
LAYERS, WIDTH = 8, 1024  # together larger than what processors keep near
HISSES = "Bytes are too coarse for sound: where it is soft, it hisses."


@dataclass(frozen=True)
class PrecisionChoice:
    """What to compute with.

    Attributes:
        device: Where: "cpu" or "cuda".
        gpt: For what says the codes.
        vocoder: For what makes their sound.
        gpt_reason: Why, in words.
        vocoder_reason: Why, in words.
    """

    device: str
    gpt: Precision
    vocoder: Precision
    gpt_reason: str
    vocoder_reason: str


def choose(
    device: str = "auto", wanted: str = "auto", path: Path = PRECISIONS, capability: tuple[int, int] | None = None
) -> PrecisionChoice:
    """Choose what the device is fastest at, or what is wanted where it is able to do that.

    Args:
        device: Where to compute; auto: on a GPU if there is one.
        wanted: A precision, or auto. int8 is for the GPT; the vocoder then gets what is best for it.
        path: What was measured on this machine before.
        capability: The GPU's compute capability; read from the device by default.

    Raises:
        SpeedupError: The device cannot do what is wanted, or do it well.
    """
    place = _place(device)
    if wanted not in ("auto", *DTYPES):
        raise SpeedupError(f"{wanted!r} is no precision.", hint=f"Choose auto, {', '.join(DTYPES)}.")
    if wanted not in ("auto", "int8"):
        require("gpt", wanted, place, capability)
        name = _named(wanted)
        return PrecisionChoice(place, name, name, f"{wanted}: asked for", f"{wanted}: asked for")
    if wanted == "int8":
        require("gpt", wanted, place, capability)
    if torch.device(place).type == "cuda":
        return _on_gpu(place, capability)
    found = measured(path)
    gpt, why = _fastest(found.gpt, found.date)
    vocoder, sound_why = _fastest(found.vocoder, found.date)
    if wanted == "int8":
        gpt, why = "int8", "int8: asked for"
    return PrecisionChoice(place, gpt, vocoder, why, sound_why)


def require(part: Part, precision: str, device: str, capability: tuple[int, int] | None = None) -> None:
    """Refuse a precision that a device cannot compute in, or not well.

    Raises:
        SpeedupError: With what to choose instead.
    """
    if part == "vocoder" and precision == "int8":
        raise SpeedupError(HISSES, hint="Choose bf16 or fp32 for the vocoder.")
    if torch.device(device).type == "cuda":
        _require_on_gpu(precision, capability)
    elif precision == "fp16":
        raise SpeedupError("Processors compute fp16 more slowly than fp32.", hint="Choose auto, int8, bf16 or fp32.")
    elif precision == "bf16" and not computes_bf16(part):
        reason = "This processor does not multiply bf16 itself and would take many times as long."
        raise SpeedupError(reason, hint="Choose auto, int8 or fp32.")
    elif precision == "int8" and not engine():
        raise SpeedupError("This build of torch has no products of int8.", hint="Choose fp32.")


def _require_on_gpu(precision: str, capability: tuple[int, int] | None) -> None:
    if precision == "int8":
        raise SpeedupError("int8 speaks on processors only.", hint="Choose auto, fp16 or bf16 on a GPU.")
    if precision == "bf16" and (best := choose_precision("cuda", capability=capability)).dtype != "bf16":
        raise SpeedupError(f"This GPU does not do bf16: {best.reason}.", hint="Choose auto, fp16 or fp32.")


def _place(device: str) -> str:
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise SpeedupError("torch finds no GPU here.", hint="Choose cpu or auto, or install a driver and a CUDA torch.")
    return device


def _on_gpu(place: str, capability: tuple[int, int] | None) -> PrecisionChoice:
    best = choose_precision(place, capability=capability)
    name: Precision = "fp32" if best.dtype == "no" else best.dtype
    reason = f"{name}: {best.reason.partition(';')[0]}"
    return PrecisionChoice(place, name, name, reason, reason)


@dataclass(frozen=True)
class Measured:
    """How long the same work took in each precision.

    Attributes:
        gpt: Seconds of products with few rows and large weights.
        vocoder: Seconds of a convolution.
        date: The day.
        times: On how many occasions.
    """

    gpt: Seconds
    vocoder: Seconds
    date: str
    times: int = 1

    def and_again(self, other: "Measured") -> "Measured":
        """Take the best of two occasions."""
        gpt, vocoder = _best(self.gpt, other.gpt), _best(self.vocoder, other.vocoder)
        return Measured(gpt, vocoder, other.date, self.times + other.times)


def measured(path: Path = PRECISIONS) -> Measured:
    """Return what was measured on this machine, which takes a second or two the first times."""
    key = machine()
    found = _remembered(path).get(key)
    if found and found.times >= TIMES:
        return found
    made = found.and_again(measure()) if found else measure()
    try:
        make_folder(path.parent)
        with file_lock(path.with_name(f".{path.name}.lock")):
            known = {**_remembered(path), key: made}
            write_atomically(path, json.dumps({name: vars(each) for name, each in known.items()}, indent=2))
    except StorageError as error:  # speech works all the same
        logger.warning("What was measured is not remembered: %s", error)
    return made


def machine() -> str:
    """Name what a measurement holds for."""
    return f"{_processor()} | torch {torch.__version__} | {torch.get_num_threads()} threads | format {FORMAT}"


def measure() -> Measured:
    """Measure each precision that this processor computes in."""
    bytes_too: list[Precision] = ["int8"] if engine() else []
    with torch.inference_mode(), torch.random.fork_rng(devices=[]):
        gpt = _seconds({name: _products(name) for name in [*_floats("gpt"), *bytes_too]})
        vocoder = _seconds({name: _convolution(name) for name in _floats("vocoder")})
    return Measured(gpt, vocoder, datetime.now(UTC).date().isoformat())


def _floats(part: Part) -> list[Precision]:
    return ["fp32", "bf16"] if computes_bf16(part) else ["fp32"]


def computes_bf16(part: Part) -> bool:
    """Tell whether bf16 is worth anything here: the GPT also needs a torch that packs its weights for that."""
    return multiplies_bf16() and (part == "vocoder" or can_pack("bf16"))


def multiplies_bf16() -> bool:
    """Tell whether the processor multiplies bf16: by what it says of itself, or else by a product of a few numbers."""
    if flags := processor_flags():
        return any(flag in flags for flag in BF16_FLAGS)
    with torch.inference_mode():
        taken = _seconds({name: _convolution(name, channels=32, samples=256) for name in ("fp32", "bf16")}, rounds=3)
    return taken["fp32"] / taken["bf16"] > EMULATED


def _best(one: Seconds, other: Seconds) -> Seconds:
    return {name: min(each[name] for each in (one, other) if name in each) for name in {**one, **other}}


def _fastest(seconds: Seconds, date: str) -> tuple[Precision, str]:
    """Return the fastest precision, which is fp32 unless another one is clearly faster, and the reason."""
    times = {name: seconds["fp32"] / each for name, each in seconds.items() if name != "fp32"}
    best = max(times, key=lambda name: times[name], default="")
    if best and times[best] >= WORTH:
        return _named(best), f"{best}: {times[best]:.1f}x faster than fp32 here, measured {date}"
    slower = ", ".join(f"{name} {factor:.1f}x" for name, factor in times.items())
    return "fp32", f"fp32: nothing else is clearly faster here ({slower or 'nothing else is there'}), measured {date}"


def _products(precision: Precision) -> Callable[[], object]:
    layers = [linear(torch.randn(4 * WIDTH, WIDTH), torch.zeros(4 * WIDTH), precision) for _ in range(LAYERS)]
    row = torch.randn(1, WIDTH)
    return lambda: [layer(row) for layer in layers]


def _convolution(precision: Precision, channels: int = 128, samples: int = 3000) -> Callable[[], object]:
    dtype, order = DTYPES[precision], torch.channels_last
    weight = torch.randn(channels, channels, 1, 7).to(dtype).contiguous(memory_format=order)
    sound = torch.randn(1, channels, 1, samples).to(dtype).contiguous(memory_format=order)
    return lambda: functional.conv2d(sound, weight, padding=(0, 3))


def _seconds(works: Mapping[Precision, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the shortest time of each work; they take turns, so that what disturbs one disturbs all."""
    for work in works.values():
        work()
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return {str(name): seconds for name, seconds in best.items()}


def _remembered(path: Path) -> dict[str, Measured]:
    """Read what was measured before; of a damaged file nothing, so that it is measured anew."""
    try:
        return {key: _checked(each) for key, each in dict(read_json(path)).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, LookupError) as error:
        logger.warning("%s is damaged and will be written anew: %s", path, error)
        return {}


def _checked(each: Mapping[str, object]) -> Measured:
    found = Measured(**each)  # type: ignore[arg-type]  # what it holds is checked here
    for seconds in (found.gpt, found.vocoder):
        if "fp32" not in seconds or not all(name in DTYPES and float(taken) > 0 for name, taken in seconds.items()):
            raise ValueError(f"no such measurement: {seconds}")
    return found


def _named(name: str) -> Precision:
    return next(each for each in ("fp32", "bf16", "fp16", "int8") if each == name)


def _processor() -> str:
    """Return the name of the processor, as exactly as the system tells it."""
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        if name := next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), ""):
            flags = sorted(processor_flags() & {*BF16_FLAGS, "avx2", "avx512_vnni", "avx_vnni", "amx_int8"})
            return " ".join([name, *flags])
    return platform.processor() or platform.machine()
