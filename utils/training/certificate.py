"""Test the user's own GPU: every kernel and switch against plain fp32, with speed and memory.

A switch passes if a few updates with it give the losses and gradients of the reference: eager attention, fp32, plain
AdamW. What fails is replaced in later runs (``safe_config``). The settings of a run are also tested together, as they
will be used. A CPU can be tested too, so that every line runs in CI.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from utils.config import TrainConfig
from utils.training.batches import BatchSpec, UpdatePlan
from utils.training.clips import ClipLengths, FeatureSource
from utils.training.data_loader import UpdateLoader
from utils.training.errors import NotEnoughMemoryError, SettingRefusedError
from utils.training.facts import SettingReplaced
from utils.training.first_batch import observed_kernels
from utils.training.memory import changed
from utils.training.model_size import ModelSize
from utils.training.packing import MEL_BANDS, Example, PackedBatch, SpecialTokens, pack
from utils.training.probe import Measured, Probe, probe
from utils.training.resume_state import capture_rng, restore_rng
from utils.training.speech_checks import decodes, speaks_in_its_format, speaks_in_threads, vocodes
from utils.training.step import unwrap_optimizer
from utils.xtts.certificate import DECODING, GPT, THREADS, VOCODING, Certificate, Check, failure, machine, read
from utils.xtts.device import choose_precision, is_out_of_memory

SWITCHES = Path(__file__).parent / "data" / "switches.toml"
REFERENCE = SWITCHES.with_name("reference.yaml")
SIZES = (ModelSize(2, 64, 4, text_rows=100), ModelSize(1, 1024, 16, text_rows=200))  # a small model and a wide layer
UPDATES = 3
SMALL = 1024**2  # times 12: weights of the layers of a model that a CPU tests at its full size too
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
WORKERS = Switch("batches of workers", {}, {"num_workers": 0})


@cache
def switches() -> tuple[Switch, ...]:
    """Return the switches of ``data/switches.toml``."""
    return tuple(Switch(name, **row) for name, row in tomllib.loads(SWITCHES.read_text(encoding="utf-8")).items())


def checks(device: torch.device, config: TrainConfig | None = None) -> dict[str, Callable[[str], Check]]:
    """Return every check that this device can run, by its name; that of a run is for these settings."""
    small, wide = SIZES[0], SIZES[-1]
    resumed = partial(_resumes, size=small, device=device)
    fast = {"enable_sdpa": True, "enable_mixed_precision": True, "enable_fused_optimizer": True, **REPEATED.on}
    return {
        **_switch_checks(device),
        WORKERS.name: partial(_reads, device=device),
        DECODING: partial(decodes, size=wide, device=device),
        GPT: partial(speaks_in_its_format, size=wide, device=device),
        THREADS: partial(speaks_in_threads, size=small, device=device),
        VOCODING: partial(vocodes, device=device),
        "resuming": partial(resumed, settings={}, tolerance=1e-3),
        REPEATED.name: partial(resumed, settings=fast, tolerance=REPEATED.tolerance),
        **_run_checks(device, config or TrainConfig()),
    }


# Long because the checks listed here share references, each of which is computed once.
def _switch_checks(device: torch.device) -> dict[str, Callable[[str], Check]]:
    """Compare the switches with their references, each of which is computed once."""
    references: dict[tuple[ModelSize, str], Measured] = {}
    small = SIZES[0]

    def reference(size: ModelSize, settings: Mapping[str, object]) -> Measured:
        key = size, str(settings)
        if key not in references:
            references[key] = updates(size, device, settings)
        return references[key]

    def switched(switch: Switch) -> Iterator[tuple[Measured, Measured]]:
        settings = {**switch.reference, **switch.on}
        return ((updates(size, device, settings), reference(size, switch.reference)) for size in SIZES)

    plain = ((reference(small, {}), updates(small, torch.device("cpu"), {})) for _ in [small])
    full = ((updates(small, device, {}, is_full=True), reference(small, {})) for _ in [small])
    return {
        "plain fp32 as on the CPU": partial(_compared, measured=plain, tolerance=1e-2),
        **{
            switch.name: partial(_compared, measured=switched(switch), tolerance=switch.tolerance)
            for switch in switches()
            if switch.can_run_on(device)
        },
        "recovery from a full memory": partial(_compared, measured=full, tolerance=1e-3),
    }


def _run_checks(device: torch.device, config: TrainConfig) -> dict[str, Callable[[str], Check]]:
    """Test the settings of a run on small models, and with all layers of its own where they are few, or on a GPU."""
    settings, size = _own_settings(config), ModelSize.from_config(config)
    found: dict[str, Callable[[str], Check]] = {}
    found[run_name(config)] = partial(_runs, compare=partial(_together, device=device, settings=settings))
    if device.type == "cuda" or size.layers * size.dim**2 <= SMALL:
        deep = partial(_deep, size=size, device=device, settings=settings)
        found[full_name(config)] = partial(_runs, compare=deep)
    return found


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
    again = {run_name(config), full_name(config)} if config else set()  # a run may have met kernels that they had not
    for name in [name for name in wanted if name not in found or name in again]:
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
    for switch in (*switches(), REPEATED, WORKERS):
        reason = failure(device, path, switch.name)
        now = config.model_dump()
        if reason and {**now, **switch.on} == now != {**now, **switch.off}:
            config = changed(config, switch.off)
            changes.append(SettingReplaced(switch.name, _listed(switch.off), reason))
    together = run_name(config)
    off = {name: False for name in FASTER if getattr(config, name)}
    if not changes and off and (reason := failure(device, path, together, full_name(config))):
        config = changed(config, off)
        changes.append(SettingReplaced(together, _listed(off), reason))
    return config, changes


def _listed(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def run_name(config: TrainConfig) -> str:
    """Return the name of the check of a run with these settings."""
    settings, plain = _own_settings(config), TrainConfig.load(REFERENCE)
    used = [f"{name}={value}" for name, value in settings.items() if value != getattr(plain, name)]
    return " ".join(["run with", ", ".join(used).replace("=True", "") or "plain settings"])


def full_name(config: TrainConfig) -> str:
    """Return the name of the check of a run with all layers of its model."""
    size = ModelSize.from_config(config)
    return f"{run_name(config)}, {size.layers} layers of {size.dim}"


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


def _runs(name: str, compare: Callable[[str], Check]) -> Check:
    """Test the settings of a run; what the test refuses or has no room for, the run refuses too."""
    try:
        return compare(name)
    except (SettingRefusedError, NotEnoughMemoryError) as error:
        return Check(name, passed=True, detail=f"not tested: {error}")
    except RuntimeError as error:
        if is_out_of_memory(error):
            return Check(name, passed=True, detail="not tested: the memory is full")
        raise


def _together(name: str, device: torch.device, settings: Mapping[str, object]) -> Check:
    """Compare the settings of a run with plain ones, and with dropout its gradient with how the loss rises along it."""
    check = _as_plain(name, SIZES, device, settings)
    with probe(changed(TrainConfig.load(REFERENCE), settings), SIZES[0], device) as probed:
        error = abs(_rise(probed) / RISE - 1)
    detail = f"{check.detail}; with dropout its gradient by {error:.1e} (limit {MAX_ERROR:.0e})"
    kernels = observed_kernels(probed.kernels)
    return replace(check, passed=check.passed and error <= MAX_ERROR, detail=detail, kernels=check.kernels + kernels)


def _deep(name: str, size: ModelSize, device: torch.device, settings: Mapping[str, object]) -> Check:
    """Compare the settings of a run with plain ones on a model with all its layers, at a rate that suits its size."""
    return _as_plain(name, [size], device, {**settings, "learning_rate": 1e-4})


def _as_plain(name: str, sizes: Sequence[ModelSize], device: torch.device, settings: Mapping[str, object]) -> Check:
    """Compare the settings of a run with plain ones, without dropout."""
    settings = {**settings, "dropout": 0, "lora_dropout": 0}
    config, plain = changed(TrainConfig.load(REFERENCE), settings), _plain()
    if config.optimizer == "adafactor":  # AdamW takes other steps
        del plain["optimizer"]
    tolerance = 0.02 if device.type == "cuda" and config.enable_tf32 else 1e-3
    if choose_precision(device, wanted=config.enable_mixed_precision).dtype != "no":
        tolerance = 0.1
    return _compared(
        name, ((updates(size, device, settings), updates(size, device, settings | plain)) for size in sizes), tolerance
    )


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
    gradients = [(weight, weight.grad.clone()) for weight in layers if weight.grad is not None]
    length = RISE / float(get_total_norm([gradient for _, gradient in gradients])) ** 2
    ends = []
    with torch.no_grad():
        for share in (0.5, -1.0):
            for weight, gradient in gradients:
                weight.add_(gradient, alpha=share * length)
            ends.append(float(loss()))
    return ends[0] - ends[1]


def _batch(tokens: SpecialTokens, clips: int) -> PackedBatch:
    random = np.random.default_rng(0)
    return pack([_example(number, random) for number in range(clips)], tokens)


def _example(number: int, random: np.random.Generator) -> Example:
    return Example(
        random.integers(1, 90, 12 + 9 * number).astype(np.int32),
        random.integers(0, 1000, 40 + 15 * number).astype(np.int16),
        random.standard_normal((100, MEL_BANDS)).astype(np.float16),
    )


class _RandomClips(FeatureSource):
    """Twelve clips that are the same each time they are read, also in another process."""

    def __init__(self) -> None:
        examples = [_example(number, np.random.default_rng(number)) for number in range(12)]
        sizes = [(1024 * len(each.codes), len(each.codes), len(each.mel), len(each.ids)) for each in examples]
        self.lengths = ClipLengths(*np.array(sizes).T)

    def read(self, clip: int, reference: int, start: int, frames: int) -> Example:
        mel = _example(reference, np.random.default_rng(reference)).mel
        return _example(clip, np.random.default_rng(clip))._replace(mel=mel[start : start + frames])


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
    kernels = tuple(sorted({kernel for one, _ in pairs for kernel in observed_kernels(one.kernels)}))
    return Check(name, worst <= tolerance, detail, 1000 * widest.seconds, widest.peak / 2**20, kernels)


def difference(numbers: Sequence[float], others: Sequence[float]) -> float:
    """Return the largest relative difference; infinite if anything is not finite."""
    left, right = np.array(numbers), np.array(others)
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return float("inf")
    return float((np.abs(left - right) / np.maximum(np.abs(right), 1e-6)).max())


def _copied_batches(device: torch.device, workers: int) -> list[PackedBatch]:
    source, tokens = _RandomClips(), SpecialTokens(99, 0, 1024, 1025)
    plan, spec = UpdatePlan(source.lengths, 4), BatchSpec(4)
    busy = torch.ones((8192, 8192) if device.type == "cuda" else (8, 8), device=device)
    loader = UpdateLoader(source, plan, tokens, spec, workers=workers, pin=workers > 0 and device.type == "cuda")
    copied = []
    for update in loader.run(0, 2 * len(plan)):
        busy @ busy  # so that copies which nobody waits for come late
        copied += [batch.to(device, non_blocking=workers > 0) for batch in update.batches]
    return copied


def _reads(name: str, device: torch.device) -> Check:
    """Compare batches that worker processes read, and that are copied without waiting, with plain copies."""
    copied, plain = (_copied_batches(device, workers) for workers in (2, 0))
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    pairs = zip(copied, plain, strict=True)
    wrong = sum(
        not (torch.equal(one.mel, other.mel) and torch.equal(one.numbers, other.numbers)) for one, other in pairs
    )
    return Check(name, wrong == 0, f"{wrong} of {len(plain)} batches differ")


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
