"""Test the user's own GPU: every kernel and switch against plain fp32, with speed and memory.

A switch passes if a few updates with it give the losses and gradients of the reference: eager attention, fp32, plain
AdamW. What fails is replaced in later runs (``safe_config``). The settings of a run are also tested together, as they
will be used. A CPU can be tested too, so that every line runs in CI.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import torch

from utils.config import TrainConfig
from utils.training.facts import SettingReplaced
from utils.training.memory import changed
from utils.training.model_size import ModelSize
from utils.training.probe import Measured
from utils.training.speech_checks import decodes, speaks_in_its_format, speaks_in_threads, vocodes
from utils.training.update_checks import (
    REFERENCE,
    Compare,
    as_plain,
    compared,
    reads,
    resumes,
    together,
    unless_refused,
    updates,
)
from utils.xtts.certificate import DECODING, GPT, THREADS, VOCODING, Certificate, Check, failure, machine, read, results
from utils.xtts.device import UNTESTED

SWITCHES = Path(__file__).parent / "data" / "switches.toml"
SIZES = (ModelSize(2, 64, 4, text_rows=100), ModelSize(1, 1024, 16, text_rows=200))  # a small model and a wide layer
PLAIN = "plain fp32 as on the CPU"
SMALL = 1024**2  # times 12: weights of the layers of a model that a CPU tests at its full size too
OWN = (  # settings of a run that change what is computed, besides those of ``switches``
    "checkpoint_every dropout freeze_conditioning freeze_first_n_gpt_layers label_smoothing lora_alpha lora_dropout "
    "lora_rank lora_targets text_loss_weight use_dora"
).split()
FASTER = (  # switches that compute otherwise; those that save memory stay on where the settings of a run fail together
    "enable_sdpa enable_mixed_precision enable_tf32 enable_fused_gelu enable_fused_optimizer use_compile "
    "enable_byte_dropout"
).split()


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


def checks(device: torch.device, config: TrainConfig | None = None) -> dict[str, Compare]:
    """Return every check that this device can run, by its name; that of a run is for these settings."""
    small, wide = SIZES[0], SIZES[-1]
    resumed = partial(resumes, size=small, device=device)
    fast = {"enable_sdpa": True, "enable_mixed_precision": True, "enable_fused_optimizer": True, **REPEATED.on}
    return {
        **_switch_checks(device),
        WORKERS.name: partial(reads, device=device),
        DECODING: partial(decodes, size=wide, device=device),
        GPT: partial(speaks_in_its_format, size=wide, device=device),
        THREADS: partial(speaks_in_threads, size=small, device=device),
        VOCODING: partial(vocodes, device=device),
        "resuming": partial(resumed, settings={}, tolerance=1e-3),
        REPEATED.name: partial(resumed, settings=fast, tolerance=REPEATED.tolerance),
        **_run_checks(device, config or TrainConfig()),
    }


# Long because the checks listed here share references, each of which is computed once.
def _switch_checks(device: torch.device) -> dict[str, Compare]:
    """Compare the switches with their references, each of which is computed once."""
    references: dict[tuple[ModelSize, str], Measured] = {}

    def reference(size: ModelSize, settings: Mapping[str, object]) -> Measured:
        key = size, str(settings)
        if key not in references:
            references[key] = updates(size, device, settings)
        return references[key]

    def switched(switch: Switch) -> Iterator[tuple[Measured, Measured]]:
        settings = {**switch.reference, **switch.on}
        return ((updates(size, device, settings), reference(size, switch.reference)) for size in SIZES)

    plain = ((reference(size, {}), updates(size, torch.device("cpu"), {})) for size in SIZES[:1])
    full = ((updates(size, device, {}, is_full=True), reference(size, {})) for size in SIZES[:1])
    return {
        PLAIN: partial(compared, measured=plain, tolerance=1e-2),
        **{
            switch.name: partial(compared, measured=switched(switch), tolerance=switch.tolerance)
            for switch in switches()
            if switch.can_run_on(device)
        },
        "recovery from a full memory": partial(compared, measured=full, tolerance=1e-3),
    }


def _run_checks(device: torch.device, config: TrainConfig) -> dict[str, Compare]:
    """Test the settings of a run on small models, and with all layers of its own where they are few, or on a GPU."""
    settings, size = _own_settings(config), ModelSize.from_config(config)
    tested = {run_name(config): partial(together, sizes=SIZES, device=device, settings=settings, plain=_plain())}
    if device.type == "cuda" or size.layers * size.dim**2 <= SMALL:
        gentle = {**settings, "learning_rate": 1e-4}  # at a rate that suits its size
        tested[full_name(config)] = partial(as_plain, sizes=[size], device=device, settings=gentle, plain=_plain())
    return {name: partial(unless_refused, compare=check) for name, check in tested.items()}


def is_tested(device: torch.device | str, path: Path, config: TrainConfig) -> bool:
    """Return whether every check of these settings was run on this device, also those that an older version lacked."""
    return checks(torch.device(device), config).keys() <= results(device, path).keys()


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
    certificate = earlier or Certificate(machine(device), "", ())
    found = {check.name: check for check in certificate.checks}
    again = {run_name(config), full_name(config)} if config else set()  # a run may have met kernels that they had not
    for name in [name for name in wanted if name not in found or name in again]:
        found[name] = _checked(name, wanted[name])
        today = datetime.now(UTC).date().isoformat()
        is_complete = wanted.keys() <= found.keys()
        certificate = replace(certificate, date=today, checks=tuple(found.values()), is_complete=is_complete)
        certificate.write(path)
        report(found[name])
    return certificate


# Long because what replaces a failure depends on what failed: plain training, a switch, or several of them together.
def safe_config(
    config: TrainConfig, device: torch.device | str, path: Path
) -> tuple[TrainConfig, list[SettingReplaced]]:
    """Replace the settings that failed on this device, and say which and why.

    A kind of GPU on which nothing has run is only used once plain training was found to work there.
    """
    if config.num_processes == 1 and (reason := _doubt(device, path)):
        config, change = _replaced(config, PLAIN, {"device": "cpu"}, reason)
        return config, [change]
    changes = []
    for switch in (*switches(), REPEATED, WORKERS):
        reason = failure(device, path, switch.name)
        now = config.model_dump()
        if reason and {**now, **switch.on} == now != {**now, **switch.off}:
            config, change = _replaced(config, switch.name, switch.off, reason)
            changes.append(change)
    together = run_name(config)
    off = {name: False for name in FASTER if getattr(config, name)}
    if not changes and off and (reason := failure(device, path, together, full_name(config))):
        config, change = _replaced(config, together, off, reason)
        changes.append(change)
    return config, changes


def _doubt(device: torch.device | str, path: Path) -> str:
    """Return why plain training may not work on a GPU of Apple or Intel; empty if it was found to work."""
    if torch.device(device).type not in UNTESTED:
        return ""
    plain = results(device, path).get(PLAIN)
    if plain is None:
        return "the test did not end"
    return "" if plain.passed else plain.detail


def _replaced(
    config: TrainConfig, check: str, used: Mapping[str, object], reason: str
) -> tuple[TrainConfig, SettingReplaced]:
    listed = ", ".join(f"{name}={value}" for name, value in used.items())
    return changed(config, used), SettingReplaced(check, listed, reason)


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


def _checked(name: str, check: Compare) -> Check:
    try:
        return check(name)
    except Exception as error:  # noqa: BLE001  # whatever a driver or a kernel raises is the result
        return Check(name, passed=False, detail=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
