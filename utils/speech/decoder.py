"""Generates the audio codes of sentences with coqui's GPT, and the latents that the vocoder reads.

The GPT sees ``prompt | text | start code 1 code 2 ...``, where text and codes have positions of their own. The hidden
state of a column predicts the next code, and the same vector is the latent that the vocoder wants for that code. coqui
computes it again in a second pass over the finished sentence; here nothing is computed twice.
"""

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from utils.config import SpeechConfig
from utils.core.errors import TextError
from utils.speech.layers import GraphedStep, KeyValueCache, LayerNorm, LayerStack, Precision, linear
from utils.speech.precision import require
from utils.speech.sampling import BeamSearch, Sampler, random_numbers
from utils.speech.types import Sentence
from utils.xtts.certificate import DECODING, failure

logger = logging.getLogger(__name__)

Generations = Generator[list["Generation"], None, None]


@dataclass(eq=False)
class Generation:
    """The codes of one sentence; it grows while the decoder steps."""

    codes: list[int] = field(default_factory=list)  # with the stop code where the model ended the sentence
    latents: list[Tensor] = field(default_factory=list)  # one vector per code in fp32, which the vocoder reads
    logprobs: list[float] = field(default_factory=list)  # the model's log-probability of each code
    ended: bool = False  # whether the last code is the stop code
    finished: bool = False  # whether no more codes follow


