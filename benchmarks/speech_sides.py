"""The two sides that speak: plain coqui-tts as its documents say, and ours.

Every text has the same number of codes on both sides: the score of the code that ends a sentence is pushed out of
reach, and the maximum is set for each text.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.media.rates import CODE_SECONDS, OUTPUT_RATE

if TYPE_CHECKING:
    from utils.speech.planning import SpeechPlan

UNSAID = -1e4  # the score of the code that ends a sentence
VOICE = "Tiny Abebe"

Texts = Sequence[tuple[str, int]]  # with their numbers of codes


class Speaker(ABC):
    """What a process runs; each method returns seconds of work."""

    notes: list[str]  # precision of the GPT and of the vocoder

    @abstractmethod
    def speak(self, texts: Texts) -> float:
        """Speak texts: together in ours, one after the other in coqui."""

    @abstractmethod
    def stream(self, text: str, codes: int, first: int) -> Iterator[Any]:
        """Stream a text with a first chunk of so many codes, 0 for the default."""

    def first(self, text: str, codes: int, first: int) -> float:
        """Begin a stream and stop at its first sound."""
        began = time.perf_counter()
        stream = self.stream(text, codes, first)
        while not len(next(stream)):  # some codes may have to come before the first sound is certain
            pass
        took = time.perf_counter() - began
        stream.close()  # type: ignore[attr-defined]  # both are generators
        return took


class Coqui(Speaker):
    """Plain coqui-tts: ``Xtts.inference`` and ``inference_stream``."""

    def __init__(self, folder: Path, device: str, _: str) -> None:
        from TTS.tts.configs.xtts_config import XttsConfig
        from TTS.tts.models.xtts import Xtts

        config = XttsConfig()
        config.load_json(folder / "config.json")
        self.model: Any = Xtts.init_from_config(config)
        self.model.load_checkpoint(config, checkpoint_dir=folder, eval=True)
        self.model.gpt.mel_head.bias.data[self.model.gpt.stop_audio_token] = UNSAID
        self.model.to(device)
        self.voice = self.model.speaker_manager.speakers[VOICE].values()
        self.notes = ["fp32", "fp32"]

    def speak(self, texts: Texts) -> float:
        began = time.perf_counter()
        for text, codes in texts:
            self.model.gpt.max_gen_mel_tokens = codes
            check(len(self.model.inference(text, "en", *self.voice)["wav"]), codes)
        return time.perf_counter() - began

    def stream(self, text: str, codes: int, first: int) -> Iterator[Any]:
        self.model.gpt.max_gen_mel_tokens = codes
        settings = {"stream_chunk_size": first} if first else {}
        for chunk in self.model.inference_stream(text, "en", *self.voice, **settings):
            yield chunk.cpu()


class Ours(Speaker):
    """Our Synthesizer, with its automatic checks of the audio."""

    def __init__(self, folder: Path, device: str, precision: str) -> None:
        from utils.config import SpeechConfig
        from utils.speech.decoder import Decoder
        from utils.speech.loading import open_model
        from utils.speech.precision import choose
        from utils.speech.synthesizer import Synthesizer
        from utils.speech.vocoder import Vocoder
        from utils.xtts.device import free_memory

        chosen = choose(device, precision)
        opened = open_model(folder, as_stored=True)
        gpt: Any = opened.gpt
        gpt.mel_head.bias[gpt.stop_audio_token] = UNSAID
        decoder = Decoder(gpt, chosen.gpt, chosen.device, consume=True)
        vocoder = Vocoder(opened.vocoder, chosen.vocoder, chosen.device)
        opened = opened.conditioning_only()
        del gpt
        free_memory()
        self.model = Synthesizer(opened, decoder, vocoder, chosen)
        self.config = SpeechConfig(language="en", tries=1, reference=VOICE)
        self.model.voice(VOICE)
        self.notes = [chosen.gpt, chosen.vocoder]

    def speak(self, texts: Texts) -> float:
        began = time.perf_counter()
        plans = [self._plan(text, codes) for text, codes in texts]
        found = self.model.speak_many(plans, self.config, trim=False, batch_size=len(plans))
        took = time.perf_counter() - began
        for speech, (_, codes) in zip(found, texts, strict=True):
            check(len(speech.samples), codes)
        return took

    def stream(self, text: str, codes: int, first: int) -> Iterator[Any]:
        settings = {"first_codes": first, "chunk_codes": first} if first else {}
        yield from self.model.stream(self._plan(text, codes), self.config, **settings)

    def _plan(self, text: str, codes: int) -> "SpeechPlan":
        """Return a text of one sentence with a fixed number of codes."""
        plan = self.model.plan(text, self.config)
        (sentence,) = plan.sentences
        return plan._replace(sentences=(replace(sentence, max_codes=codes),))


def check(samples: int, codes: int) -> None:
    """Refuse a sentence of another length: the sides would not have done the same."""
    if abs(samples / OUTPUT_RATE - codes * CODE_SECONDS) > 2 * CODE_SECONDS:
        raise SystemExit(f"{samples} samples are not {codes} codes.")
