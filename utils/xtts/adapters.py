"""LoRA and DoRA adapters for the GPT-2, trained together with the text embeddings.

86 % of XTTS' GPT is in transformers' ``Conv1D`` layers, which peft does not target by default and whose weights are
transposed compared to ``nn.Linear``. The module names of coqui-tts do not change.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Literal

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn

from utils.core.facts import Optimization
from utils.xtts.checkpoints import LORA_PREFIX
from utils.xtts.facts import ModelSwitchError

Targets = Literal["attention", "all"]

TARGETS = {
    "attention": r"h\.\d+\.attn\.(c_attn|c_proj)",
    "all": r"h\.\d+\.(attn\.(c_attn|c_proj)|mlp\.(c_fc|c_proj))",
}
TEXT_ROWS = ("text_embedding", "text_pos_embedding", "text_head")  # parts of coqui's GPT that depend on the vocabulary
BASE = ".base_layer"  # what peft puts between the name of a layer and the names of its weights


def add_lora(
    gpt: nn.Module, rank: int, alpha: float, dropout: float = 0.0, targets: Targets = "all", *, dora: bool = False
) -> Optimization:
    """Add adapters to the GPT-2 and freeze everything but them and the text embeddings.

    Freeze layers after this, or their adapters will be trained.
    """
    if any(adapted_layers(gpt)):
        raise ModelSwitchError("exists")
    gpt.requires_grad_(requires_grad=False)
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]  # peft divides it by the rank, so it may be any number
        lora_dropout=dropout,
        target_modules=TARGETS[targets],
        use_dora=dora,
        fan_in_fan_out=True,
    )
    inject_adapter_in_model(config, gpt.get_submodule("gpt"))
    for name in TEXT_ROWS:
        gpt.get_submodule(name).requires_grad_(requires_grad=True)
    layers = sum(1 for _ in adapted_layers(gpt))
    if not layers:
        raise ModelSwitchError("no_layer")
    trained = sum(weight.numel() for weight in gpt.parameters() if weight.requires_grad)
    total = sum(weight.numel() for weight in gpt.parameters())
    return Optimization(
        "enable_lora", layers, f"{'DoRA' if dora else 'LoRA'}: {trained:,} of {total:,} parameters are trained"
    )


def adapted_layers(gpt: nn.Module) -> Iterator[tuple[str, LoraLayer]]:
    return ((name, module) for name, module in gpt.named_modules() if isinstance(module, LoraLayer))


def adapter_state(gpt: nn.Module) -> dict[str, Tensor]:
    """Return the adapters and text embeddings by name, without copying."""
    rows = tuple(f"{name}." for name in TEXT_ROWS)
    parameters = gpt.named_parameters()
    return {name: weight.detach() for name, weight in parameters if LORA_PREFIX in name or name.startswith(rows)}


def adapter_settings(gpt: nn.Module) -> dict[str, str]:
    """Return the settings that the shapes do not show, as text for a file header."""
    scales = {layer.scaling["default"] for _, layer in adapted_layers(gpt)}
    return {"lora_scale": ",".join(map(str, sorted(scales)))}


@torch.no_grad()
def load_adapter(gpt: nn.Module, state: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> None:
    """Load the adapters and text embeddings: all of them, or none if one does not fit."""
    expected = adapter_state(gpt)
    wanted, given = ({name: weight.shape for name, weight in weights.items()} for weights in (expected, state))
    if different := sorted(name for name in wanted | given if wanted.get(name) != given.get(name)):
        raise ModelSwitchError("mismatch", f"{', '.join(different[:3])} ({len(different)})")
    if about is not None and dict(about) != adapter_settings(gpt):
        raise ModelSwitchError("scale", str(about.get("lora_scale")))
    for name, weight in expected.items():
        weight.copy_(state[name])


@torch.no_grad()
def merged_state(gpt: nn.Module) -> dict[str, Tensor]:
    """Return all weights on the CPU under coqui's names, with the adapters merged in; the model is not changed."""
    merged = {}
    for name, layer in adapted_layers(gpt):  # one at a time, on its device
        copied = copy.deepcopy(layer)
        copied.merge(safe_merge=True)
        merged[f"{name}.weight"] = copied.get_base_layer().get_parameter("weight").detach().cpu()
    state = {}
    seen = set()  # coqui saves a weight with two names under the first
    for name, part in gpt.state_dict(keep_vars=True).items():
        if LORA_PREFIX not in name and id(part) not in seen:
            seen.add(id(part))
            plain = name.replace(BASE, "")
            state[plain] = merged[plain] if plain in merged else part.detach().cpu()
    return state