class Decoder:
    """coqui's GPT, prepared for generating many sentences at once.

    Embeddings and norms stay fp32 on a CPU. ``consume`` removes each layer from the GPT once it is copied, so that both
    together never need more memory than the GPT and one layer.
    """

    @torch.inference_mode()
    def __init__(self, gpt: Any, precision: Precision = "fp32", device: str = "cpu", *, consume: bool = False) -> None:  # noqa: ANN401  # coqui's class
        require("gpt", precision, device)
        self.device = torch.device(device)
        self.start, self.stop = int(gpt.start_audio_token), int(gpt.stop_audio_token)
        self.text_start, self.text_stop = int(gpt.start_text_token), int(gpt.stop_text_token)
        self.text, self.text_positions = self._table(gpt.text_embedding), self._table(gpt.text_pos_embedding.emb)
        self.codes, self.positions = self._table(gpt.mel_embedding), self._table(gpt.mel_pos_embedding.emb)
        self.used_codes: tuple[int, ...] = (self.start,)  # for the repetition penalty; coqui's would be (1, start)
        self.on_step: Callable[[], object] = lambda: None  # called at each step; an exception stops the work
        self.max_codes = int(gpt.max_gen_mel_tokens)  # of a sentence
        self.max_tokens = len(self.text_positions) - 2
        self.norm = LayerNorm.of(gpt.final_norm, self.device)
        self.head = linear(gpt.mel_head.weight.to(self.device), gpt.mel_head.bias.to(self.device), precision)
        self.stack = LayerStack(gpt.gpt, precision, self.device, consume=consume)
        self.uses_graphs = self.device.type == "cuda"
        if self.uses_graphs and (problem := failure(self.device, [DECODING])):
            logger.warning("Speech runs without CUDA graphs. %s", problem)
            self.uses_graphs = False

    def _table(self, embedding: nn.Embedding) -> Tensor:
        return embedding.weight.detach().to(self.device, torch.float32, copy=True)

    def generate(self, sentences: Sequence[Sentence], prompt: Tensor, config: SpeechConfig) -> list[Generation]:
        """Generate sentences together; ``prompt`` has the conditioning latents of the voice, (1, 32, dim)."""
        generations: list[Generation] = []
        for current in self.steps(sentences, prompt, config):
            generations = current
        return generations

    def steps(self, sentences: Sequence[Sentence], prompt: Tensor, config: SpeechConfig) -> Generations:
        """Generate sentences together and yield all of them, grown by one code, after each step.

        Closing the iterator frees the cache. With beams, sentences are searched one by one, and the codes of a sentence
        appear when its search is done.
        """
        for sentence in sentences:
            if len(sentence.tokenized.ids) > self.max_tokens:
                raise TextError(
                    f"A sentence of {len(sentence.tokenized.ids)} tokens is too long: the limit is {self.max_tokens}.",
                    hint="Split it.",
                )
        return (self._sample if config.beams == 1 else self._search)(sentences, prompt, config)

    def _sample(self, sentences: Sequence[Sentence], prompt: Tensor, config: SpeechConfig) -> Generations:
        """Sample sentences in one batch, which shrinks when sentences end."""
        if not sentences:
            return
        generations = [Generation() for _ in sentences]
        limits = [self._limit(sentence) for sentence in sentences]
        rows = list(range(len(sentences)))  # the sentence of each row of the batch
        step = GraphedStep(self.stack) if self.uses_graphs else self.stack.step
        with torch.inference_mode():
            sampler = Sampler(config, len(rows), len(self.codes), self.used_codes, self.device)
            drawn = [random_numbers(each.seed, max(limits)) for each in sentences]  # a shorter list begins a longer one
            numbers = torch.tensor(drawn, dtype=torch.float32).to(self.device)
            cache, latents = self._prefill(sentences, prompt)
        for position in range(max(limits)):
            self.on_step()
            with torch.inference_mode():
                codes, logprobs = sampler.choose(self._scores(latents), numbers[:, position])
                chosen = torch.stack((codes.float(), logprobs)).tolist()  # the only wait for the device in a step
                for row, code, logprob, latent in zip(rows, *chosen, latents, strict=True):
                    if not generations[row].finished:
                        self._add(generations[row], int(code), latent, logprob, limits[row])
            yield generations
            running = [index for index, row in enumerate(rows) if not generations[row].finished]
            if not running:
                return
            with torch.inference_mode():
                if self._worth_shrinking(len(running), len(rows)):
                    rows = [rows[index] for index in running]
                    selected = torch.tensor(running, device=self.device)
                    codes, numbers = codes[selected], numbers[selected]
                    sampler.used = sampler.used[selected]
                    cache.select(running)
                latents = self._next(codes, position + 1, cache, step)

    def _worth_shrinking(self, running: int, rows: int) -> bool:
        """Return whether to drop finished rows; on a GPU an extra row costs little and a new graph much."""
        return running < rows if self.device.type == "cpu" else 2 * running <= rows

    def _search(self, sentences: Sequence[Sentence], prompt: Tensor, config: SpeechConfig) -> Generations:
        generations = [Generation() for _ in sentences]
        for sentence, generation in zip(sentences, generations, strict=True):
            with torch.inference_mode():
                search = self._new_search(sentence, prompt, config)
            while search.running:
                self.on_step()
                with torch.inference_mode():
                    search.step()
                yield generations
            with torch.inference_mode():
                best = search.best()
            del search
            for code, latent, logprob in zip(*best, strict=True):
                self._add(generation, code, latent, logprob, len(best[0]))
                yield generations

    def _new_search(self, sentence: Sentence, prompt: Tensor, config: SpeechConfig) -> BeamSearch:
        cache, latents = self._prefill([sentence], prompt)

        def advance(parents: list[int], codes: Tensor, position: int) -> Tensor:
            cache.select(parents)
            return self._next(codes, position, cache, self.stack.step)  # a CUDA graph would be recorded at every step

        limit = self._limit(sentence)
        return BeamSearch(latents, self._scores, advance, config, used=self.used_codes, stop=self.stop, limit=limit)

    def _add(self, generation: Generation, code: int, latent: Tensor, logprob: float, limit: int) -> None:
        generation.codes.append(code)
        generation.latents.append(latent)
        generation.logprobs.append(logprob)
        generation.ended = code == self.stop
        generation.finished = generation.ended or len(generation.codes) == limit

    def score(self, sentence: Sentence, prompt: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Score given codes in one pass (teacher forcing).

        Returns:
            The scores and the latents, each of n + 1 rows in fp32. Row i belongs to code i; the last row belongs to
            the code that would follow.
        """
        with torch.inference_mode():
            hidden = self.stack.read(self._embed(sentence, prompt, codes.tolist()))
            latents = self.norm(hidden[-len(codes) - 1 :].float())
            return self._scores(latents), latents

    def _limit(self, sentence: Sentence) -> int:
        return min(sentence.max_codes, self.max_codes)

    def _embed(self, sentence: Sentence, prompt: Tensor, codes: Sequence[int] = ()) -> Tensor:
        """Return the embeddings of the prompt, the text, the start code and given codes."""
        text = self.text[[self.text_start, *sentence.tokenized.ids, self.text_stop]]
        audio = self.codes[[self.start, *codes]]
        text, audio = text + self.text_positions[: len(text)], audio + self.positions[: len(audio)]
        return torch.cat((self._rows(prompt), text, audio))

    def _rows(self, prompt: Tensor) -> Tensor:
        return prompt.to(self.device, torch.float32).reshape(-1, self.stack.dim)

    def _scores(self, latents: Tensor) -> Tensor:
        return self.head(latents.to(self.stack.dtype)).float()

    def _prefill(self, sentences: Sequence[Sentence], prompt: Tensor) -> tuple[KeyValueCache, Tensor]:
        """Read sentences into a common cache, the prompt once for all; return the latents of their first codes too."""
        sequences = [self._embed(sentence, prompt) for sentence in sentences]
        cache = self.stack.cache([len(each) for each in sequences], max(map(self._limit, sentences)))
        common: list[Tensor] = []  # keys and values of the prompt for each layer
        if len(sentences) > 1:
            rows = self._rows(prompt)
            common = self.stack.cache([len(rows)], 0).row(0)
            self.stack.read(rows, common)
        known = common[0].shape[3] if common else 0
        last = []
        for index, sequence in enumerate(sequences):
            layers = cache.row(index)
            for own, shared in zip(layers, common, strict=False):
                own[:, :, :, :known] = shared
            last.append(self.stack.read(sequence[known:], layers, known)[-1])
        return cache, self.norm(torch.stack(last).float())

    def _next(
        self, codes: Tensor, position: int, cache: KeyValueCache, step: Callable[[Tensor, KeyValueCache], Tensor]
    ) -> Tensor:
        return self.norm(step(self.codes[codes] + self.positions[position], cache).float())
