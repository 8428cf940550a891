"""The step of a decoder as one CUDA graph."""

import torch
from torch import Tensor

from utils.speech.kv_cache import Cache
from utils.speech.layers import Stack

WARM_UP = 3  # runs before the recording, as torch asks for


class Graphed:
    """Replays the step of a stack: one launch instead of several hundred small ones.

    It has not been run: there was no GPU where it was written. What it records, ``Stack.fixed_step``, is plain torch;
    a test compares it with ``Stack.step`` on a CPU. Memory is claimed for the longest sentence at once, so that a batch
    is recorded anew only when rows leave it.
    """

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.graph: torch.cuda.CUDAGraph | None = None
        self.recorded: Tensor | None = None  # the first layer of the cache that the graph belongs to

    def __call__(self, rows: Tensor, cache: Cache) -> Tensor:
        """Return the hidden states of one more column, and keep it in the cache."""
        cache.make_room()
        if self.graph is None or self.recorded is not cache.layers[0]:
            self._record(rows, cache)
        self.rows.copy_(rows)
        self.column.fill_(cache.end)
        self.mask[..., cache.end] = 0
        assert self.graph is not None  # noqa: S101  # for the type checker
        self.graph.replay()
        cache.end += 1
        return self.hidden.clone()

    def _record(self, rows: Tensor, cache: Cache) -> None:
        self.graph = None  # frees the memory of the one before
        self.recorded = cache.layers[0]
        self.rows, self.mask = rows.clone(), cache.hiding(cache.end + 1)
        self.column = torch.full((1,), cache.end, device=rows.device)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self.stack.fixed_step(self.rows, cache.layers, self.column, self.mask)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.hidden = self.stack.fixed_step(self.rows, cache.layers, self.column, self.mask)
        self.graph = graph
