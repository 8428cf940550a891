"""Trace one update of the real model on tensors without data, and count the bytes that are alive.

torch's FakeTensorMode computes shapes only, so the full-size model takes about two seconds and no memory. The trace
runs on fake CPU tensors. For a GPU, functions whose kernels keep other tensors there are replaced (``cuda_kernels``).
"""

import contextlib
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.config import TrainConfig
from utils.training.model_size import ClipSize, ModelSize, clips_per_batch, random_batch
from utils.training.optimizations import optimized_gpt
from utils.training.optimizers import make_optimizer
from utils.training.packing import PackedBatch, PackedGpt, SpecialTokens

BYTES_8BIT = 2 * (1 + 4 / 256)  # bitsandbytes: two moments of one byte, and a scale for every 256 of them


class LiveMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors that are alive, and remembers the moment with most of them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = self.peak = self.gradients = self.gradients_at_peak = 0
        self._alive: set[int] = set()

    def track(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        number = storage._cdata  # noqa: SLF001  # unique among living storages
        if number in self._alive:
            return
        self._alive.add(number)
        self.bytes += storage.nbytes()
        weakref.finalize(storage, self._free, number, storage.nbytes())
        if self.bytes > self.peak:
            self.peak = self.bytes
            self.gradients_at_peak = self.gradients

    def add_gradient(self, weight: Tensor) -> None:
        """Count a gradient that has just been accumulated (a hook of the weight)."""
        self.gradients += weight.grad.nbytes if weight.grad is not None else 0

    def _free(self, storage: int, size: int) -> None:
        self._alive.discard(storage)
        self.bytes -= size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.track(tensor)
        return result


@contextlib.contextmanager
def cuda_kernels() -> Iterator[None]:
    """Make a trace on CPU tensors keep what a GPU keeps: fused attention, and dropout masks of one byte.

    The functions are replaced, not intercepted by a TorchFunctionMode, which layers recomputed in the backward pass
    would not see.
    """
    power = torch.pow

    def attention(query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object) -> Tensor:
        return _FusedAttention.apply(query, key, value)  # type: ignore[no-untyped-call, no-any-return]

    def dropout(tensor: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: ARG001, FBT001, FBT002
        return torch.native_dropout(tensor, p, training)[0] if p and training else tensor

    def pow_in_fp32(tensor: Tensor, exponent: float) -> Tensor:  # as autocast on a GPU computes it
        return power(tensor.float() if torch.is_autocast_enabled("cpu") else tensor, exponent)

    functions = ((F, "scaled_dot_product_attention", attention), (F, "dropout", dropout), (torch, "pow", pow_in_fp32))
    originals = [(module, name, getattr(module, name)) for module, name, _ in functions]
    for replacement in functions:
        setattr(*replacement)
    try:
        yield
    finally:
        for original in originals:
            setattr(*original)


class _FusedAttention(torch.autograd.Function):
    """Allocates what a fused attention kernel allocates; computes nothing."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:  # noqa: ANN401
        out = torch.empty_like(query)
        row_sums = query.new_empty(query.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(query, key, value, out, row_sums)
        return out

    @staticmethod
    def backward(ctx: Any, *_gradients: Tensor) -> tuple[Tensor, ...]:  # noqa: ANN401
        query, key, value, _, row_sums = ctx.saved_tensors
        _workspace = torch.empty_like(query, dtype=torch.float32), torch.empty_like(row_sums)
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def trace_update(config: TrainConfig, size: ModelSize, clip: ClipSize, *, on_gpu: bool, half: bool) -> dict[str, int]:
    """Build the model as the settings say, run one update on fake tensors, and return the bytes by part at the peak.

    Every clip of the batch has the size of ``clip``; with ``half``, matrix products run in half precision.
    """
    model, optimizer, live = _trace(config, size, clip, on_gpu=on_gpu, half=half)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    weights = _bytes([*model.parameters(), *model.buffers()])
    state = _bytes(_state(optimizer))
    moments = _moments_8bit(trained, model) if config.optimizer == "adamw_8bit" else state
    has_ema = config.enable_ema and not (on_gpu and config.ema_device == "cpu")
    return {
        "weights": weights,
        "gradients": live.gradients_at_peak,
        "optimizer": 0 if on_gpu and config.offload_optimizer else moments,
        "ema": _bytes(trained) if has_ema else 0,
        "activations": live.peak - weights - state - live.gradients_at_peak,
    }


def _trace(
    config: TrainConfig, size: ModelSize, clip: ClipSize, *, on_gpu: bool, half: bool
) -> tuple[nn.Module, Optimizer, LiveMemory]:
    """Return the fake model after an update, its optimizer, and the memory that was live."""
    traced = TrainConfig.parse({**config.model_dump(), **_traceable(config, on_gpu=on_gpu)})
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            gpt, _ = optimized_gpt(size, traced, "cpu")
        batch = random_batch(SpecialTokens.from_model(gpt), clip, clips_per_batch(config, clip))
        with FakeTensorMode(allow_non_fake_inputs=True), cuda_kernels() if on_gpu else contextlib.nullcontext():
            model = PackedGpt(gpt.to_empty(device="cpu"), config.label_smoothing).train()
            optimizer, _ = make_optimizer(model, traced, torch.device("cpu"))
            batch = replace(batch, mel=torch.empty_like(batch.mel), numbers=torch.empty_like(batch.numbers))
            return model, optimizer, _run_update(model, optimizer, batch, half=half, accumulate=config.grad_acumm > 1)


def _moments_8bit(trained: Iterable[Tensor], model: nn.Module) -> int:
    """Return the bytes of what bitsandbytes stores, which keeps the moments of embeddings in fp32."""
    tables = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    return round(sum(weight.numel() * (8 if id(weight) in tables else BYTES_8BIT) for weight in trained))


def _traceable(config: TrainConfig, *, on_gpu: bool) -> dict[str, object]:
    """Replace settings that need a real device: their memory is the same, or is counted separately."""
    return {
        "use_compile": False,
        "enable_byte_dropout": config.enable_byte_dropout and not on_gpu,
        "enable_fused_optimizer": True,
        "offload_optimizer": False,
        "optimizer": "adamw" if config.optimizer == "adamw_8bit" else config.optimizer,
    }


def _run_update(
    model: nn.Module, optimizer: Optimizer, batch: PackedBatch, *, half: bool, accumulate: bool
) -> LiveMemory:
    """Run the second update of a run: the optimizer's state exists, and gradients too where batches are accumulated."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    torch.autograd.backward(torch.stack([weight.sum() for weight in trained]).sum())
    optimizer.step()
    if not accumulate:
        optimizer.zero_grad(set_to_none=True)
    live = LiveMemory()
    for weight in [] if accumulate else trained:
        weight.register_post_accumulate_grad_hook(live.add_gradient)  # type: ignore[no-untyped-call]
    gradients = [weight.grad for weight in trained if weight.grad is not None]
    live.gradients = _bytes(gradients)
    with live:
        for tensor in (*model.parameters(), *model.buffers(), *_state(optimizer), *gradients):
            live.track(tensor)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            sums = model(batch)
        torch.autograd.backward(sums.text + sums.audio)
        optimizer.step()
    return live


def _state(optimizer: Optimizer) -> list[Tensor]:
    return [part for state in optimizer.state.values() for part in state.values() if isinstance(part, Tensor)]


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)
