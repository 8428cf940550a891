"""What each switch will do on this device, in a sentence, and what it did in a run."""

from collections.abc import Callable
from html import escape

from utils.ui.i18n import t
from utils.ui.tabs.training.queries import Answer
from utils.ui.views import note

Hint = Callable[[Answer, str], str]


def hint(field: str, device: Answer | None, did: tuple[int, str] | None, language: str) -> str:
    """Say what a switch will do here, and what it did in the run that is looked at."""
    lines = [note(HINTS[field](device, language) if device else t("training.detecting_device", language))]
    if did:
        told = t("training.changed_in_run", language, count=did[0])
        lines.append(f'<p class="hint did"><b>{escape(told)}</b> · {escape(did[1])}</p>')
    return "".join(lines)


def about(device: Answer, language: str) -> str:
    """Name the device."""
    memory = f"{device['memory'] / 2**30:.1f} GiB"
    if device["kind"] == "cuda":
        return t("training.device_gpu", language, name=device["name"], memory=memory)
    return t("training.device_cpu", language, memory=memory)


def _on_gpu(device: Answer) -> bool:
    return bool(device["kind"] == "cuda")


def _mixed(device: Answer, language: str) -> str:
    if device["half"] == "no":
        return t("training.here_no_half", language)
    if device["half"] == "fp16":
        return t("training.here_fp16", language)
    return t("training.here_bf16", language)


def _compile(device: Answer, language: str) -> str:
    if device["compiler"]:
        return t("training.here_compiler", language)
    return t("training.here_no_compiler", language)


def _optimizer(device: Answer, language: str) -> str:
    if not _on_gpu(device):
        return t("training.here_8bit_needs_gpu", language)
    if not device["bitsandbytes"]:
        return t("training.here_8bit_needs_bitsandbytes", language)
    return t("training.here_all_optimizers", language)


def _either(gpu: Callable[[str], str], cpu: Callable[[str], str]) -> Hint:
    return lambda device, language: (gpu if _on_gpu(device) else cpu)(language)


HINTS: dict[str, Hint] = {
    "enable_grad_checkpoint": lambda _, language: t("training.here_recompute", language),
    "enable_sdpa": _either(
        lambda language: t("training.here_sdpa_gpu", language),
        lambda language: t("training.here_sdpa_cpu", language),
    ),
    "enable_mixed_precision": _mixed,
    "enable_ema": lambda _, language: t("training.here_ema", language),
    "warmup_steps": lambda _, language: t("training.here_any_device", language),
    "use_compile": _compile,
    "enable_tf32": lambda device, language: (
        t("training.here_tf32", language) if device["tf32"] else t("training.here_no_tf32", language)
    ),
    "optimizer": _optimizer,
    "enable_lora": lambda _, language: t("training.here_any_device", language),
    "freeze_first_n_gpt_layers": lambda _, language: t("training.here_any_device", language),
    "freeze_conditioning": lambda _, language: t("training.here_any_device", language),
    "enable_fused_optimizer": lambda _, language: t("training.here_any_device", language),
    "enable_fused_gelu": lambda _, language: t("training.here_any_device", language),
    "enable_byte_dropout": _either(
        lambda language: t("training.here_cpu_only", language),
        lambda language: t("training.here_with_sdpa", language),
    ),
    "offload_optimizer": _either(
        lambda language: t("training.here_offload", language),
        lambda language: t("training.here_no_offload", language),
    ),
    "step_in_backward": lambda _, language: t("training.here_accumulation_1", language),
}
