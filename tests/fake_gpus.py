"""GPUs that are not there: torch finds Apple's or Intel's, and what is put on it is on the processor."""

import threading
from typing import Any

import accelerate.state
import pytest
import torch
from torch.overrides import TorchFunctionMode

from utils.xtts import device

MEMORY = 12 << 30


class Redirected(TorchFunctionMode):
    """Puts on the processor what is asked for on another kind of device, and counts it."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.placed = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        named = {name: self._placed(value) for name, value in (kwargs or {}).items()}
        return func(*map(self._placed, args), **named)

    def _placed(self, value: Any) -> Any:
        if not isinstance(value, str | torch.device) or str(value).partition(":")[0] != self.kind:
            return value
        self.placed += 1
        return torch.device("cpu")


class FakeGpu:
    """What torch answers about a GPU that is not there; its generator is a real one."""

    def __init__(self, patch: pytest.MonkeyPatch, kind: str) -> None:
        self.generator = torch.Generator().manual_seed(7)
        self.emptied: list[str] = []  # threads that emptied its cache
        answers: dict[str, Any] = {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "synchronize": lambda *_: None,
            "empty_cache": lambda: self.emptied.append(threading.current_thread().name),
            "get_rng_state": lambda *_: self.generator.get_state(),
            "set_rng_state": lambda state, *_: self.generator.set_state(state),
        }
        if kind == "mps":
            answers |= {"driver_allocated_memory": lambda: 1 << 30, "recommended_max_memory": lambda: MEMORY}
            patch.setattr(torch.backends.mps, "is_available", lambda: True)
            patch.setattr(torch.backends.mps, "is_built", lambda: True)
        else:
            answers |= {
                "is_initialized": lambda: True,
                "current_device": lambda: 0,
                "is_current_stream_capturing": lambda: False,
                "set_device": lambda _device: None,
                "get_device_name": lambda *_: f"a GPU that torch calls {kind}",
                "mem_get_info": lambda *_: (MEMORY // 2, MEMORY),
                "max_memory_allocated": lambda *_: 2 << 30,
                "reset_peak_memory_stats": lambda *_: None,
            }
            patch.setattr(accelerate.state, "is_xpu_available", lambda: kind == "xpu")  # it remembers what it found
        for name, answer in answers.items():
            patch.setattr(getattr(torch, kind), name, answer)

    @staticmethod
    def in_every_thread(patch: pytest.MonkeyPatch) -> None:
        """Let the caller do what the thread that owns the GPU would do."""
        patch.setattr(device, "_as_owner", lambda _gpu, work: work())
