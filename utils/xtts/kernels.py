"""Which attention kernels torch really uses, observed operator by operator."""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

BYTES = "byte dropout"
ATTENTION = {  # one operator of each kind of attention that occurs once per call
    "aten._scaled_dot_product_flash_attention.default": "flash",
    "aten._scaled_dot_product_flash_attention_for_cpu.default": "flash",
    "aten._scaled_dot_product_efficient_attention.default": "efficient",
    "aten._scaled_dot_product_cudnn_attention.default": "cudnn",
    "aten._safe_softmax.default": "math",
    "aten._softmax.default": "unfused",
    "aten.new_full.default": BYTES,
}


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operator of this thread, and notes the attention kernels with their number formats."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        if kernel := ATTENTION.get(str(func)):
            self.kernels.add(f"{kernel} in {str(args[0].dtype).removeprefix('torch.')}")
        return func(*args, **(kwargs or {}))
