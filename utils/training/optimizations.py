"""Apply the configured optimizations to a model, and report which are active.

Each optimization returns what it changed; ``what_is_on`` reads the live model.
"""

from collections.abc import Iterator
from typing import Self

import torch
from torch import nn

from utils.config import TrainConfig
from utils.core.facts import Optimization
from utils.core.threads import available_cores
from utils.training.errors import SettingRefusedError
from utils.training.facts import ByteDropoutIdle
from utils.training.model_size import ModelSize, random_gpt
from utils.training.speedups import attention, blocks, dropout, freezing, gpu
from utils.xtts import adapters
from utils.xtts.device import Precision, choose_precision, own_device
from utils.xtts.modules import CONDITIONING, GPT, gpt2_layers

GPT_PATHS = ("", "gpt", "xtts.gpt", "module", "module.gpt", "module.xtts.gpt")  # of coqui's GPT inside a model


def optimized_gpt(
    size: ModelSize, config: TrainConfig, device: torch.device | str
) -> tuple[nn.Module, list[Optimization]]:
    """Return a model with random weights and every optimization of a run, and what each one changed."""
    gpt = random_gpt(size)
    return gpt, [dropout.set_dropout(gpt, config.dropout), *TrainingOptimizer(config, device).apply(gpt).values()]


def coqui_gpt(model: nn.Module) -> nn.Module:
    """Find coqui's GPT: the model itself, or inside our PackedGpt, coqui's Xtts or GPTTrainer, or those in DDP."""
    parts = dict(model.named_modules(remove_duplicate=False))
    matches: list[nn.Module] = [parts[path] for path in GPT_PATHS if isinstance(parts.get(path), GPT)]
    if not matches:
        raise SettingRefusedError("model", "no_gpt", type(model).__name__)
    return matches[0]


