"""Generates the audio codes of sentences with coqui's GPT, and the latents that the vocoder reads.

The GPT sees ``prompt | text | start code 1 code 2 ...``, where text and codes have positions of their own. The hidden
state of a column predicts the next code, and the same vector is the latent that the vocoder wants for that code. coqui
computes it again in a second pass over the finished sentence; here nothing is computed twice.
"""

import logging
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from utils.speech.facts import Hindrance, SentenceTooLongError, SpeechHindered
from utils.speech.layers import GROWTH, KeyValueCache, LayerNorm, LayerStack, Precision, linear
from utils.speech.precision import require
from utils.speech.types import Sentence
from utils.xtts.certificate import DECODING, failure

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

VOICES = 4  # prompts whose keys and values are kept


class DecoderNetwork:
    """coqui's GPT, prepared for generating; what it computes for a sentence does not depend on the others.

    Embeddings and norms stay fp32 on a CPU. ``consume`` removes each layer from the GPT once it is copied, so that both
    together never need more memory than the GPT and one layer. ``certificate`` says what was tested on the GPU.
    """

    @torch.inference_mode()
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
        if self.uses_graphs and (problem := failure(self.device, [DECODING], certificate)):
            logger.warning("%s", SpeechHindered(Hindrance.NO_GRAPHS, problem))
            self.uses_graphs = False
        self._prefixes: deque[tuple[Tensor, list[Tensor]]] = deque(maxlen=VOICES)

    def _table(self, embedding: nn.Embedding) -> Tensor:
        return embedding.weight.detach().to(self.device, torch.float32, copy=True)

    def check(self, sentence: Sentence) -> None:
        """Refuse a sentence that is too long."""
        if (count := len(sentence.tokenized.ids)) > self.max_tokens:
            raise SentenceTooLongError(count, self.max_tokens)

    def limit(self, sentence: Sentence) -> int:
        """Return the maximum number of codes of a sentence."""
        return min(sentence.max_codes, self.max_codes)

    def read(self, sentence: Sentence, prompt: Tensor, cache: KeyValueCache) -> None:
        """Add a row with the prompt and the text of a sentence to a cache."""
        prefix, text = self._prefix(prompt), self._embed_text(sentence)
        known = prefix[0].shape[3]
        length, rows = known + len(text), len(cache.lengths) + 1
        cache.reserve(rows, length + min(self.limit(sentence), GROWTH))
        layers = cache.add(length)
        for own, shared in zip(layers, prefix, strict=True):
            own[:, :, :, :known] = shared
        self.stack.read(text, layers, known)

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
        with torch.inference_mode():
            audio = self.codes[[self.start, *codes.tolist()]]
            audio = audio + self.positions[: len(audio)]
            hidden = self.stack.read(torch.cat((self._rows(prompt), self._embed_text(sentence), audio)))
            latents = self.norm(hidden[-len(audio) :].float())
            return self.scores(latents), latents

    def _embed_text(self, sentence: Sentence) -> Tensor:
        text = self.text[[self.text_start, *sentence.tokenized.ids, self.text_stop]]
        return text + self.text_positions[: len(text)]

    def _rows(self, prompt: Tensor) -> Tensor:
        return prompt.to(self.device, torch.float32).reshape(-1, self.stack.dim)

    def _prefix(self, prompt: Tensor) -> list[Tensor]:
        """Return keys and values of a prompt for each layer; those of the newest voices are kept."""
        for known, layers in self._prefixes:
            if torch.equal(known, prompt):
                return layers
        rows, cache = self._rows(prompt), self.stack.cache()
        cache.reserve(1, len(rows))
        layers = cache.add(len(rows))
        self.stack.read(rows, layers)
        self._prefixes.append((prompt.clone(), layers))
        return layers
