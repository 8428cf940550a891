"""From the tokens of a text to the codes of its sound, and to the vectors that the vocoder reads.

What the GPT sees is ``prompt | text | start code 1 code 2 ...``, where text and codes are counted from zero each. The
hidden state behind one column gives the scores of the next code, and the very same vector is what the vocoder wants of
that code: coqui's second pass over the finished sentence begins with the start code and drops the last columns, so its
vector number i is the one that code i was predicted from. Nothing needs to be computed twice.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from utils.core.errors import ConfigError, TextError, VocabularyError
from utils.speech import beam_search, quantized
from utils.speech.cuda_graphs import Graphed
from utils.speech.kv_cache import Cache
from utils.speech.layers import Norm, Stack
from utils.speech.precision import require
from utils.speech.sampling import Batch, Picked, draws
from utils.speech.types import Sampling
from utils.xtts.files import ModelFileError

Step = Callable[[Tensor, Cache], Tensor]


class Request(NamedTuple):
    """A text to be said.

    Attributes:
        ids: Its tokens, without those at both ends.
        prompt: What the voice begins with, of shape (32, dim) or (1, 32, dim).
        sampling: How its codes are chosen.
        seed: Same seed, same codes, in whatever company.
        limit: Most codes, the one that ends it included.
    """

    ids: Sequence[int]
    prompt: Tensor
    sampling: Sampling
    seed: int
    limit: int


class Said(NamedTuple):
    """One more code.

    Attributes:
        index: Which request it belongs to.
        code: The code.
        latent: What the vocoder reads of it, of shape (dim,) and in fp32.
        ended: Whether it is the code that ends the sentence; coqui's vocoder reads its latent too.
        last: Whether no other follows, because of that or of the limit.
        logprob: How likely it was, by the scores of the model as they are.
    """

    index: int  # type: ignore[assignment]  # hides the method of tuples, which nobody needs here
    code: int
    latent: Tensor
    ended: bool
    last: bool = False
    logprob: float = 0.0


class Generated(NamedTuple):
    """All codes of one request.

    Attributes:
        codes: Of shape (n,), the code that ends it included, as coqui's generate gives them.
        latents: Of shape (n, dim) and in fp32.
        ended: Whether the last code is the one that ends it.
        logprob: How likely all codes together were, by the scores of the model as they are.
    """

    codes: Tensor
    latents: Tensor
    ended: bool
    logprob: float


@dataclass
class _Row:
    """A request that is being said: most codes, its random numbers, and whether it has ended."""

    index: int
    limit: int
    numbers: list[float]
    done: bool = False

    @classmethod
    def of(cls, index: int, request: Request, most: int) -> "_Row":
        limit = min(request.limit, most)
        return cls(index, limit, draws(request.seed, limit))

    def number(self, position: int) -> float:
        """Return the random number of a position; a row that has ended needs none."""
        return 0.0 if self.done else self.numbers[position]


class Decoder:
    """coqui's GPT, ready to say many texts at once.

    Attributes:
        said: Codes that the repetition penalty takes as said before the first; coqui's would be (1, start).
        most_codes: Codes that a sentence can have.
        text_limit: Tokens that a text can have.
        look: Is called at each step; what it raises ends the work.
    """

    def __init__(self, gpt: Any, precision: quantized.Precision, device: torch.device, *, consume: bool) -> None:  # noqa: ANN401  # coqui's class
        self.precision, self.device = precision, device
        self.start, self.stop = int(gpt.start_audio_token), int(gpt.stop_audio_token)
        self.text_ends = int(gpt.start_text_token), int(gpt.stop_text_token)
        self.text, self.text_positions = self._rows(gpt.text_embedding), self._rows(gpt.text_pos_embedding.emb)
        self.codes, self.positions = self._rows(gpt.mel_embedding), self._rows(gpt.mel_pos_embedding.emb)
        self.said: tuple[int, ...] = (self.start,)
        self.look: Callable[[], object] = _nothing
        self.most_codes = int(gpt.max_gen_mel_tokens)
        self.text_limit = len(self.text_positions) - 2
        self.norm = Norm.of(gpt.final_norm, device)
        self.head = quantized.linear(gpt.mel_head.weight.to(device), gpt.mel_head.bias.to(device), precision)
        self.stack = Stack(gpt.gpt, precision, device, consume=consume)

    @classmethod
    def of(
        cls,
        gpt: nn.Module,
        precision: Literal["fp32", "bf16", "fp16", "int8"] = "fp32",
        device: str = "cpu",
        *,
        consume: bool = False,
    ) -> Self:
        """Copy what is needed of coqui's GPT, which need not be prepared for generating.

        Args:
            gpt: The GPT, on any device.
            precision: What the weights are stored in; embeddings and norms stay fp32 on a CPU.
            device: Where to compute.
            consume: Take each layer out of the GPT once it was copied: it is of no use afterwards, and both together
                never take more memory than the GPT and one layer.
        """
        require("gpt", precision, device)
        with torch.inference_mode():
            return cls(gpt, precision, torch.device(device), consume=consume)

    def _rows(self, embedding: nn.Embedding) -> Tensor:
        return embedding.weight.detach().to(self.device, torch.float32, copy=True)

    @property
    def dim(self) -> int:
        """Return the width of a latent."""
        return self.stack.dim

    def steps(self, requests: Sequence[Request]) -> Generator[list[Said], None, None]:
        """Say texts together, and give the new code of each that has not ended, step by step.

        Closing the iterator frees all that was kept of them at once. A text with several beams is searched when the
        others have ended, and its codes come out one by one behind.

        Raises:
            TextError: When a text has too many tokens.
        """
        for request in requests:
            self._check(request)
        return self._steps(list(requests))

    def _steps(self, requests: list[Request]) -> Generator[list[Said], None, None]:
        drawn = [index for index, request in enumerate(requests) if request.sampling.beams == 1]
        if drawn:
            yield from self._drawn(requests, drawn)
        for index, request in enumerate(requests):
            if request.sampling.beams > 1:
                yield from self._searched(index, request)

    def generate(self, requests: Sequence[Request]) -> list[Generated]:
        """Say texts together and give all codes of each."""
        kept: list[list[Said]] = [[] for _ in requests]
        for step in self.steps(requests):
            for said in step:
                kept[said.index].append(said)
        return [_joined(one) for one in kept]

    def forced(self, request: Request, codes: Tensor) -> Tensor:
        """Return the scores before each of the given codes and behind the last, of shape (n + 1, codes)."""
        return self.retold(request, codes)[0]

    def retold(self, request: Request, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores and the latents of given codes in one pass, each of n + 1 rows and in fp32.

        Latent i is that of code i; the last row belongs to a code that is not given.
        """
        self._check(request)
        if len(codes) >= len(self.positions):
            raise ConfigError(f"{len(codes)} codes are too many for this model.", hint="Give fewer.")
        with torch.inference_mode():
            latents = self._latents(self.stack.read(self._sequence(request, codes.tolist()))[-len(codes) - 1 :])
            return self._scores(latents), latents

    def _check(self, request: Request) -> None:
        if len(request.ids) > self.text_limit:
            raise TextError(
                f"A text of {len(request.ids)} tokens is too long to say at once; {self.text_limit} can be said.",
                hint="Divide it.",
            )
        if any(not 0 <= token < len(self.text) for token in request.ids):
            raise VocabularyError("A text has tokens that the model does not know.", hint="Use the model's own tokens.")
        if request.prompt.shape[-1] != self.dim:
            raise ModelFileError(
                f"A voice of width {request.prompt.shape[-1]} does not fit a model of width {self.dim}.",
                hint="Make the voice again with this model.",
            )
        if request.limit < 1:
            raise ConfigError(f"A sentence of at most {request.limit} codes cannot be said.", hint="Allow more.")

    def _sequence(self, request: Request, codes: Sequence[int] = ()) -> Tensor:
        """Return the embeddings that a request begins with, the start code and given codes included."""
        start, stop = self.text_ends
        text = self.text[[start, *request.ids, stop]]
        sound = self.codes[[self.start, *codes]]
        return torch.cat(
            (
                self._prompt(request.prompt),
                text + self.text_positions[: len(text)],
                sound + self.positions[: len(sound)],
            )
        )

    def _latents(self, hidden: Tensor) -> Tensor:
        return self.norm(hidden.float())

    def _scores(self, latents: Tensor) -> Tensor:
        return self.head(latents.to(self.stack.dtype)).float()

    def _begun(self, requests: Sequence[Request]) -> tuple[Cache, Tensor]:
        """Read texts one by one into a common cache; return the latents of their first codes too."""
        sequences = [self._sequence(request) for request in requests]
        room = max(min(request.limit, self.most_codes) for request in requests)
        cache = self.stack.cache([len(one) for one in sequences], room)
        last, heard = [], self._heard(requests)
        for row, request in enumerate(requests):
            kept, voice = cache.row(row), heard.get(id(request.prompt), [])
            for own, common in zip(kept, voice, strict=False):
                own[:, :, :, : common.shape[3]] = common
            begun = voice[0].shape[3] if voice else 0
            last.append(self.stack.read(sequences[row][begun:], kept, begun)[-1])
        return cache, self._latents(torch.stack(last))

    def _heard(self, requests: Sequence[Request]) -> dict[int, list[Tensor]]:
        """Read voices that several texts begin with, once for all of them; return what is kept of each."""
        times = Counter(id(request.prompt) for request in requests)
        shared = {id(request.prompt): request.prompt for request in requests if times[id(request.prompt)] > 1}
        heard = {}
        for name, prompt in shared.items():
            sequence = self._prompt(prompt)
            heard[name] = self.stack.cache([len(sequence)], 0).row(0)
            self.stack.read(sequence, heard[name])
        return heard

    def _prompt(self, prompt: Tensor) -> Tensor:
        return prompt.to(self.device, torch.float32).reshape(-1, self.dim)

    def _next(self, codes: Tensor, position: int, cache: Cache, step: Step) -> Tensor:
        """Return the latents behind one more code of each row."""
        return self._latents(step(self.codes[codes] + self.positions[position], cache))

    def _step(self) -> Step:
        """Return what runs the stack for one batch."""
        return Graphed(self.stack) if self.device.type == "cuda" else self.stack.step

    def _drawn(self, requests: list[Request], chosen: list[int]) -> Generator[list[Said], None, None]:
        """Say the chosen requests together, and let rows that have ended go."""
        rows = [_Row.of(index, requests[index], self.most_codes) for index in chosen]
        with torch.inference_mode():
            batch = Batch([requests[index].sampling for index in chosen], len(self.codes), self.said, self.device)
            cache, latents = self._begun([requests[index] for index in chosen])
        position, step = 0, self._step()
        while True:
            self.look()
            with torch.inference_mode():
                picked = batch.pick(self._scores(latents), [row.number(position) for row in rows])
                position += 1
                said = list(self._told(rows, picked, latents, position))
            yield said
            going = [number for number, row in enumerate(rows) if not row.done]
            if not going:
                return
            with torch.inference_mode():
                codes = picked.codes
                if self._worth_leaving(len(going), len(rows)):
                    rows = [rows[number] for number in going]
                    kept = torch.tensor(going, device=self.device)
                    codes = codes[kept]
                    batch.keep(kept)
                    cache.keep(going)
                latents = self._next(codes, position, cache, step)

    def _told(self, rows: list["_Row"], picked: Picked, latents: Tensor, position: int) -> Iterator[Said]:
        """Tell what each row said that has not ended before, and mark those that end with it."""
        parts = zip(rows, picked.codes.tolist(), latents, picked.logprobs.tolist(), strict=True)
        for row, code, latent, chance in parts:
            if not row.done:
                row.done = code == self.stop or position == row.limit
                yield Said(row.index, code, latent, code == self.stop, row.done, chance)

    def _worth_leaving(self, going: int, rows: int) -> bool:
        """Tell whether the batch is made smaller; on a GPU a row more costs little, and a new graph much."""
        return going < rows if self.device.type == "cpu" else 2 * going <= rows

    def _searched(self, index: int, request: Request) -> Generator[list[Said], None, None]:
        """Search for the best reading; nothing is said until it was found, but each step can be the last."""
        with torch.inference_mode():
            search = self._search(request)
        while search.going:
            self.look()
            with torch.inference_mode():
                search.advance()
            yield []
        with torch.inference_mode():
            found = search.best()
        del search
        codes = found.codes.tolist()
        for number, (code, latent, chance) in enumerate(zip(codes, found.latents, found.logprobs, strict=True), 1):
            yield [Said(index, code, latent, code == self.stop, number == len(codes), chance)]

    def _search(self, request: Request) -> beam_search.Search:
        cache, latents = self._begun([request])

        def follow(parents: list[int], codes: Tensor, position: int) -> Tensor:
            cache.keep(parents)
            return self._next(codes, position, cache, self.stack.step)  # a graph would be recorded at every step

        limit = min(request.limit, self.most_codes)
        return beam_search.Search(
            latents, self._scores, follow, request.sampling, said=self.said, stop=self.stop, limit=limit
        )


def _nothing() -> None:
    """Let the work go on."""


def _joined(said: list[Said]) -> Generated:
    codes = torch.tensor([one.code for one in said])
    latents = torch.stack([one.latent for one in said]).float()
    return Generated(codes, latents, said[-1].ended, sum(one.logprob for one in said))
