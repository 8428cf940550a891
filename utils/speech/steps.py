"""One more code of every row, over tensors that stay in place, so that a GPU replays the whole step as one CUDA graph.

A step embeds the newest codes, runs the layers, and samples the next codes; the host only chooses its shape. On a CPU
the shape is exact. For graphs it is rounded up, so few of them serve all sentences, and they are kept from one sentence
to the next: all read the same memory, which only grows. What a free row computes is never read. On the GPUs of Apple
and Intel, which have no graphs here, it is rounded up too, as each new shape is prepared anew.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from utils.config import SpeechConfig
from utils.core.facts import log_fact
from utils.speech.facts import SpeechHindered
from utils.speech.network import DecoderNetwork
from utils.speech.sampling import choose, random_numbers, row_settings
from utils.speech.types import Sentence
from utils.xtts.device import Arrival, is_out_of_memory, to_device, to_host, trim_memory

COLUMNS = 256  # a graph covers a multiple of these columns of the cache
TOP_K = 64  # and any top k up to a multiple of this
LOADED_COLUMNS = 2 * COLUMNS  # for which graphs are captured when a model is loaded: sentences of up to ten seconds
MAX_GRAPHS = 32  # more than there are of one top k and up to 16 rows; beyond it, all are captured again
WARM_UP = 3  # runs before a capture, as the PyTorch documentation recommends

Outputs = tuple[Tensor, Tensor]  # codes with their log-probabilities, of shape (2, rows), and latents
StepResult = tuple[Arrival, Tensor]  # the same; once the codes have arrived, the latents are complete
Joining = tuple[Sentence, Tensor, SpeechConfig]  # a sentence, the prompt of its voice, and its settings


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
        self.decoder = decoder
        device = decoder.device
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
        self.is_full = False  # memory ran out in a capture: no graphs until all rows have ended

    @property
    def uses_graphs(self) -> bool:
        return self.decoder.uses_graphs and not self.is_full

    @property
    def rounds_up(self) -> bool:
        return self.decoder.rounds_up and not self.is_full

    def reserve(self, rows: int, columns: int = 0) -> None:
        """Make room for this many rows and columns."""
        self.cache.reserve(*self._rounded(rows, columns))
        if (missing := self.cache.layers[0].shape[1] - len(self.state.counts)) > 0:
            grown = (torch.cat((each, each.new_zeros(missing, each.shape[1]))) for each in self.state)
            self.state = RowState(*grown)

    def warm_up(self, rows: int) -> None:
        """Capture the graphs of all numbers of rows before the first sentence."""
        self.reserve(rows, LOADED_COLUMNS)
        for columns in range(COLUMNS, LOADED_COLUMNS + 1, COLUMNS):
            for size in range(rows.bit_length()):
                if self.uses_graphs:
                    self._graph(Shape(1 << size, columns, (0, TOP_K), is_even=False))
        self.is_full = False

    # Long because it makes one array for each field of the state, and they share rows and limits.
    def add(self, joining: Sequence[Joining]) -> None:
        """Add rows and read the prompts and the texts of their sentences."""
        decoder = self.decoder
        first = len(self.top_k)
        sentences, prompts, configs = zip(*joining, strict=True)
        limits = [decoder.limit(sentence) for sentence in sentences]
        sizes = (len(s.tokenized.ids) + limit for s, limit in zip(sentences, limits, strict=True))
        columns = prompts[0].shape[-2] + max(sizes) + 3  # an ended row does one step more
        self.reserve(first + len(joining), columns)
        decoder.read(sentences, prompts, self.cache)
        numbers, used = (torch.zeros(len(joining), each.shape[1], dtype=each.dtype) for each in self.state[1::2])
        for row, sentence, limit in zip(numbers, sentences, limits, strict=True):
            row[:limit] = random_numbers(sentence.seed, limit)
        used[:, list(decoder.used_codes)] = True
        counts = torch.tensor([[decoder.start, 0, length, 1] for length in self.cache.lengths[first:]])
        settings = torch.stack([row_settings(config, used.shape[1]) for config in configs])
        for own, new in zip(self.state, (counts, numbers, settings, used), strict=True):
            own[first : first + len(joining)] = to_device(new, decoder.device)
        self.top_k += [min(config.top_k, used.shape[1]) for config in configs]

    def select(self, rows: list[int]) -> None:
        """Take these rows in this order."""
        self.is_full = self.is_full and bool(rows)
        self.cache.select(rows)
        self.top_k = [self.top_k[row] for row in rows]
        index = to_device(torch.tensor(rows, dtype=torch.long), self.decoder.device)
        for each in self.state:
            each[: len(rows)] = each[index]
        self.state.counts[len(rows) :] = 0

    def __call__(self) -> StepResult:
        """Start a step of all rows; it may be read when the next one has been started."""
        count = len(self.top_k)
        end, is_even = self.cache.extend()
        if not self.rounds_up:
            chosen, latents = self.compute(Shape(count, end, (min(self.top_k), max(self.top_k)), is_even))
            return to_host(chosen), latents
        span = 0, min(math.ceil(max(self.top_k) / TOP_K) * TOP_K, self.state.used.shape[1])
        shape = Shape(*self._rounded(count, end), span, is_even=False)
        chosen, latents = self._graph(shape)() if self.uses_graphs else self.compute(shape)
        latents = latents[:count].clone()  # before the next step replaces them
        return to_host(chosen), latents

    def _rounded(self, rows: int, columns: int) -> tuple[int, int]:
        """Round up for graphs and some GPUs: a few shapes then serve all sentences."""
        if not self.rounds_up:
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

    # Long because a capture that fails leaves the rows as they were, and all that it holds is freed outside of except.
    def _graph(self, shape: Shape) -> Callable[[], Outputs]:
        """Return what does the same through the graph of this shape, which is captured once."""
        compute = partial(self.compute, shape)
        state = (self.state.counts, self.state.used)
        has_grown = self.captured is not self.cache.layers[0]
        if has_grown or (len(self.graphs) == MAX_GRAPHS and shape not in self.graphs):
            self.graphs.clear()
            self.captured = self.cache.layers[0]
            self.pool = torch.cuda.graph_pool_handle() if self.captured.device.type == "cuda" else None
        if shape not in self.graphs:
            before = [each.clone() for each in state]
            try:
                self.graphs[shape] = capture(compute, state, self.pool)
            except RuntimeError as error:  # of any kind: each step works without a graph too
                for each, copy in zip(state, before, strict=True):
                    each.copy_(copy)
                self.is_full = is_out_of_memory(error)
                problem = str(error)
            if shape not in self.graphs:  # outside of except, which holds what must be freed
                self._give_up(problem)
                return compute
        return self.graphs[shape]

    def _give_up(self, problem: str) -> None:
        """Free all graphs and do without, until these rows have ended or, if memory is not the problem, for good."""
        self.graphs.clear()
        self.captured = self.pool = None
        if self.is_full:
            log_fact(SpeechHindered("no_graphs_now", problem))
            trim_memory()
        else:
            self.decoder.stop_graphs(problem)


def capture(compute: Callable[[], Outputs], state: Sequence[Tensor], pool: Any) -> Callable[[], Outputs]:  # noqa: ANN401  # torch's token
    """Capture a function as a CUDA graph on this stream, and return its replay; ``state`` is what it changes."""
    if state[0].device.type != "cuda":
        return compute
    before = [each.clone() for each in state]
    for _ in range(WARM_UP):
        compute()
        for each, copy in zip(state, before, strict=True):
            each.copy_(copy)
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.current_stream()
    with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
        outputs = compute()

    def replay() -> Outputs:
        graph.replay()
        return outputs

    return replay
