"""Filling coqui's GPT a few layers at a time, so that loading takes hardly more memory than the model itself."""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import torch
from torch import Tensor, nn

from utils.xtts.model import GPT_PREFIX
from utils.xtts.state_dict import read_state_dict, strip_prefix

LAYER = re.compile(r"gpt\.h\.(\d+)\.")
TOGETHER = 4  # layers, 200 MB of the published model; each mapping costs a tenth of a second
Take = Callable[[Sequence[str]], Mapping[str, Tensor]]


def fill(gpt: nn.Module, take: Take, *, as_stored: bool) -> None:
    """Give a GPT without memory its weights.

    Args:
        gpt: As ``outline`` builds it.
        take: Gives the weights of these names, which it need not keep.
        as_stored: Leave the layers of the GPT-2 where and as they are stored, for somebody who takes them over one by
            one; else all weights are copied, in full precision.
    """
    for in_layer, names in _groups(gpt):
        weights = take(names)
        if not (in_layer and as_stored):
            weights = {name: weight.to(torch.float32, copy=True) for name, weight in weights.items()}
        gpt.load_state_dict(weights, strict=False, assign=True)


def from_file(path: Path) -> Take:
    """Take weights from a model.pth.

    It is mapped anew for each group: what was read of a mapping counts as memory until all of it is let go of.
    """
    if zipfile.is_zipfile(path):
        return lambda names: _of(strip_prefix(read_state_dict(path), GPT_PREFIX), names)
    whole = strip_prefix(read_state_dict(path), GPT_PREFIX)  # the older format of torch cannot be mapped
    return lambda names: {name: whole.pop(name) for name in names}


def from_state(state: dict[str, Tensor]) -> Take:
    """Take weights from a dict, which is empty in the end."""
    return lambda names: {name: state.pop(name) for name in names}


def _groups(gpt: nn.Module) -> Iterator[tuple[bool, list[str]]]:
    """Yield the names of a few layers at a time, and those of what lies before and behind them."""

    def place(name: str) -> int:
        return int(found[1]) // TOGETHER if (found := LAYER.match(name)) else -1

    for number, names in groupby(gpt.state_dict(), key=place):
        yield number >= 0, list(names)


def _of(weights: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    return {name: weights[name] for name in names}
