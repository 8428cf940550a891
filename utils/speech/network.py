"""Generates the audio codes of sentences with coqui's GPT, and the latents that the vocoder reads.

The GPT sees ``prompt | text | start code 1 code 2 ...``, where text and codes have positions of their own. The hidden
state of a column predicts the next code, and the same vector is the latent that the vocoder wants for that code. coqui
computes it again in a second pass over the finished sentence; here nothing is computed twice.
"""

import math
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from utils.core.facts import log_fact
from utils.speech.facts import SentenceTooLongError, SpeechHindered
from utils.speech.layers import KeyValueCache, LayerNorm, LayerStack, Precision, linear
from utils.speech.precision import require
from utils.speech.types import Sentence
from utils.xtts.certificate import DECODING, THREADS, failure
from utils.xtts.device import UNTESTED, Lane, to_device
from utils.xtts.kernels import Operators

if TYPE_CHECKING:
    from collections.abc import Callable

VOICES = 4  # prompts whose keys and values are kept
TEXT_STEP = 16  # tokens; on a GPU, texts are read in multiples of it, as each new length selects kernels anew


class DecoderNetwork:
    """coqui's GPT, prepared for generating; what it computes for a sentence does not depend on the others.

    Embeddings and norms stay fp32 on a CPU. ``consume`` removes each layer from the GPT once it is copied, so that both
    together never need more memory than the GPT and one layer. ``certificate`` says what was tested on the GPU.
    """

    # Long because it is a flat list of what the network is made of.
    def __init__(
        self,
        gpt: Any,  # noqa: ANN401  # coqui's class
        precision: Precision = "fp32",
        device: str = "cpu",
        *,
        consume: bool = False,
        certificate: Path | None = None,
    ) -> None:
        require("gpt", precision, device)
        self.device = torch.device(device)
        self.lane = Lane(self.device, is_urgent=True)
        self.start, self.stop = int(gpt.start_audio_token), int(gpt.stop_audio_token)
        self.text_start, self.text_stop = int(gpt.start_text_token), int(gpt.stop_text_token)
        self.used_codes: tuple[int, ...] = (self.start,)  # for the repetition penalty; coqui's would be (1, start)
        self.on_step: Callable[[], object] = lambda: None  # called at each step; an exception stops the work
        self.max_codes = int(gpt.max_gen_mel_tokens)  # of a sentence
        self.lane.run(partial(self._load, gpt, precision, consume=consume))
        self.max_tokens = len(self.text_positions) - 2
        self.uses_graphs = self.device.type == "cuda"
        if self.uses_graphs and (problem := failure(self.device, certificate, DECODING, THREADS)):
            self.stop_graphs(problem)
        self._prefixes: deque[tuple[Tensor, list[Tensor]]] = deque(maxlen=VOICES)

    @property
    def rounds_up(self) -> bool:
        """Tell whether lengths are rounded up: for graphs, and on GPUs that prepare kernels for each new length."""
        return self.uses_graphs or self.device.type in UNTESTED

    @torch.inference_mode()
    def _load(self, gpt: Any, precision: Precision, *, consume: bool) -> None:  # noqa: ANN401  # coqui's class
        self.text, self.text_positions = self._table(gpt.text_embedding), self._table(gpt.text_pos_embedding.emb)
        self.codes, self.positions = self._table(gpt.mel_embedding), self._table(gpt.mel_pos_embedding.emb)
        self.norm = LayerNorm.of(gpt.final_norm, self.device)
        self.head = linear(gpt.mel_head.weight.to(self.device), gpt.mel_head.bias.to(self.device), precision)
        self.stack = LayerStack(gpt.gpt, precision, self.device, consume=consume)

    def attention_kernels(self) -> set[str]:
        """Return the attention kernels that torch uses for a prompt, for the text after it, and for one more code."""

        def work() -> set[str]:
            operators = Operators()
            with torch.inference_mode(mode=False), torch.no_grad(), operators:  # inference would hide the kernels
                cache = self.stack.cache()
                cache.reserve(1, 4)
                layers = cache.add([4], 4)
                rows = torch.zeros(1, 2, self.stack.dim, device=self.device)
                self.stack.read(rows, [layer[:, :, :, :2] for layer in layers])
                self.stack.read(rows, layers, known=2)
                self.stack.column(rows[:, 0], layers, lengths=torch.full((1,), 3, device=self.device))
                self.stack.column(rows[:, 0], layers, lengths=None)
            return operators.kernels

        return self.lane.run(work)

    def stop_graphs(self, problem: str) -> None:
        """Compute each step kernel by kernel from now on, and say why."""
        log_fact(SpeechHindered("no_graphs", problem))
        self.uses_graphs = False

    def _table(self, embedding: nn.Embedding) -> Tensor:
        return embedding.weight.detach().to(self.device, torch.float32, copy=True)

    def check(self, sentence: Sentence) -> None:
        """Refuse a sentence that is too long."""
        if (count := len(sentence.tokenized.ids)) > self.max_tokens:
            raise SentenceTooLongError(count, self.max_tokens)

    def limit(self, sentence: Sentence) -> int:
        """Return the maximum number of codes of a sentence."""
        return min(sentence.max_codes, self.max_codes)

    def read(self, sentences: Sequence[Sentence], prompts: Sequence[Tensor], cache: KeyValueCache) -> None:
        """Add rows with the prompts and texts of sentences to a cache, all at once."""
        prefixes = [self._prefix(prompt) for prompt in prompts]
        lengths = [len(s.tokenized.ids) + 2 for s in sentences]
        texts = self._embed_texts(sentences, max(lengths))
        known = prefixes[0][0].shape[3]
        width = known + texts.shape[1]
        cache.reserve(len(cache.lengths) + len(lengths), width)
        layers = cache.add([known + length for length in lengths], width)
        for number, own in enumerate(layers):
            own[:, :, :, :known] = torch.cat([prefix[number] for prefix in prefixes], 1)
        self.stack.read(texts, layers, known)

    def embed(self, codes: Tensor, positions: Tensor) -> Tensor:
        """Return what the layers read for codes."""
        return self.codes[codes] + self.positions[positions]

    def scores(self, latents: Tensor) -> Tensor:
        """Return the scores of all codes for latents."""
        return self.head(latents.to(self.stack.dtype)).float()

    def score(self, sentence: Sentence, prompt: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Score given codes in one pass (teacher forcing).

        Returns:
            The scores and the latents, each of n + 1 rows in fp32. Row i belongs to code i; the last row belongs to
            the code that would follow.
        """

        @torch.inference_mode()
        def work() -> tuple[Tensor, Tensor]:
            audio = self.codes[to_device(torch.tensor([self.start, *codes.tolist()]), self.device)]
            audio = audio + self.positions[: len(audio)]
            texts = self._embed_texts([sentence], len(sentence.tokenized.ids) + 2)[0, : len(sentence.tokenized.ids) + 2]
            hidden = self.stack.read(torch.cat((self._rows(prompt), texts, audio))[None])
            latents = self.norm(hidden[-len(audio) :].float())
            return self.scores(latents), latents

        return self.lane.run(work)

    def _embed_texts(self, sentences: Sequence[Sentence], length: int) -> Tensor:
        """Return what the layers read for texts; shorter ones are padded with what no row will see."""
        if self.rounds_up:
            length = min(math.ceil(length / TEXT_STEP) * TEXT_STEP, len(self.text_positions))
        texts = [(self.text_start, *sentence.tokenized.ids, self.text_stop) for sentence in sentences]
        ids = torch.tensor([[*text, *[self.text_stop] * (length - len(text))] for text in texts])
        return self.text[to_device(ids, self.device)] + self.text_positions[:length]

    def _rows(self, prompt: Tensor) -> Tensor:
        return to_device(prompt, self.device).float().reshape(-1, self.stack.dim)

    def _prefix(self, prompt: Tensor) -> list[Tensor]:
        """Return keys and values of a prompt for each layer; those of the newest voices are kept."""
        for known, layers in self._prefixes:
            if torch.equal(known, prompt):
                return layers
        rows = self._rows(prompt)
        cache = self.stack.cache()
        cache.reserve(1, len(rows))
        layers = cache.add([len(rows)], len(rows))
        self.stack.read(rows[None], layers)
        self._prefixes.append((prompt.clone(), layers))
        return layers
