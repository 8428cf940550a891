"""Exponential moving average (EMA) of the weights, which often sounds better than the last weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from utils.training.errors import SettingRefusedError
from utils.xtts.device import to_host

UPDATES = "updates"  # name of the count in the state


class Ema:
    """Keeps a float32 average of the trained weights.

    The decay rises with the updates, min(decay, (1 + n) / (10 + n)): with a fixed 0.999, the average would still be
    74 % base model after 300 updates. Only the arithmetic of ``torch.optim.swa_utils`` is used: its AveragedModel
    copies the whole module, including frozen weights, hooks and compiled layers. Create it for the model without
    wrappers, after freezing and adding adapters. On the device "cpu" the average is in RAM.
    """

    def __init__(self, model: nn.Module, decay: float, device: Literal["auto", "cpu"] = "auto") -> None:
        self.decay = decay
        self.updates = 0
        self.weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        if not self.weights:
            raise SettingRefusedError("enable_ema", "all_frozen")
        for weight in self.weights.values():
            if weight.dtype != torch.float32:
                raise SettingRefusedError("enable_ema", "not_float32", str(weight.dtype))
        self.shadow = {
            name: weight.detach().to("cpu" if device == "cpu" else weight.device, copy=True)
            for name, weight in self.weights.items()
        }

    @torch.no_grad()
    def update(self) -> None:
        mix = get_ema_multi_avg_fn(min(self.decay, (1 + self.updates) / (10 + self.updates)))  # type: ignore[no-untyped-call]
        pairs = [(part, self.weights[name].detach()) for name, part in self.shadow.items()]
        if pairs[0][0].device == pairs[0][1].device:
            mix(*map(list, zip(*pairs, strict=True)), self.updates)
        else:
            copies = (to_host(weight) for _, weight in pairs)
            coming = next(copies)
            for part, _ in pairs:  # one at a time, with the next on its way: no second copy of the model
                copy = coming
                coming = next(copies, coming)
                mix([part], [copy.wait()], self.updates)
        self.updates += 1

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Swap the averaged weights into the model; afterwards it has its own weights again, bit for bit."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def state_dict(self) -> dict[str, Tensor]:
        """The averages by name and the number of updates, without copying."""
        return {UPDATES: torch.tensor(self.updates), **self.shadow}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, part in self.shadow.items():
            part.copy_(state[name])
        self.updates = int(state[UPDATES])

    def restart(self, updates: int) -> None:
        """Begin a new average with the weights of the model, as if it had seen so many updates."""
        weights = {name: weight.detach() for name, weight in self.weights.items()}
        self.load_state_dict({UPDATES: torch.tensor(updates), **weights})

    @torch.no_grad()
    def _exchange(self) -> None:
        """Exchange values, not tensors: compiled graphs and optimizers hold references to the weights."""
        for name, weight in self.weights.items():
            current = weight.detach().to(self.shadow[name].device, copy=True)
            weight.copy_(self.shadow[name])
            self.shadow[name].copy_(current)
