"""Read the weights of a model.pth safely, under the names of coqui's modules, and compare them with a module.

Published files, files by coqui's Trainer and our own hold the same weights under different names. Loading them with
``strict=False`` would silently load nothing, so every key is compared.
"""

import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from utils.xtts.files import ModelFileError

RELOAD_HINT = "Download the model again, or choose another file or folder."
TRAINER = "xtts."  # prefix in files by coqui's Trainer
IGNORED = (
    "dvae.",
    "torch_mel_spectrogram_",
    "gpt.gpt_inference.",
    "gpt.gpt.wte.",
    "ema.",
)  # other modules, or second names of the same weights
MIN_SHARE = 0.95  # of the parameters
MAX_SHOWN = 3  # keys of each kind in a message


@dataclass(frozen=True)
class StateDictMatch:
    """How the weights of a file fit a module.

    Attributes:
        matched: Parameters that the file provides.
        wanted: Parameters of the module.
        missing: Names missing from the file.
        unexpected: Names not in the module.
        misshapen: Names with different shapes, and both shapes.
    """

    matched: int
    wanted: int
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Return the share of parameters that the file provides."""
        return self.matched / max(self.wanted, 1)

    @property
    def complete(self) -> bool:
        """Return whether all names and shapes match."""
        return not (self.missing or self.unexpected or self.misshapen)

    def __str__(self) -> str:
        kinds = {"missing": self.missing, "wrong shape": self.misshapen, "unknown": self.unexpected}
        parts = [f"{len(names)} {kind} ({_shorten(names)})" for kind, names in kinds.items() if names]
        return "; ".join([f"{self.share:.1%} of {self.wanted:,} parameters match", *parts])


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Read the weights of a model, memory-mapped on the CPU."""
    content = _load(path)
    weights = content.get("model", content) if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(weight, Tensor) for weight in weights.values()):
        raise ModelFileError(f"{path} does not contain model weights.", hint=RELOAD_HINT)
    renamed = {str(name).removeprefix(TRAINER): weight for name, weight in weights.items()}
    return {name: weight for name, weight in renamed.items() if not name.startswith(IGNORED)}


def strip_prefix(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the weights of one submodule, without its prefix."""
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}


def compare(module: nn.Module, weights: Mapping[str, Tensor]) -> StateDictMatch:
    """Compare the names and shapes of weights with a module."""
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


def require_match(match: StateDictMatch, source: str, *, min_share: float = MIN_SHARE) -> StateDictMatch:
    """Return the match, or raise when too many parameters are missing or any shape differs.

    Args:
        match: Result of ``compare``.
        source: Name of the weights for the message.
        min_share: Minimum share of parameters.
    """
    if match.share < min_share or match.misshapen:
        raise ModelFileError(
            f"{source} does not fit this model: {match}.",
            hint="Use the config.json and vocab.json that were saved with these weights, or another model.",
        )
    return match


def load_into(module: nn.Module, weights: Mapping[str, Tensor], source: str) -> StateDictMatch:
    """Load weights into a module; missing ones keep their values."""
    match = require_match(compare(module, weights), source)
    module.load_state_dict(
        {name: weight for name, weight in weights.items() if name not in match.unexpected}, strict=False
    )
    return match


def _load(path: Path) -> object:
    """Unpickle a file with tensors, plain values and coqui's config, without running code."""
    try:
        mapped = zipfile.is_zipfile(path)  # torch's older format cannot be mapped
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except pickle.UnpicklingError:  # published XTTS v2 files contain an XttsConfig
            from TTS.tts.models.xtts import _legacy_safe_globals

            with _legacy_safe_globals():
                return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} is missing.", hint=RELOAD_HINT) from error
    except Exception as error:  # torch raises many kinds of errors for damaged files
        raise ModelFileError(f"{path} cannot be read: {_reason(error)}.", hint=RELOAD_HINT) from error


def _reason(error: Exception) -> str:
    if isinstance(error, pickle.UnpicklingError):
        return "it is damaged or contains code"
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160].rstrip('.')}"


def _shorten(names: tuple[str, ...]) -> str:
    return ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")
