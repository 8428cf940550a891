"""What each switch will do on this device, in a sentence, and what it did in a run."""

from collections.abc import Callable
from html import escape

from utils.ui.i18n import say
from utils.ui.tabs.training.queries import Answer
from utils.ui.views import note

Hint = Callable[[Answer, str], str]


def hint(field: str, device: Answer | None, did: tuple[int, str] | None, language: str) -> str:
    """Say what a switch will do here, and what it did in the run that is looked at."""
    lines = [note(HINTS[field](device, language) if device else say("Looking at this device …", language))]
    if did:
        told = say("In this run: {count} changed", language, count=did[0])
        lines.append(f'<p class="hint did"><b>{escape(told)}</b> · {escape(did[1])}</p>')
    return "".join(lines)


def about(device: Answer, language: str) -> str:
    """Name the device."""
    memory = f"{device['memory'] / 2**30:.1f} GiB"
    if device["kind"] == "cuda":
        return say("Training will run on {name} with {memory} free.", language, name=device["name"], memory=memory)
    return say("Training will run on the processor with {memory} of free memory.", language, memory=memory)


def _on_gpu(device: Answer) -> bool:
    return bool(device["kind"] == "cuda")


def _mixed(device: Answer, language: str) -> str:
    if device["half"] == "no":
        return say("Here: no effect, this device has no fast half precision; it stays FP32.", language)
    if device["half"] == "fp16":
        return say("Here: FP16 with scaled gradients; the weights stay FP32.", language)
    return say("Here: BF16 arithmetic; the weights stay FP32.", language)


def _compile(device: Answer, language: str) -> str:
    if device["compiler"]:
        return say("Here: a compiler is found; the first updates will take minutes.", language)
    return say("Here: cannot work, no C++ compiler is found.", language)


def _optimizer(device: Answer, language: str) -> str:
    if not _on_gpu(device):
        return say("Here: adamw and adafactor; adamw_8bit needs an NVIDIA GPU.", language)
    if not device["bitsandbytes"]:
        return say("Here: adamw and adafactor; adamw_8bit needs: pip install bitsandbytes.", language)
    return say("Here: all three work.", language)


def _either(gpu: Callable[[str], str], cpu: Callable[[str], str]) -> Hint:
    return lambda device, language: (gpu if _on_gpu(device) else cpu)(language)


HINTS: dict[str, Hint] = {
    "enable_grad_checkpoint": lambda _, language: say("Here: works; each layer is computed once more.", language),
    "enable_sdpa": _either(
        lambda language: say("Here: fused GPU kernels in all three parts.", language),
        lambda language: say("Here: the fused kernel of the processor in all three parts.", language),
    ),
    "enable_mixed_precision": _mixed,
    "enable_ema": lambda _, language: say("Here: works; one more FP32 copy of what is trained.", language),
    "warmup_steps": lambda _, language: say("Here: works on every device.", language),
    "use_compile": _compile,
    "enable_tf32": lambda device, language: (
        say("Here: on for matrix products and convolutions.", language)
        if device["tf32"]
        else say("Here: no effect, this device has no TF32.", language)
    ),
    "optimizer": _optimizer,
    "enable_lora": lambda _, language: say("Here: works on every device.", language),
    "freeze_first_n_gpt_layers": lambda _, language: say("Here: works on every device.", language),
    "freeze_conditioning": lambda _, language: say("Here: works on every device.", language),
    "enable_fused_optimizer": lambda _, language: say("Here: works on every device.", language),
    "enable_fused_gelu": lambda _, language: say("Here: works on every device.", language),
    "enable_byte_dropout": _either(
        lambda language: say("Here: no effect, it is for processors.", language),
        lambda language: say("Here: works together with Fast Attention.", language),
    ),
    "offload_optimizer": _either(
        lambda language: say("Here: moments and updates move to RAM.", language),
        lambda language: say("Here: no gain, all is in RAM already.", language),
    ),
    "step_in_backward": lambda _, language: say("Here: works with gradient accumulation 1.", language),
}
