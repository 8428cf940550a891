"""The weights in a model.pth: read without running code from the file, named as coqui's modules name them, and checked.

A published file, one that coqui's Trainer wrote and one of ours hold the same weights under different names and
wrappings. Loading with ``strict=False`` would take none of them and say nothing; here every key is accounted for.
"""

import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from utils.xtts.files import ModelFileError

RELOAD_HINT = "Fetch the model again, or choose another file or folder."
TRAINER = "xtts."  # coqui's Trainer saves the model inside its own module
NOT_OURS = (
    "dvae.",
    "torch_mel_spectrogram_",
    "gpt.gpt_inference.",
    "gpt.gpt.wte.",
    "ema.",
)  # beside or twice in a file
ENOUGH = 0.95  # share of the parameters that a foreign file has to provide
SHOWN = 3  # keys of each kind in a message


@dataclass(frozen=True)
class StateDictMatch:
    """How the weights of a file fit a module.

    Attributes:
        matched: Parameters of the module that the file provides.
        wanted: Parameters of the module.
        missing: Names that the file lacks.
        unexpected: Names that the module lacks.
        misshapen: Names whose shapes differ, with both shapes.
    """

    matched: int
    wanted: int
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Return the share of the parameters that the file provides."""
        return self.matched / max(self.wanted, 1)

    @property
    def complete(self) -> bool:
        """Return whether every name and shape is the same."""
        return not (self.missing or self.unexpected or self.misshapen)

    def __str__(self) -> str:
        kinds = {"missing": self.missing, "wrong shape": self.misshapen, "unknown": self.unexpected}
        parts = [f"{len(names)} {kind} ({_few(names)})" for kind, names in kinds.items() if names]
        return "; ".join([f"{self.share:.1%} of {self.wanted:,} parameters match", *parts])


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Read the weights of a whole model, on the CPU and mapped into memory rather than copied."""
    content = _load(path)
    weights = content.get("model", content) if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(weight, Tensor) for weight in weights.values()):
        raise ModelFileError(f"{path} holds no weights of a model.", hint=RELOAD_HINT)
    renamed = {str(name).removeprefix(TRAINER): weight for name, weight in weights.items()}
    return {name: weight for name, weight in renamed.items() if not name.startswith(NOT_OURS)}


def strip_prefix(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the weights of one module of the model, without its prefix."""
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}


def compare(module: nn.Module, weights: Mapping[str, Tensor]) -> StateDictMatch:
    """Compare names and shapes, and count the parameters."""
    wanted = module.state_dict()
    shared = [name for name in wanted if name in weights]
    fitting = [name for name in shared if wanted[name].shape == weights[name].shape]
    return StateDictMatch(
        matched=sum(wanted[name].numel() for name in fitting),
        wanted=sum(weight.numel() for weight in wanted.values()),
        missing=tuple(name for name in wanted if name not in weights),
        unexpected=tuple(name for name in weights if name not in wanted),
        misshapen=tuple(
            f"{name} {list(weights[name].shape)} instead of {list(wanted[name].shape)}"
            for name in shared
            if wanted[name].shape != weights[name].shape
        ),
    )


def require_match(match: StateDictMatch, source: str, *, enough: float = ENOUGH) -> StateDictMatch:
    """Return a match that is good enough to go on with, or refuse it.

    A wrong shape is refused whatever its share: text rows that are off by one token are a vocabulary of another model.

    Args:
        match: How the weights fit.
        source: What to call them in a message.
        enough: Share of the parameters that has to be there.
    """
    if match.share < enough or match.misshapen:
        raise ModelFileError(
            f"{source} does not fit this model: {match}.",
            hint="Choose the config.json and vocab.json that were saved with these weights, or another model.",
        )
    return match


def load_into(module: nn.Module, weights: Mapping[str, Tensor], source: str) -> StateDictMatch:
    """Copy weights into a module; what the file lacks stays as it is, and the report says so."""
    match = require_match(compare(module, weights), source)
    module.load_state_dict(
        {name: weight for name, weight in weights.items() if name not in match.unexpected}, strict=False
    )
    return match


def _load(path: Path) -> object:
    """Unpickle a file that may hold tensors, plain values and coqui's config, and nothing that runs."""
    try:
        mapped = zipfile.is_zipfile(path)  # the older format of torch cannot be mapped
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except pickle.UnpicklingError:  # the published XTTS v2 files carry an XttsConfig object
            from TTS.tts.models.xtts import _legacy_safe_globals

            with _legacy_safe_globals():
                return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} is missing.", hint=RELOAD_HINT) from error
    except Exception as error:  # torch raises half a dozen kinds for a damaged file
        raise ModelFileError(f"{path} cannot be read: {_reason(error)}.", hint=RELOAD_HINT) from error


def _reason(error: Exception) -> str:
    if isinstance(error, pickle.UnpicklingError):
        return "it is damaged, or holds something that would have to be run"
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160].rstrip('.')}"


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
