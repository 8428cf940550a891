"""One more code of every row, over tensors that stay in place, so that a GPU replays the whole step as one CUDA graph.

A step embeds the newest codes, runs the layers, and samples the next codes; the host only chooses its shape. On a CPU
the shape is exact. For graphs it is rounded up, so few of them serve all sentences, and they are kept from one sentence
to the next: all read the same memory, which only grows. What a free row computes is never read.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from utils.config import SpeechConfig
from utils.speech.network import DecoderNetwork
from utils.speech.sampling import choose, random_numbers, row_settings
from utils.speech.types import Sentence

COLUMNS = 256  # a graph covers a multiple of these columns of the cache
MAX_GRAPHS = 32  # more than there are of one top k and up to 16 rows; beyond it, all are captured again
WARM_UP = 3  # runs before a capture, as the PyTorch documentation recommends

Outputs = tuple[Tensor, Tensor]  # codes with their log-probabilities, of shape (2, rows), and latents
StepResult = tuple[Tensor, Tensor, Any]  # the same; with a CUDA event, the codes are in RAM once it has happened


class Shape(NamedTuple):
    """What is fixed in a step."""

    rows: int
    columns: int  # of the cache
    top_k: tuple[int, int]  # the smallest and the largest of the rows
    is_even: bool  # whether every row gets its last column


class RowState(NamedTuple):
    """What is known of each row, in use or free."""

    counts: Tensor  # newest code, number of codes, number of columns, and what a step adds to both: 0 for a free row
    numbers: Tensor  # random numbers, one for each code
    settings: Tensor  # for sampling
    used: Tensor  # whether it has used a code


class DecodingStep:
    """The rows that are generated: their cache, their newest codes, and what samples the next ones."""

    def __init__(self, decoder: DecoderNetwork) -> None:
        self.decoder, device = decoder, decoder.device
        self.cache = decoder.stack.cache()
        self.state = RowState(
            torch.zeros(0, 4, dtype=torch.long, device=device),
            torch.zeros(0, decoder.max_codes + 1, device=device),
            torch.zeros(0, 4, device=device),
            torch.zeros(0, len(decoder.codes), dtype=torch.bool, device=device),
        )
        self.top_k: list[int] = []  # of each row
        self.graphs: dict[Shape, Callable[[], Outputs]] = {}
        self.captured: Tensor | None = None  # the first layer of the cache that the graphs read
        self.pool: Any = None  # memory that the graphs share, since only one runs at a time

    def reserve(self, rows: int, columns: int = 0) -> None:
        """Make room for this many rows and columns."""
        self.cache.reserve(*self._rounded(rows, columns))
        if missing := self.cache.layers[0].shape[1] - len(self.state.counts):
            grown = (torch.cat((each, each.new_zeros(missing, each.shape[1]))) for each in self.state)
            self.state = RowState(*grown)

    def add(self, sentence: Sentence, prompt: Tensor, config: SpeechConfig) -> None:
        """Add a row and read the prompt and the text of its sentence."""
        decoder, row, limit = self.decoder, len(self.top_k), self.decoder.limit(sentence)
        columns = prompt.shape[-2] + len(sentence.tokenized.ids) + 2 + limit + 1  # an ended row does one step more
        self.reserve(row + 1, columns if decoder.uses_graphs else 0)
        decoder.read(sentence, prompt, self.cache)
        counts, numbers, settings, used = (each[row] for each in self.state)
        counts.copy_(torch.tensor([decoder.start, 0, self.cache.lengths[row], 1]), non_blocking=True)
        numbers[:limit].copy_(random_numbers(sentence.seed, limit), non_blocking=True)
        settings.copy_(row_settings(config, len(used)), non_blocking=True)
        used.zero_()
        for code in decoder.used_codes:
            used[code] = True
        self.top_k.append(min(config.top_k, len(used)))

    def select(self, rows: list[int]) -> None:
        """Take these rows in this order."""
        self.cache.select(rows)
        self.top_k = [self.top_k[row] for row in rows]
        index = torch.tensor(rows, dtype=torch.long).to(self.decoder.device, non_blocking=True)
        for each in self.state:
            each[: len(rows)] = each[index]
        self.state.counts[len(rows) :] = 0

    def __call__(self) -> StepResult:
        """Start a step of all rows; it may be read when the next one has been started."""
        count, uses_graph = len(self.top_k), self.decoder.uses_graphs
        end, is_even = self.cache.extend()
        top_k = min(self.top_k), max(self.top_k)
        shape = Shape(*self._rounded(count, end), top_k, is_even and not uses_graph)
        if not uses_graph:
            return *self.compute(shape), None
        chosen, latents = self._replay(shape)
        chosen, arrival = chosen.to("cpu", non_blocking=True, copy=True), None
        if self.decoder.device.type == "cuda":
            arrival = torch.cuda.Event()  # type: ignore[no-untyped-call]
            arrival.record()
        return chosen, latents[:count].clone(), arrival

    def _rounded(self, rows: int, columns: int) -> tuple[int, int]:
        """Round up for graphs, of which a few then serve all sentences."""
        if not self.decoder.uses_graphs:
            return rows, columns
        return 1 << (rows - 1).bit_length(), math.ceil(columns / COLUMNS) * COLUMNS

    def compute(self, shape: Shape) -> Outputs:
        """Do a step; nothing here depends on the host but the shape."""
        decoder = self.decoder
        counts, numbers, settings, used = (each[: shape.rows] for each in self.state)
        codes, positions, lengths, _ = counts.unbind(1)
        layers = [layer[:, : shape.rows, :, : shape.columns] for layer in self.cache.layers]
        hidden = decoder.stack.column(decoder.embed(codes, positions), layers, None if shape.is_even else lengths)
        latents = decoder.norm(hidden.float())
        number = numbers.gather(1, positions[:, None])[:, 0]
        chosen, logprobs = choose(decoder.scores(latents), number, used, settings, shape.top_k)
        codes.copy_(chosen)
        counts[:, 1:3].add_(counts[:, 3:])
        return torch.stack((chosen.float(), logprobs)), latents

    def _replay(self, shape: Shape) -> Outputs:
        """Do the same through the graph of this shape, which is captured once."""
        has_grown = self.captured is not self.cache.layers[0]
        if has_grown or (len(self.graphs) == MAX_GRAPHS and shape not in self.graphs):
            self.graphs.clear()
            self.captured = self.cache.layers[0]
            self.pool = torch.cuda.graph_pool_handle() if self.captured.device.type == "cuda" else None
        if shape not in self.graphs:
            state = self.state.counts, self.state.used
            self.graphs[shape] = capture(partial(self.compute, shape), state, self.pool)
        return self.graphs[shape]()


def capture(compute: Callable[[], Outputs], state: Sequence[Tensor], pool: Any) -> Callable[[], Outputs]:  # noqa: ANN401  # torch's token
    """Capture a function as a CUDA graph and return its replay; ``state`` is what the function changes."""
    if state[0].device.type == "cpu":
        return compute
    before = [each.clone() for each in state]
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            compute()
            for each, copy in zip(state, before, strict=True):
                each.copy_(copy)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):  # other threads vocode meanwhile
        outputs = compute()

    def replay() -> Outputs:
        graph.replay()
        return outputs

    return replay
