"""One update's worth of work for coqui's small GPT: clips of random text, codes and sound."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


def loss(gpt: Any, seed: int = 0) -> Tensor:
    """Return the loss of two random clips; the model is in evaluation mode, so it has no dropout."""
    random = torch.Generator().manual_seed(seed)
    text, audio, _ = gpt.eval()(
        torch.randint(1, 90, (2, 7), generator=random),
        torch.tensor([7, 5]),
        torch.randint(0, 1024, (2, 20), generator=random),
        torch.tensor([20 * 1024, 14 * 1024]),
        cond_mels=torch.randn((2, 1, 80, 24), generator=random),
    )
    return text + audio  # type: ignore[no-any-return]


def learn(gpt: Any, optimizer: Optimizer, updates: int = 3, *, first: int = 0) -> None:
    for seed in range(first, first + updates):
        optimizer.zero_grad()
        torch.autograd.backward(loss(gpt, seed))
        optimizer.step()


def weights(gpt: Any) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in gpt.named_parameters()}


def changed(gpt: Any, before: dict[str, Tensor]) -> set[str]:
    return {name for name, weight in gpt.named_parameters() if not torch.equal(weight, before[name])}


def farthest(gpt: Any, other: Any) -> float:
    """Return the largest difference between the weights of two models."""
    pairs = zip(gpt.parameters(), other.parameters(), strict=True)
    return max(float((one - two).detach().abs().max()) for one, two in pairs)


def kept_bytes(model: nn.Module, forward: Callable[[], object]) -> int:
    """Return how much a forward pass keeps for the backward pass, the weights not counted."""
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor  # alive, so that no other gets its address
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward()
    return sum(tensor.untyped_storage().nbytes() for address, tensor in kept.items() if address not in weights)
