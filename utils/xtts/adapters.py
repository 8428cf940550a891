"""LoRA and DoRA: small matrices beside the frozen ones of the GPT-2, trained together with the rows of the text.

86 % of XTTS' GPT sits in transformers' ``Conv1D``, which the defaults of peft do not look for; its weights lie the
other way round than those of ``nn.Linear``. The model stays the one coqui-tts knows: ``gpt.gpt.h`` and the rest keep
their places, only the matrices get a companion.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Literal

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn

from utils.core.change import Change
from utils.core.errors import SpeedupError
from utils.xtts.checkpoints import LORA_PREFIX

Targets = Literal["attention", "all"]

TARGETS = {
    "attention": r"h\.\d+\.attn\.(c_attn|c_proj)",
    "all": r"h\.\d+\.(attn\.(c_attn|c_proj)|mlp\.(c_fc|c_proj))",
}
TEXT_ROWS = ("text_embedding", "text_pos_embedding", "text_head")  # the parts of coqui's GPT that know the letters
BASE = ".base_layer"  # what peft puts between the name of a layer and the names of its weights
HINT = "Resume with the LoRA settings that the run was started with."


def add_lora(
    gpt: nn.Module, rank: int, alpha: float, dropout: float = 0.0, targets: Targets = "all", *, dora: bool = False
) -> Change:
    """Put adapters beside the matrices of the GPT-2 and freeze everything but them and the rows of the text.

    Args:
        gpt: coqui's GPT. Freeze layers after this, or their adapters are trained.
        rank: Width of the small matrices.
        alpha: Their strength, divided by the rank.
        dropout: Share of inputs they do not see.
        targets: The matrices of the attention, or those between the layers too.
        dora: Learn the length of each weight apart from its direction.
    """
    if any(adapted_layers(gpt)):
        raise SpeedupError("enable_lora: this model has adapters already.", hint="Load it afresh.")
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
        raise SpeedupError("enable_lora: no matrix was found to adapt.", hint="Add LoRA before other switches act.")
    trained = sum(weight.numel() for weight in gpt.parameters() if weight.requires_grad)
    every = sum(weight.numel() for weight in gpt.parameters())
    return Change("enable_lora", layers, f"{'DoRA' if dora else 'LoRA'}: {trained:,} of {every:,} parameters train")


def adapted_layers(gpt: nn.Module) -> Iterator[tuple[str, LoraLayer]]:
    """Yield name and module of every layer that has an adapter."""
    return ((name, module) for name, module in gpt.named_modules() if isinstance(module, LoraLayer))


def adapter_state(gpt: nn.Module) -> dict[str, Tensor]:
    """Return the adapters and the rows of the text by name; nothing is copied."""
    rows = tuple(f"{name}." for name in TEXT_ROWS)
    return {
        name: weight.detach() for name, weight in gpt.named_parameters() if LORA_PREFIX in name or name.startswith(rows)
    }


def adapter_settings(gpt: nn.Module) -> dict[str, str]:
    """Return the settings that no shape shows, as text for the header of a file."""
    scales = {layer.scaling["default"] for _, layer in adapted_layers(gpt)}
    return {"lora_scale": ",".join(map(str, sorted(scales)))}


@torch.no_grad()
def load_adapter(gpt: nn.Module, state: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> int:
    """Fill the adapters and the rows of the text; all of them, or none when one does not fit.

    Args:
        gpt: A model that ``add_lora`` has changed.
        state: What ``adapter_state`` returned.
        about: What ``adapter_about`` returned then.
    """
    wanted = adapter_state(gpt)
    odd = sorted(name for name in wanted.keys() | state.keys() if _shape(wanted.get(name)) != _shape(state.get(name)))
    if odd:
        raise SpeedupError(f"The adapter does not fit this model: {', '.join(odd[:3])} ({len(odd)} in all).", hint=HINT)
    if about is not None and dict(about) != adapter_settings(gpt):
        raise SpeedupError(f"The adapter has another strength: {about.get('lora_scale')}.", hint=HINT)
    for name, weight in wanted.items():
        weight.copy_(state[name])
    return len(wanted)


def _shape(tensor: Tensor | None) -> torch.Size | None:
    return None if tensor is None else tensor.shape


@torch.no_grad()
def merged_state(gpt: nn.Module) -> dict[str, Tensor]:
    """Return all weights on the CPU, by the names that coqui's GPT gives them, with the adapters merged in.

    The model is not changed. One layer at a time is copied where it is, so a GPU needs room for one of them.
    """
    merged = {f"{name}.weight": _merged(layer) for name, layer in adapted_layers(gpt)}
    state = {}
    seen: set[int] = set()  # a weight that has two names goes by the first, as coqui saves it
    for name, part in gpt.state_dict(keep_vars=True).items():
        if LORA_PREFIX not in name and id(part) not in seen:
            seen.add(id(part))
            plain = name.replace(BASE, "")
            state[plain] = merged[plain] if plain in merged else part.detach().cpu()
    return state


def _merged(layer: LoraLayer) -> Tensor:
    """Return the weight that acts as the layer and its adapter do together."""
    alone = copy.deepcopy(layer)
    alone.merge(safe_merge=True)
    return alone.get_base_layer().get_parameter("weight").detach().cpu()
