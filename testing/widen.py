"""Store a narrow vocoder in the shapes that coqui fixes.

``Xtts`` builds its ``HifiDecoder`` with fixed widths, 23 million parameters. A network of a quarter of that width is
the same function as one of full width whose other channels are silent. Weights of silent inputs may have any value, so
the rows of a stored weight overlap and the file is hardly larger than the narrow network. Plain coqui loads such a file
as any other; ``utils.xtts.narrow_vocoder`` finds the narrow network in it again.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from testing.untrained import new_vocoder

LENGTH, DIRECTION = ".parametrizations.weight.original0", ".parametrizations.weight.original1"
FILLER = 0.01  # for values that do not matter; a row of zeros would have no direction


def widen(narrow: Mapping[str, Tensor], dim: int) -> dict[str, Tensor]:
    """Return weights of a narrow generator, for a GPT of ``dim`` channels, in coqui's shapes and half precision."""
    small = {name: weight.detach().float().cpu() for name, weight in narrow.items()}
    shapes = {name: weight.shape for name, weight in new_vocoder(dim).state_dict().items()}
    wide: dict[str, Tensor] = {}
    for name, weight in small.items():
        if name.endswith(LENGTH):
            wide |= _widen_normalized(name.removesuffix(LENGTH), small, shapes)
        elif not name.endswith(DIRECTION):
            wide[name] = _widen_plain(weight, shapes[name])
    return {name: wide[name] for name in small}


def _widen_normalized(name: str, small: Mapping[str, Tensor], shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """Widen a weight with weight norm: silent rows get length 0, so only the columns of the others matter."""
    length, direction = small[name + LENGTH], small[name + DIRECTION]
    shape = shapes[name + DIRECTION]
    weight = (direction * (length / direction.flatten(1).norm(dim=1)[:, None, None])).half()
    view = _overlapping_columns(weight, shape) if ".ups." in f".{name}" else _overlapping_rows(weight, shape)
    lengths = torch.zeros(shape[0], 1, 1)
    lengths[: len(weight)] = view[: len(weight)].float().flatten(1).norm(dim=1)[:, None, None]
    return {name + LENGTH: lengths, name + DIRECTION: view}


def _overlapping_rows(weight: Tensor, shape: torch.Size) -> Tensor:
    """View a weight whose rows are outputs: each row continues into the next ones, for silent inputs."""
    row, after = weight[0].numel(), shape[1:].numel()
    run = torch.full(((shape[0] - 1) * row + after,), FILLER, dtype=weight.dtype)
    run[: weight.numel()] = weight.flatten()
    inner = [shape[2:].numel(), *(shape[axis + 1 :].numel() for axis in range(2, len(shape)))]
    return run.as_strided(shape, [row, *inner])


def _overlapping_columns(weight: Tensor, shape: torch.Size) -> Tensor:
    """View a transposed weight, whose rows are inputs: outputs beyond the narrow ones must be zero."""
    inputs, _, taps = weight.shape
    run = torch.zeros((shape[1] - 1) * inputs * taps + shape[0] * taps, dtype=weight.dtype)
    run[: weight.numel()] = weight.transpose(0, 1).flatten()
    run[shape[1] * inputs * taps :] = FILLER  # only rows of silent inputs reach this far
    return run.as_strided(shape, [taps, inputs * taps, 1])


def _widen_plain(weight: Tensor, shape: torch.Size) -> Tensor:
    """Widen a weight without weight norm."""
    filled = torch.zeros(shape, dtype=torch.float16 if weight.ndim > 1 else torch.float32)
    filled[tuple(slice(size) for size in weight.shape)] = weight.to(filled.dtype)
    return filled
