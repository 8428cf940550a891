"""Test the user's own GPU: every kernel and switch against plain fp32, with speed and memory.

A switch passes if a few updates with it give the losses and gradients of the reference: eager attention, fp32, plain
AdamW. What fails is replaced in later runs (``safe_config``). The settings of a run are also tested together, as they
will be used. A CPU can be tested too, so that every line runs in CI.
"""

import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.util import find_spec
from itertools import accumulate
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from utils.config import SpeechConfig, TrainConfig
from utils.speech.decoder import Decoder
from utils.speech.precision import choose
from utils.speech.types import Generation, Sentence
from utils.speech.vocoder import Vocoder
from utils.training.errors import SettingRefusedError
from utils.training.facts import SettingReplaced
from utils.training.memory import changed
from utils.training.model_size import ModelSize, random_gpt
from utils.training.packing import MEL_BANDS, Example, PackedBatch, SpecialTokens, pack
from utils.training.probe import Measured, Probe, probe
from utils.training.resume_state import capture_rng, restore_rng
from utils.training.step import unwrap_optimizer
from utils.xtts.certificate import DECODING, VOCODING, Certificate, Check, failure, machine, read
from utils.xtts.device import choose_precision
from utils.xtts.model import random_vocoder
from utils.xtts.tokenizer import TokenizedText

SWITCHES = Path(__file__).parent / "data" / "switches.toml"
REFERENCE = SWITCHES.with_name("reference.yaml")
SIZES = (ModelSize(2, 64, 4, text_rows=100), ModelSize(1, 1024, 16, text_rows=200))  # a small model and a wide layer
UPDATES = 4
LENGTHS = (10, 25, 40)  # codes of the sentences of decoding
OWN = (  # settings of a run that change what is computed, besides those of ``switches``
    "checkpoint_every dropout freeze_conditioning freeze_first_n_gpt_layers label_smoothing lora_alpha lora_dropout "
    "lora_rank lora_targets text_loss_weight use_dora"
).split()
FASTER = (  # switches that compute otherwise; those that save memory stay on where the settings of a run fail together
    "enable_sdpa enable_mixed_precision enable_tf32 enable_fused_gelu enable_fused_optimizer use_compile "
    "enable_byte_dropout"
).split()
RISE = 0.05  # of the loss, on which the gradient is measured: far above the rounding of half precision
MAX_ERROR = 0.02  # of that rise; it is 0.001 on a CPU, and 0.05 where layers are computed again with other dropout


@dataclass(frozen=True)
class Switch:
    """A setting that is compared with the reference, and what replaces it where it fails."""

    name: str
    on: Mapping[str, object]
    off: Mapping[str, object]
    tolerance: float = 1e-3  # relative, of losses and norms
    needs: str = ""  # "cuda", or a package
    reference: Mapping[str, object] = field(default_factory=dict)  # besides reference.yaml

    def can_run_on(self, device: torch.device) -> bool:
        """Return whether the device, or the package, is there."""
        return self.needs in {"", device.type} or (self.needs != "cuda" and find_spec(self.needs) is not None)


REPEATED = Switch("resuming, deterministic", {"deterministic": True}, {"deterministic": False}, tolerance=0.0)


@cache
def switches() -> tuple[Switch, ...]:
    """Return the switches of ``data/switches.toml``."""
    return tuple(Switch(name, **row) for name, row in tomllib.loads(SWITCHES.read_text(encoding="utf-8")).items())


