"""A recorder that stands in for a GPU: it counts what makes the host wait, and refuses what a GPU would refuse.

Nothing is computed. Tensors of the device are ``meta`` tensors (forward and backward) or fake CUDA tensors (forward
only), which know their shape, type and device. Whatever reads a value from them would synchronize with a real GPU.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.core.paths import ROOT

ATEN = torch.ops.aten
COPIES = (ATEN._to_copy.default, ATEN.copy_.default)
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
INDEXING = ("aten::index.Tensor", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_")
OF_UNKNOWN_SIZE = ("aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_dim")


class DeviceError(AssertionError):
    """A GPU would refuse this operation."""


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records by place what makes the host wait for the device, and counts its kernels."""

    def __init__(self, kind: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kind = kind
        self.fake = FakeTensorMode(allow_non_fake_inputs=True) if kind == "cuda" else contextlib.nullcontext()
        self.waits: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()  # and copies that the host starts, by place
        self.is_capturing = False  # whether they go into a CUDA graph instead

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        if func not in COPIES and func.has_kernel_for_dispatch_key(COMPOSITE):  # whole in inference mode
            with self:
                return func.decompose(*args, **kwargs)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        is_on_device = any(self._is_mine(tensor) for tensor in tensors)
        if func is ATEN._local_scalar_dense.default and is_on_device:
            self._wait("item")
            return 1.0 if args[0].is_floating_point() else args[0].dtype == torch.bool or 1
        if func in COPIES:
            return self._copy(func, args, kwargs)
        if is_on_device:
            self._check(func, args, tensors)
            self._start(not func.is_view)
        return self._run(func, args, kwargs)

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Make tensors of the device without data; those of the host are real."""
        with self.fake if torch.device(kwargs.get("device") or "cpu").type == "cuda" else contextlib.nullcontext():
            return func(*args, **kwargs)

    def _is_mine(self, tensor: Tensor) -> bool:
        return tensor.device.type == self.kind

    def _copy(self, func: Any, args: Any, kwargs: Any) -> Any:
        source = args[-1] if func is ATEN.copy_.default and len(args) == 2 else args[func is ATEN.copy_.default]
        target = args[0].device if func is ATEN.copy_.default else torch.device(kwargs.get("device") or source.device)
        crosses = self._is_mine(source) != (target.type == self.kind)
        if crosses and self.is_capturing:
            raise DeviceError(f"a graph would copy between host and device in {place()}")
        self._start(crosses or self._is_mine(source))
        is_asynchronous = kwargs.get("non_blocking") or (len(args) > 2 and args[2])
        if crosses and not is_asynchronous:
            self._wait("copy to the device" if target.type == self.kind else "copy to the host")
        if self._is_mine(source) and target.type == "cpu":
            if func is ATEN.copy_.default:
                return args[0]
            return torch.ones(source.shape, dtype=kwargs.get("dtype") or source.dtype)
        return self._run(func, args, kwargs)

    def _check(self, func: Any, args: Any, tensors: list[Tensor]) -> None:
        name = func.name()
        if name.startswith(OF_UNKNOWN_SIZE):
            self._wait(name)
        foreign = [tensor for tensor in tensors if not self._is_mine(tensor) and tensor.ndim]
        if name in INDEXING:
            indices = [index for index in args[1] if isinstance(index, Tensor)]
            if any(index.dtype == torch.bool or not self._is_mine(index) for index in indices):
                self._wait(name)
            foreign = [tensor for tensor in foreign if not any(tensor is index for index in indices)]
        if foreign and not name.startswith("aten::_fused"):
            raise DeviceError(f"{name} mixes {self.kind} and {foreign[0].device} in {place()}")
        if any(tensor.dtype == torch.float64 for tensor in tensors):
            raise DeviceError(f"{name} computes in float64 in {place()}")

    def _wait(self, what: str) -> None:
        if self.is_capturing:
            raise DeviceError(f"a graph would wait ({what}) in {place()}")
        self.waits[f"{place()}: {what}"] += 1

    def _start(self, count: int) -> None:
        self.kernels[place()] += 0 if self.is_capturing else count

    @contextlib.contextmanager
    def capture(self, _graph: object, **_: object) -> Iterator[None]:
        """Stand in for ``torch.cuda.graph``."""
        self.is_capturing = True
        try:
            yield
        finally:
            self.is_capturing = False

    def graphs(self) -> dict[str, Any]:
        """Stand in for streams, events and graphs of ``torch.cuda``; a replay is one kernel."""
        graph = type("CUDAGraph", (), {"replay": lambda _graph: self._start(1)})
        event = type("Event", (), {"record": lambda _: None, "synchronize": lambda _: self._wait("event")})
        stream = mock.MagicMock()
        return {
            "Stream": stream,
            "current_stream": stream,
            "stream": lambda _stream: contextlib.nullcontext(),
            "CUDAGraph": graph,
            "graph": self.capture,
            "graph_pool_handle": lambda: None,
            "Event": event,
        }

    def clear(self) -> Self:
        self.waits.clear()
        self.kernels.clear()
        return self


def place() -> str:
    """Return module and function of the innermost frame of the product."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT / "utils"):
            return f"{path.stem}.{frame.f_code.co_qualname}"
        frame = frame.f_back
    return "elsewhere"


@contextlib.contextmanager
def fake_cuda() -> Iterator[Recorder]:
    """Let tensors live on a CUDA device that is not there; only forward passes work."""
    recorder = Recorder("cuda")
    with (
        mock.patch.object(fake_tensor, "init_gpu_context"),
        mock.patch.object(torch.cuda, "_lazy_init"),
        mock.patch.multiple(torch.cuda, **recorder.graphs()),
        mock.patch.object(FakeTensor, "tolist", lambda tensor: tensor.cpu().tolist()),  # one copy, as on a GPU
        torch.inference_mode(),
        recorder,
    ):
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor makes them on the CPU and copies them, as on a GPU
        try:
            yield recorder
        finally:
            torch._C._set_only_lift_cpu_tensors(False)


class Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Stands in for a CUDA graph on a CPU: repeats what was captured, with the same tensors and the same numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is ATEN._local_scalar_dense.default:
            raise DeviceError(f"a graph would wait (item) in {place()}")
        result = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self) -> None:
        for func, args, kwargs, result in self.operations:
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if old.data_ptr() != new.data_ptr():  # neither a view nor in place
                    old.copy_(new)
