"""The dropout of the GPT-2, which coqui leaves at what transformers begins with."""

from torch import nn

from utils.core.change import Change


def set_dropout(gpt: nn.Module, share: float) -> Change:
    """Drop this share of the activations and of the attention while training.

    Args:
        gpt: coqui's GPT.
        share: 0 makes training repeatable whatever the batches are cut into.
    """
    layers = [module for module in gpt.get_submodule("gpt").modules() if isinstance(module, nn.Dropout)]
    changed = sum(layer.p != share for layer in layers)
    for layer in layers:
        layer.p = share
    return Change("dropout", changed, f"{share:g} in {len(layers)} places")