def checks(device: torch.device, config: TrainConfig | None = None) -> dict[str, Callable[[str], Check]]:
    """Return every check that this device can run, by its name; that of a run is for these settings."""
    own = _own_settings(config or TrainConfig())
    small, wide = SIZES[0], SIZES[-1]
    references: dict[tuple[ModelSize, str], Measured] = {}

    def reference(size: ModelSize, settings: Mapping[str, object]) -> Measured:
        key = size, str(settings)
        if key not in references:
            references[key] = updates(size, device, settings)
        return references[key]

    def switched(switch: Switch) -> Iterator[tuple[Measured, Measured]]:
        settings = {**switch.reference, **switch.on}
        return ((updates(size, device, settings), reference(size, switch.reference)) for size in SIZES)

    plain = ((reference(size, {}), updates(size, torch.device("cpu"), {})) for size in [small])
    full = ((updates(size, device, {}, is_full=True), reference(size, {})) for size in [small])
    fast = {"enable_sdpa": True, "enable_mixed_precision": True, "enable_fused_optimizer": True}
    return {
        "plain fp32 as on the CPU": partial(_compared, measured=plain, tolerance=1e-2),
        **{
            switch.name: partial(_compared, measured=switched(switch), tolerance=switch.tolerance)
            for switch in switches()
            if switch.can_run_on(device)
        },
        "recovery from a full memory": partial(_compared, measured=full, tolerance=1e-3),
        DECODING: partial(_decodes, size=wide, device=device),
        VOCODING: partial(_vocodes, device=device),
        "resuming": partial(_resumes, size=small, device=device, settings={}, tolerance=1e-3),
        REPEATED.name: partial(
            _resumes, size=small, device=device, settings={**fast, **REPEATED.on}, tolerance=REPEATED.tolerance
        ),
        run_name(config or TrainConfig()): partial(_runs, device=device, settings=own),
    }


def is_tested(device: torch.device | str, path: Path, config: TrainConfig) -> bool:
    """Return whether every check of these settings was run on this device, also those that an older version lacked."""
    certificate = read(device, path)
    names = {check.name for check in certificate.checks} if certificate else set()
    return checks(torch.device(device), config).keys() <= names


def run(
    device: torch.device,
    path: Path,
    report: Callable[[Check], object] = lambda _check: None,
    config: TrainConfig | None = None,
    *,
    missing_only: bool = False,
) -> Certificate:
    """Run every check, report it, and write the certificate after each one: stopping loses nothing that was found."""
    wanted = checks(device, config)
    earlier = read(device, path) if missing_only else None
    found = {check.name: check for check in earlier.checks} if earlier else {}
    certificate = earlier or Certificate(machine(device), "", ())
    for name in [name for name in wanted if name not in found]:
        found[name] = _checked(name, wanted[name])
        today = datetime.now(UTC).date().isoformat()
        is_complete = wanted.keys() <= found.keys()
        certificate = replace(certificate, date=today, checks=tuple(found.values()), is_complete=is_complete)
        certificate.write(path)
        report(found[name])
    return certificate


def safe_config(
    config: TrainConfig, device: torch.device | str, path: Path
) -> tuple[TrainConfig, list[SettingReplaced]]:
    """Replace the settings that failed on this device, and say which and why."""
    changes = []
    for switch in (*switches(), REPEATED):
        reason = failure(device, switch.name, path)
        if reason and all(getattr(config, name) == value for name, value in switch.on.items()):
            config = changed(config, switch.off)
            used = ", ".join(f"{name}={value}" for name, value in switch.off.items())
            changes.append(SettingReplaced(switch.name, used, reason))
    together = run_name(config)
    faster = [name for name in FASTER if getattr(config, name)]
    if not changes and faster and (reason := failure(device, together, path)):
        config = changed(config, dict.fromkeys(faster, False))
        changes.append(SettingReplaced(together, ", ".join(f"{name}=False" for name in faster), reason))
    return config, changes


def run_name(config: TrainConfig) -> str:
    """Return the name of the check of a run with these settings."""
    settings, plain = _own_settings(config), TrainConfig.load(REFERENCE)
    used = [f"{name}={value}" for name, value in settings.items() if value != getattr(plain, name)]
    return " ".join(["run with", ", ".join(used).replace("=True", "") or "plain settings"])


def _own_settings(config: TrainConfig) -> dict[str, object]:
    names = {*OWN, *_plain(), *(name for switch in switches() for name in switch.reference)}
    frozen = min(1, config.freeze_first_n_gpt_layers)  # the models of the test have no more to spare
    return config.model_dump(include=names) | {"freeze_first_n_gpt_layers": frozen}


def _plain() -> dict[str, object]:
    """Return the settings that replace every switch."""
    plain = {name: value for switch in switches() for name, value in switch.off.items()}
    return {**plain, "enable_byte_dropout": False, **REPEATED.off}


def updates(
    size: ModelSize, device: torch.device, settings: Mapping[str, object], *, is_full: bool = False
) -> Measured:
    """Train a few updates from the same start; with ``is_full``, memory runs out in the first one."""
    config = changed(TrainConfig.load(REFERENCE), settings)
    with probe(config, size, device) as probed:
        if is_full:
            probed.step.model.register_forward_pre_hook(_fill_memory(device))
        return probed.run([_batch(probed.tokens, config.batch_size)], UPDATES)