class TrainingOptimizer:
    """Applies the optimizations of a configuration to a model.

    Args:
        config: Settings of the run.
        device: Device of the model; by default that of the settings, for this process.
    """

    def __init__(self, config: TrainConfig, device: torch.device | str | None = None) -> None:
        self.config = config
        self.device = own_device(config.device) if device is None else torch.device(device)
        self.machine = UnslothStyleOptimizations(self.device)
        self.precision = choose_precision(self.device, wanted=config.enable_mixed_precision)

    @classmethod
    def from_config(cls, config: TrainConfig, device: torch.device | str | None = None) -> Self:
        """Create an optimizer from the settings of a run."""
        return cls(config, device)

    def apply(self, model: nn.Module) -> dict[str, Optimization]:
        """Apply every optimization; return by name what each one changed."""
        return {change.name: change for change in self._changes(coqui_gpt(model))}

    def optimize_model(self, model: nn.Module) -> dict[str, Optimization]:
        """Alias of ``apply``."""
        return self.apply(model)

    def _changes(self, gpt: nn.Module) -> Iterator[Optimization]:
        """Apply the optimizations; the order matters.

        Adapters freeze everything else, so layers are frozen after them, or their adapters would be trained. Layers are
        compiled last.
        """
        config = self.config
        yield gpu.cap_memory(config.max_memory_fraction, self.device)
        yield Optimization("enable_mixed_precision", int(self.precision.dtype != "no"), self.precision.reason)
        yield self.machine.enable_tf32(enabled=config.enable_tf32)
        if config.deterministic:
            yield gpu.make_deterministic(self.device)
        if config.enable_lora:
            yield self.apply_adapters(gpt)
        if config.freeze_first_n_gpt_layers:
            yield freezing.freeze_first_layers(gpt, config.freeze_first_n_gpt_layers)
        if config.freeze_conditioning:
            yield freezing.freeze_conditioning(gpt)
        if config.enable_fused_gelu:
            yield blocks.fuse_gelu(gpt)
        yield self.configure_sdpa(gpt)
        if config.enable_byte_dropout:
            acts = self.device.type == "cpu" and config.enable_sdpa and not config.use_compile
            idle = Optimization("enable_byte_dropout", 0, ByteDropoutIdle())
            yield dropout.use_byte_dropout(gpt) if acts else idle
        if config.enable_grad_checkpoint:
            yield self.apply_gradient_checkpointing(gpt)
        if config.use_compile:
            yield self.machine.compile_model(gpt)

    def get_mixed_precision_config(self) -> Precision:
        """Return the precision for ``accelerate`` and the reason for it."""
        return self.precision

    def apply_adapters(self, model: nn.Module) -> Optimization:
        """Add LoRA or DoRA adapters to the GPT-2 and freeze the rest, except the text embeddings."""
        config = self.config
        return adapters.add_lora(
            coqui_gpt(model),
            config.lora_rank,
            config.lora_alpha,
            config.lora_dropout,
            config.lora_targets,
            dora=config.use_dora,
        )

    def configure_sdpa(self, model: nn.Module) -> Optimization:
        """Use fused attention in GPT, conditioning encoder and perceiver, or unfused if it is off."""
        implementation = attention.FUSED if self.config.enable_sdpa else attention.EAGER
        return attention.use_attention(coqui_gpt(model), implementation)

    def apply_gradient_checkpointing(self, model: nn.Module) -> Optimization:
        """Checkpoint the layers of GPT and conditioning encoder."""
        return blocks.checkpoint_blocks(coqui_gpt(model), self.config.checkpoint_every)

    def what_is_on(self, model: nn.Module) -> dict[str, str | int]:
        """Report the active optimizations, read from the live model and torch instead of the settings."""
        gpt = coqui_gpt(model)
        parts = attention.report(gpt, self.device, self.precision.torch_dtype).items()
        layers, encoder = blocks.checkpointed(gpt)
        return {
            **{f"attention of {name}": f"{layers} x {kind} ({kernel})" for name, (layers, kind, kernel) in parts},
            "checkpointed layers of gpt": layers,
            "checkpointed layers of conditioning_encoder": encoder,
            "compiled layers of gpt": blocks.compiled(gpt),
            "frozen layers of gpt": sum(
                not any(w.requires_grad for w in block.parameters()) for block in gpt2_layers(gpt)
            ),
            "frozen weights of conditioning": sum(
                not weight.requires_grad for name in CONDITIONING for weight in gpt.get_submodule(name).parameters()
            ),
            "adapted layers": sum(1 for _ in adapters.adapted_layers(gpt)),
            "weights": ", ".join(sorted({str(weight.dtype) for weight in gpt.parameters()})),
            "TF32": ", ".join(name for name, on in gpu.tf32_state().items() if on) or "off",
        }


class UnslothStyleOptimizations:
    """Optimizations of the machine instead of the model: TF32, data loading and compilation.

    Args:
        device: Device of the training; by default the GPU of this process, or the CPU if there is none.
        cores: CPU cores; by default those of this machine.
    """

    def __init__(self, device: torch.device | str | None = None, cores: int | None = None) -> None:
        self.device = own_device() if device is None else torch.device(device)
        self.cores = cores or available_cores()

    def enable_tf32(self, *, enabled: bool = True) -> Optimization:
        """Use TF32 in matrix products and convolutions if the GPU supports it, or turn it off."""
        return gpu.use_tf32(self.device, enabled=enabled)

    def dataloader_settings(self) -> dict[str, bool | int | None]:
        """Return keywords for torch's DataLoader.

        Features are memory-mapped, so on a CPU, worker processes would only take cores from the training. With a GPU,
        two workers hide the reading if there are cores to spare.
        """
        on_gpu = self.device.type == "cuda"
        workers = min(2, max(0, self.cores - 2)) if on_gpu else 0
        return {
            "num_workers": workers,
            "pin_memory": on_gpu,
            "prefetch_factor": 4 if workers else None,
        }

    def compile_model(self, model: nn.Module) -> Optimization:
        """Compile the layers of the GPT-2, each shape on first use."""
        return blocks.compile_blocks(coqui_gpt(model), self.device)
