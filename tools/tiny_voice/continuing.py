"""Continue from an earlier voice: its folder is all that a new training needs, so a committed voice is never lost."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tools.tiny_voice.recipe import Recipe
from utils.xtts.files import DVAE_FILE
from utils.xtts.model import load_vocoder
from utils.xtts.narrow_vocoder import without_silent_channels

Codes = npt.NDArray[np.int16]

SMOOTHING = 0.05  # pseudo-count of each pair of an old code and a new one
CODE_ROWS = ("mel_embedding.weight", "mel_head.weight")


def continued_recipe(recipe: Recipe, base: Path) -> Recipe:
    """Return the recipe with the sizes of the DVAE in an earlier voice; the codebook may have another size."""
    weights = torch.load(base / DVAE_FILE, map_location="cpu", weights_only=True)
    hidden, width = len(weights["encoder.0.0.weight"]), len(weights["codebook.embed"])
    return dataclasses.replace(recipe, dvae=dataclasses.replace(recipe.dvae, hidden=hidden, width=width))


def fingerprint(base: Path) -> str:
    """Return a hash of the weights in a folder."""
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted(base.glob("*.pth")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def load_fitting(module: nn.Module, weights: Mapping[str, Tensor]) -> list[str]:
    """Load the weights that have the shapes of a module and return the names of those that it keeps as they are."""
    own = module.state_dict()
    fitting = {name: weight for name, weight in weights.items() if name in own and weight.shape == own[name].shape}
    module.load_state_dict({**own, **{name: weight.to(own[name].dtype) for name, weight in fitting.items()}})
    return sorted(own.keys() - fitting.keys())


def load_generator(base: Path, generator: nn.Module) -> None:
    """Load the generator of an earlier voice into one of its narrow size."""
    decoder, _ = load_vocoder(base)
    generator.load_state_dict(without_silent_channels(decoder).state_dict())


def load_speaker_encoder(base: Path, encoder: Any) -> None:  # noqa: ANN401  # coqui's ResNetSpeakerEncoder
    """Load the speaker encoder of an earlier voice, whose channels are the first of the stored ones."""
    decoder, _ = load_vocoder(base)
    wide = decoder.get_submodule("speaker_encoder").state_dict()
    pooled = "fc.weight"  # its inputs are all means and then all deviations
    wide[pooled] = torch.cat([half[:, : encoder.fc.in_features // 2] for half in wide[pooled].chunk(2, dim=1)], dim=1)
    own = encoder.state_dict()
    encoder.load_state_dict({name: wide[name][tuple(map(slice, weight.shape))] for name, weight in own.items()})


def transfer_codes(weights: Mapping[str, Tensor], pairs: Sequence[tuple[Codes, Codes]], size: int) -> dict[str, Tensor]:
    """Give the codes of a new codebook the meaning that a GPT knows from an old one.

    Args:
        weights: Of the GPT with the old codes.
        pairs: The same clips in old and new codes.
        size: Number of new codes.
    """
    rows = len(weights[CODE_ROWS[0]]) - 2  # the last two start and stop
    counts = torch.full((size, rows), SMOOTHING / rows)
    for old, new in pairs:
        counts += torch.bincount(torch.from_numpy(new.astype(np.int64) * rows + old), minlength=size * rows).view(
            size, rows
        )
    old_given_new = counts / counts.sum(1, keepdim=True)
    new_given_old = counts / counts.sum(0)
    changed = dict(weights)
    for name in CODE_ROWS:
        old_rows = weights[name].float()
        changed[name] = torch.cat([old_given_new @ old_rows[:-2], old_rows[-2:]])
    bias = weights["mel_head.bias"].float()
    shifted = (old_given_new * (bias[:-2] + new_given_old.clamp(min=1e-6).log())).sum(1)
    changed["mel_head.bias"] = torch.cat([shifted, bias[-2:]])
    return changed