def _runs(name: str, device: torch.device, settings: Mapping[str, object]) -> Check:
    """Test the settings of a run; what the test refuses, the run will refuse too."""
    try:
        return _together(name, device, settings)
    except SettingRefusedError as error:
        return Check(name, passed=True, detail=f"not tested: {error}")


def _together(name: str, device: torch.device, settings: Mapping[str, object]) -> Check:
    """Compare the settings of a run with plain ones, and with dropout its gradient with how the loss rises along it."""
    config = changed(TrainConfig.load(REFERENCE), settings)
    plain = _plain()
    still = {"dropout": 0, "lora_dropout": 0}
    if config.optimizer == "adafactor":  # AdamW takes other steps
        del plain["optimizer"]
    tolerance = 0.02 if device.type == "cuda" and config.enable_tf32 else 1e-3
    if choose_precision(device, wanted=config.enable_mixed_precision).dtype != "no":
        tolerance = 0.1
    pairs = [
        (updates(size, device, {**settings, **still}), updates(size, device, {**settings, **plain, **still}))
        for size in SIZES
    ]
    worst = max(difference(one.numbers, other.numbers) for one, other in pairs)
    widest = pairs[-1][0]
    with probe(config, SIZES[0], device) as probed:
        error = abs(_rise(probed) / RISE - 1)
        kernels = "; ".join(f"{part}: {used}" for part, used in probed.kernels.items())
    gradient = f"with dropout its gradient by {error:.1e} (limit {MAX_ERROR:.0e})"
    detail = f"differs by {worst:.1e} (limit {tolerance:.0e}), {gradient}; {kernels}"
    passed = worst <= tolerance and error <= MAX_ERROR
    return Check(name, passed, detail, 1000 * widest.seconds, widest.peak / 2**20)


def _rise(probed: Probe) -> float:
    """Return how much the loss rises where the gradient says ``RISE``, with the same dropout each time."""
    step = probed.step
    batch = _batch(probed.tokens, probed.config.batch_size).to(probed.device)
    accelerator = step.ranks.accelerator

    def loss() -> Tensor:
        torch.manual_seed(0)
        loss: Tensor = step.model.train()(batch).audio / batch.audio_count
        return loss

    accelerator.backward(loss())
    accelerator.unscale_gradients()
    layers = step.packed.gpt.get_submodule("gpt.h").parameters()  # where there is dropout
    weights = [weight for weight in layers if weight.grad is not None]
    gradients = [weight.grad.clone() for weight in weights if weight.grad is not None]
    length = RISE / float(get_total_norm(gradients)) ** 2
    ends = []
    with torch.no_grad():
        for share in (0.5, -1.0):
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.add_(gradient, alpha=share * length)
            ends.append(float(loss()))
    return ends[0] - ends[1]


def _batch(tokens: SpecialTokens, clips: int) -> PackedBatch:
    random = np.random.default_rng(0)
    examples = [
        Example(
            random.integers(1, 90, 12 + 9 * number).astype(np.int32),
            random.integers(0, 1000, 40 + 15 * number).astype(np.int16),
            random.standard_normal((100, MEL_BANDS)).astype(np.float16),
        )
        for number in range(clips)
    ]
    return pack(examples, tokens)


def _fill_memory(device: torch.device) -> Callable[..., None]:
    has_failed = False

    def fill(*_: object) -> None:
        nonlocal has_failed
        if not has_failed:
            has_failed = True
            if device.type == "cuda":
                torch.empty(2**46, dtype=torch.uint8, device=device)
            raise torch.OutOfMemoryError("Allocating 64 TiB did not fail.")

    return fill


