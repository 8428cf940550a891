"""What each optimization does on this device, and what it did in a run."""

from collections.abc import Callable
from html import escape

from utils.ui.i18n import t
from utils.ui.tabs.training.queries import Result
from utils.ui.views import note

Hint = Callable[[Result, str], str]


def hint(field: str, device: Result | None, effect: tuple[int, str] | None, language: str) -> str:
    """Return what a switch does on this device, and what it did in the selected run."""
    lines = [note(HINTS[field](device, language) if device else t("training.detecting_device", language))]
    if effect:
        changed = t("training.changed_in_run", language, count=effect[0])
        lines.append(f'<p class="hint effect"><b>{escape(changed)}</b> · {escape(effect[1])}</p>')
    return "".join(lines)


def describe(device: Result, language: str) -> str:
    """Return the device and its memory."""
    memory = f"{device['memory'] / 2**30:.1f} GiB"
    if device["kind"] == "cuda":
        return t("training.device_gpu", language, name=device["name"], memory=memory)
    return t("training.device_cpu", language, memory=memory)


def _on_gpu(device: Result) -> bool:
    return bool(device["kind"] == "cuda")


def _mixed(device: Result, language: str) -> str:
    if device["half"] == "no":
        return t("training.here_no_half", language)
    if device["half"] == "fp16":
        return t("training.here_fp16", language)
    return t("training.here_bf16", language)


def _compile(device: Result, language: str) -> str:
    if device["compiler"]:
        return t("training.here_compiler", language)
    return t("training.here_no_compiler", language)


def _optimizer(device: Result, language: str) -> str:
    if not _on_gpu(device):
        return t("training.here_8bit_needs_gpu", language)
    if not device["bitsandbytes"]:
        return t("training.here_8bit_needs_bitsandbytes", language)
    return t("training.here_all_optimizers", language)


def _either(gpu: str, cpu: str) -> Hint:
    return lambda device, language: t(gpu if _on_gpu(device) else cpu, language)


def _always(key: str) -> Hint:
    return lambda _, language: t(key, language)


HINTS: dict[str, Hint] = {
    "enable_grad_checkpoint": _always("training.here_recompute"),
    "enable_sdpa": _either("training.here_sdpa_gpu", "training.here_sdpa_cpu"),
    "enable_mixed_precision": _mixed,
    "enable_ema": _always("training.here_ema"),
    "warmup_steps": _always("training.here_any_device"),
    "use_compile": _compile,
    "enable_tf32": lambda device, language: t(f"training.here_{'' if device['tf32'] else 'no_'}tf32", language),
    "optimizer": _optimizer,
    "enable_lora": _always("training.here_any_device"),
    "freeze_first_n_gpt_layers": _always("training.here_any_device"),
    "freeze_conditioning": _always("training.here_any_device"),
    "enable_fused_optimizer": _always("training.here_any_device"),
    "enable_fused_gelu": _always("training.here_any_device"),
    "enable_byte_dropout": _either("training.here_cpu_only", "training.here_with_sdpa"),
    "offload_optimizer": _either("training.here_offload", "training.here_no_offload"),
    "step_in_backward": _always("training.here_accumulation_1"),
}
