"""A recorder that stands in for a GPU: it counts what makes the host wait, and refuses what a GPU would refuse.

Nothing is computed. Tensors of the device are ``meta`` tensors (forward and backward) or fake CUDA tensors (forward
only), which know their shape, type and device. Whatever reads a value from them would synchronize with a real GPU.

Streams of fake CUDA and the host have vector clocks: what one of them reads or writes, in the memory of the GPU or in
pinned memory, has to be behind what another one did there before. Only the thread that owns the GPU may start work.
"""

import contextlib
import functools
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
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
from utils.xtts import device

ATEN = torch.ops.aten
COPIES = (ATEN._to_copy.default, ATEN.copy_.default)
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
INDEXING = ("aten::index.Tensor", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_")
RANDOM = ("aten::rand", "aten::bernoulli", "aten::multinomial", "aten::native_dropout", "aten::uniform", "aten::normal")
HALF = ("layers.", "hifigan.")  # modules that a GPU computes in half precision
OF_UNKNOWN_SIZE = ("aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_dim")


class DeviceError(AssertionError):
    """A GPU would refuse this operation."""


class Clock:
    """A stream, or the host: how far it is itself, and how far it knows the others to be."""

    def __init__(self, *_: object, priority: int = 0) -> None:
        self.priority = priority
        self.known: Counter[Clock] = Counter({self: 1})

    def wait_stream(self, other: "Clock") -> None:
        self.known |= other.known


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records by place what makes the host wait for the device, and counts its kernels."""

    def __init__(self, kind: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kind = kind
        self.fake = FakeTensorMode(allow_non_fake_inputs=True) if kind == "cuda" else contextlib.nullcontext()
        self.waits: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()  # and copies that the host starts, by place
        self.graph: dict[Any, bool] | None = None  # the memory of the CUDA graph that they go into instead
        self.host, self.default = Clock(), Clock()
        self.stream = self.default
        self.is_owner = False  # whether the thread that owns the GPU is at work
        self.pinned: weakref.WeakSet[Any] = weakref.WeakSet()
        self.older: weakref.WeakSet[Any] = weakref.WeakSet()  # memory that was there before the graph
        self.uses: weakref.WeakKeyDictionary[Any, dict[tuple[Clock, bool], int]] = weakref.WeakKeyDictionary()

    @property
    def is_capturing(self) -> bool:
        return self.graph is not None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        if func in (ATEN.pin_memory.default, ATEN.is_pinned.default):
            return self._pin(args[0]) if func is ATEN.pin_memory.default else self._is_pinned(args[0])
        if func not in COPIES and func.has_kernel_for_dispatch_key(COMPOSITE):  # whole in inference mode
            with self:
                return func.decompose(*args, **kwargs)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        is_on_device = any(self._is_mine(tensor) for tensor in tensors)
        is_on_device |= torch.device(kwargs.get("device") or "cpu").type == self.kind
        if func is ATEN._local_scalar_dense.default and is_on_device:
            self._wait("item")
            return 1.0 if args[0].is_floating_point() else args[0].dtype == torch.bool or 1
        if func in COPIES:
            return self._copy(func, args, kwargs)
        if is_on_device:
            self._check(func, args, tensors)
            self._start(not func.is_view)
        result = self._run(func, args, kwargs)
        self._track(func, args, tensors, result, self.stream if is_on_device else self.host)
        return result

    def _pin(self, tensor: Tensor) -> Tensor:
        pinned = tensor.clone()
        self.pinned.add(pinned.untyped_storage())
        return pinned

    def _is_pinned(self, tensor: Tensor) -> bool:
        return tensor.device.type == "cpu" and tensor.untyped_storage() in self.pinned

    def _track(self, func: Any, args: Any, tensors: list[Tensor], result: Any, actor: Clock) -> None:
        """Note what is read and written, and refuse what another stream or the host may still be using."""
        if self.kind != "cuda" or (func.is_view and actor is not self.host):
            return
        read = {
            tensor.untyped_storage(): False for tensor in tensors if self._is_mine(tensor) or self._is_pinned(tensor)
        }
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                made += [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
                read.update({leaf.untyped_storage(): True for leaf in made[-1:] if leaf.untyped_storage() in read})
        fresh = {tensor.untyped_storage() for tensor in made if self._is_mine(tensor)} - read.keys()
        if self.graph is not None:
            known = self.graph
            known.update(
                {part: known.get(part, False) or writes for part, writes in read.items() if part in self.older}
            )
        self.use(actor, read | dict.fromkeys(fresh, True))

    def use(self, actor: Clock, memory: dict[Any, bool]) -> None:
        """Let a stream or the host use memory, where True stands for writing."""
        actor.known[actor] += 1
        for part, writes in memory.items():
            uses = self.uses.setdefault(part, {})
            for (other, wrote), when in uses.items():
                if (writes or wrote) and other is not actor and actor.known[other] < when:
                    raise DeviceError(f"{place()} uses what another stream may still {'write' if wrote else 'read'}")
            uses[actor, writes] = actor.known[actor]

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
        host = args[0] if func is ATEN.copy_.default and target.type == "cpu" else source
        is_late = func is ATEN._to_copy.default and target.type == "cpu"  # torch pins what it makes itself
        if crosses and not (is_asynchronous and (self.kind != "cuda" or is_late or self._is_pinned(host))):
            unpinned = " of unpinned memory" if is_asynchronous else ""
            self._wait(f"copy{unpinned} to the {'device' if target.type == self.kind else 'host'}")
            self.host.wait_stream(self.stream)
        if self._is_mine(source) and target.type == "cpu":
            arrived = args[0] if func is ATEN.copy_.default else None
            if arrived is None:
                arrived = torch.ones(source.shape, dtype=kwargs.get("dtype") or source.dtype)
                if is_asynchronous and self.kind == "cuda":
                    self.pinned.add(arrived.untyped_storage())
            result = arrived
        else:
            result = self._run(func, args, kwargs)
        tensors = [part for part in (source, result) if part.device.type != "meta"]
        if crosses or self._is_mine(source):
            written = {result.untyped_storage(): True} if self._is_mine(result) or self._is_pinned(result) else {}
            self._track(func, (), [source], (), self.stream)
            self.use(self.stream, written if self.kind == "cuda" and tensors else {})
        return result

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
        if self.is_capturing and torch.Tag.nondeterministic_seeded in func.tags and name.startswith(RANDOM):
            raise DeviceError(f"a graph would draw random numbers ({name}) in {place()}")
        if any(tensor.dtype == torch.float64 for tensor in tensors):
            raise DeviceError(f"{name} computes in float64 in {place()}")

    def _wait(self, what: str) -> None:
        if self.is_capturing:
            raise DeviceError(f"a graph would wait ({what}) in {place()}")
        self.waits[f"{place()}: {what}"] += 1
        if what == "item":
            self.host.wait_stream(self.stream)

    def _start(self, count: int) -> None:
        self.stream.wait_stream(self.host)
        if count and self.kind == "cuda" and not self.is_owner and place() != "elsewhere":
            raise DeviceError(f"{place()} is not done by the thread that owns the GPU")
        self.kernels[place()] += 0 if self.is_capturing else count

    @contextlib.contextmanager
    def capture(self, graph: Any, **_: object) -> Iterator[None]:
        """Stand in for ``torch.cuda.graph``."""
        if self.stream is self.default:
            raise DeviceError("the default stream cannot be captured")
        self.graph, self.older = {}, weakref.WeakSet(self.uses)
        try:
            yield
            graph.memory = {weakref.ref(part): writes for part, writes in self.graph.items()}
        finally:
            self.graph = None

    def replay(self, graph: Any) -> None:
        """Start a graph, which is one kernel."""
        self._start(1)
        memory = {part(): writes for part, writes in graph.memory.items()}
        if None in memory:
            raise DeviceError("a graph uses memory that was freed")
        self.use(self.stream, memory)

    @contextlib.contextmanager
    def using(self, stream: Clock) -> Iterator[None]:
        """Stand in for ``torch.cuda.stream``."""
        before, self.stream = self.stream, stream
        try:
            yield
        finally:
            self.stream = before

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Stand in for the thread that owns the GPU."""
        done: Future[Any] = Future()
        before, self.is_owner = self.is_owner, True
        try:
            done.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001  # as a thread pool does
            done.set_exception(error)
        finally:
            self.is_owner = before
        return done

    def empty_cache(self) -> None:
        if self.is_capturing:
            raise DeviceError("memory is freed during a capture")

    def graphs(self) -> dict[str, Any]:
        """Stand in for streams, events and graphs of ``torch.cuda``."""

        class Event(Clock):
            record = lambda event: event.wait_stream(self.stream)  # noqa: E731

            def synchronize(event) -> None:  # noqa: N805
                self._wait("event")
                self.host.wait_stream(event)

        class CUDAGraph:
            def replay(graph) -> None:  # noqa: N805
                self.replay(graph)

        return {
            "Stream": Clock,
            "current_stream": lambda: self.stream,
            "default_stream": lambda _index: self.default,
            "current_device": lambda: 0,
            "empty_cache": self.empty_cache,
            "stream": self.using,
            "CUDAGraph": CUDAGraph,
            "graph": self.capture,
            "graph_pool_handle": lambda: None,
            "Event": Event,
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
        mock.patch.multiple(
            device,
            _owner=lambda _index: recorder,
            _stream=functools.cache(lambda _index, priority: Clock(priority=priority)),
        ),
        mock.patch.object(FakeTensor, "tolist", lambda tensor: tensor.cpu().tolist()),  # one copy, as on a GPU
        torch.inference_mode(),
        recorder,
    ):
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor makes them on the CPU and copies them, as on a GPU
        try:
            yield recorder
        finally:
            torch._C._set_only_lift_cpu_tensors(False)


class HalfRange(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lets a CPU compute in fp32, notes the largest number by place, and refuses what fp16 on a GPU could not hold."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.largest: dict[str, float] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        where = place()
        if not where.startswith(HALF) or "masked_fill" in func.name():  # a mask is as low as its format allows
            return result
        for part in tree_leaves(result):
            if isinstance(part, Tensor) and part.is_floating_point() and part.numel():
                largest = float(part.abs().max())
                if not largest <= torch.finfo(torch.float16).max:
                    raise DeviceError(f"{func.name()} exceeds the range of fp16 in {where}: {largest:.0f}")
                self.largest[where] = max(self.largest.get(where, 0.0), largest)
        return result


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