def _checked(name: str, check: Callable[[str], Check]) -> Check:
    try:
        return check(name)
    except Exception as error:  # noqa: BLE001  # whatever a driver or a kernel raises is the result
        return Check(name, passed=False, detail=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")


def _compared(name: str, measured: Iterable[tuple[Measured, Measured]], tolerance: float) -> Check:
    """Compare each measurement with its reference; they are computed here, where an error is a result."""
    pairs = list(measured)
    worst = max(difference(one.numbers, other.numbers) for one, other in pairs)
    widest, plain = pairs[-1]
    slower = widest.seconds / plain.seconds
    other = "".join(f"; {name}: {used}" for name, used in widest.kernels.items() if used != plain.kernels.get(name))
    detail = f"differs by {worst:.1e} (limit {tolerance:.0e}); {slower:.2f} x the time of the reference{other}"
    return Check(name, worst <= tolerance, detail, 1000 * widest.seconds, widest.peak / 2**20)


def difference(numbers: Sequence[float], others: Sequence[float]) -> float:
    """Return the largest relative difference; infinite if anything is not finite."""
    left, right = np.array(numbers), np.array(others)
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return float("inf")
    return float((np.abs(left - right) / np.maximum(np.abs(right), 1e-6)).max())


@torch.inference_mode()
def _decodes(name: str, size: ModelSize, device: torch.device) -> Check:
    """Compare sentences generated with CUDA graphs with those generated without, while rows leave the batch."""
    torch.manual_seed(0)
    gpt: Any = random_gpt(size).to(device)
    gpt.mel_head.bias[gpt.stop_audio_token] = -1e4  # no sentence ends by itself
    decoder = Decoder(gpt, "fp32", str(device))
    decoder.codes *= 0.05  # or they drown what the cache adds
    prompt, config = torch.randn(1, 32, size.dim), SpeechConfig(top_k=2, temperature=1.0)
    text = TokenizedText("", "", "", "", (), tuple(range(5, 25)), ())
    sentences = [Sentence(text, seed=codes, max_codes=codes) for codes in LENGTHS]

    def generate(*, with_graphs: bool) -> list[Generation]:
        decoder.uses_graphs = with_graphs
        return decoder.generate(sentences, prompt, config)

    plain, _ = generate(with_graphs=False), generate(with_graphs=True)
    start, worst, agreed = time.perf_counter(), 0.0, 0
    replayed = generate(with_graphs=True)  # the graphs exist already
    seconds = (time.perf_counter() - start) / max(LENGTHS)
    for made, wanted in zip(replayed, plain, strict=True):
        same = sum(accumulate(map(eq, made.codes, wanted.codes), min))  # up to the first that differs, if any
        left, right = (torch.stack(each.latents[: same + 1]).cpu() for each in (made, wanted))
        worst, agreed = max(worst, float((left - right).abs().max() / right.abs().max())), agreed + same
    detail = f"differs by {worst:.1e} (limit 1e-03); {agreed} of {sum(LENGTHS)} codes in a row are the same"
    return Check(name, worst <= 1e-3 and agreed > sum(LENGTHS) / 2, detail, 1000 * seconds)


def _vocodes(name: str, device: torch.device) -> Check:
    """Compare the vocoder in the format that speech would use here with fp32, also where its numbers are too large."""
    torch.manual_seed(0)
    decoder = random_vocoder(64, 64)
    latents, voice = torch.randn(40, 64), torch.randn(1, 512, 1) / 22
    half = choose(str(device)).vocoder
    fast = Vocoder(decoder, half, str(device))
    wanted = Vocoder(decoder, "fp32", str(device)).sound(latents, voice)
    sound = fast.sound(latents, voice)
    worst = float(np.linalg.norm(sound - wanted) / np.linalg.norm(wanted))
    loud = np.isfinite(fast.sound(latents * 1e6, voice)).all()
    detail = f"{half} differs by {worst:.1e} (limit 1e-01); large numbers {'are finite' if loud else 'are not finite'}"
    return Check(name, passed=worst <= 0.1 and bool(loud), detail=detail)


def _resumes(
    name: str, size: ModelSize, device: torch.device, settings: Mapping[str, object], tolerance: float
) -> Check:
    """Repeat updates with dropout after weights, moments and generators were restored."""
    config = changed(TrainConfig.load(REFERENCE), {"dropout": 0.1, **settings})
    with probe(config, size, device) as probed:
        batches = [_batch(probed.tokens, config.batch_size)]
        optimizer, model = unwrap_optimizer(probed.step.optimizer), probed.step.model
        probed.run(batches)
        weights, moments, numbers = deepcopy((model.state_dict(), optimizer.state_dict(), capture_rng()))
        wanted = probed.run(batches).numbers
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        restore_rng(numbers)
        worst = difference(probed.run(batches).numbers, wanted)
    return Check(name, worst <= tolerance, f"differs by {worst:.1e} (limit {tolerance:.0e})")
