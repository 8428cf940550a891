"""A running average of the weights, which often speaks better than the last weights do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from utils.core.errors import ConfigError

UPDATES = "updates"  # what the count is called beside the weights


class Ema:
    """A float32 average of the weights that are trained.

    The share that is kept rises with the updates, min(decay, (1 + n) / (10 + n)): a fixed 0.999 would still be 74 %
    base model after 300 updates. ``torch.optim.swa_utils.AveragedModel`` is not used, only its arithmetic: it copies
    the whole module, frozen weights, hooks and compiled layers included, and evaluates through that copy.

    Args:
        model: The model without wrappers; make this after freezing and adapters, before the text rows train alone.
        decay: Share of the average kept at each update, in the end.
        device: "cpu" keeps it in RAM; "auto" beside the weights.
        ramp: Let the share rise to the decay.
    """

    def __init__(
        self, model: nn.Module, decay: float, device: Literal["auto", "cpu"] = "auto", *, ramp: bool = True
    ) -> None:
        self.model, self.decay, self.ramp, self.updates = model, decay, ramp, 0
        self.weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        if not self.weights:
            raise ConfigError("enable_ema: no weight is trained.", hint="Freeze less, or switch enable_ema off.")
        for name, weight in self.weights.items():
            if weight.dtype != torch.float32:
                raise ConfigError(
                    f"enable_ema: {name} is {weight.dtype}; an average would stand still.",
                    hint="Keep the weights in float32; autocast does the rest.",
                )
        self.shadow = {
            name: weight.detach().to("cpu" if device == "cpu" else weight.device, copy=True)
            for name, weight in self.weights.items()
        }
        self._swapped = False

    def kept_share(self) -> float:
        """Return which share of the average the next update keeps."""
        return min(self.decay, (1 + self.updates) / (10 + self.updates)) if self.ramp else self.decay

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights of this update into the average."""
        self._refuse_while_swapped()
        mix = get_ema_multi_avg_fn(self.kept_share())  # type: ignore[no-untyped-call]
        pairs = [
            (part, weight.detach()) for part, weight in zip(self.shadow.values(), self.weights.values(), strict=True)
        ]
        beside = [pair for pair in pairs if pair[0].device == pair[1].device]
        if beside:
            mix([part for part, _ in beside], [weight for _, weight in beside], self.updates)
        for part, weight in (pair for pair in pairs if pair[0].device != pair[1].device):
            mix([part], [weight.to(part.device)], self.updates)  # one at a time: no second copy of the model
        self.updates += 1

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Give the model the averaged weights for a while; afterwards it has its own, bit for bit."""
        self._refuse_while_swapped()
        self._exchange()
        self._swapped = True
        try:
            yield
        finally:
            self._swapped = False
            self._exchange()

    def state_dict(self) -> dict[str, Tensor]:
        """Return the averages by name, and their count; nothing is copied."""
        self._refuse_while_swapped()
        return {UPDATES: torch.tensor(self.updates), **self.shadow}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from a state that fits: the same names and shapes."""
        self._refuse_while_swapped()
        fits = {name: part.shape for name, part in state.items() if name != UPDATES}
        wanted = {name: part.shape for name, part in self.shadow.items()}
        if fits != wanted or UPDATES not in state:
            odd = sorted(name for name in fits.keys() | wanted.keys() if fits.get(name) != wanted.get(name))
            raise ConfigError(
                f"The saved EMA does not fit this model: {', '.join(odd[:3]) or UPDATES}.",
                hint="Resume with the settings that the run was started with.",
            )
        for name, part in self.shadow.items():
            part.copy_(state[name])
        self.updates = int(state[UPDATES])

    @torch.no_grad()
    def _exchange(self) -> None:
        """Exchange values, not memory: compiled graphs and optimisers know the weights by their place."""
        for name, weight in self.weights.items():
            kept = weight.detach().to(self.shadow[name].device, copy=True)
            weight.copy_(self.shadow[name])
            self.shadow[name].copy_(kept)

    def _refuse_while_swapped(self) -> None:
        if self._swapped:
            raise RuntimeError("The model has the averaged weights now; leave swapped() first.")
