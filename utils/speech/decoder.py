"""Generates the audio codes of sentences: those of all requests together."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from torch import Tensor

from utils.config import SpeechConfig
from utils.core.facts import ShouldStop, never_stop
from utils.speech.batching import Batch, DecodingRequest
from utils.speech.network import DecoderNetwork
from utils.speech.types import Generation, Sentence


class Decoder(DecoderNetwork):
    """The network with the batch of its sentences."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401  # as of the network
        super().__init__(*arguments, **settings)
        self.batch = Batch(self)

    def request(self, prompt: Tensor, config: SpeechConfig, should_stop: ShouldStop = never_stop) -> DecodingRequest:
        """Open a request for sentences of one voice; ``prompt`` has its conditioning latents, (1, 32, dim)."""
        return DecodingRequest(self.batch, prompt, config, should_stop)

    def generate(self, sentences: Sequence[Sentence], prompt: Tensor, config: SpeechConfig) -> list[Generation]:
        """Generate sentences together."""
        with closing(self.request(prompt, config)) as request:
            generations = [request.add(sentence) for sentence in sentences]
            request.wait(lambda: all(each.finished for each in generations))
        return generations
