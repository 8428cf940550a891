"""The two sides that speak, each in a process of its own: plain coqui-tts as its documents say, and ours.

Every sentence has the same number of codes on both sides: the score of the code that ends a sentence is pushed out of
reach, and the most codes are set.
"""

import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from benchmarks.training_sides import resident
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE

UNSAID = -1e4  # the score of the code that ends a sentence
TEXT = "the birds of the lake return every year when the long rains end"  # as many letters as tokens
VOICE = "Tiny Abebe"


class Conditions(NamedTuple):
    """What both sides have to do.

    Attributes:
        folder: The model.
        device: Where to compute.
        codes: Codes of each sentence.
        threads: Of each side.
    """

    folder: Path
    device: str
    codes: int
    threads: int


class Worker(Protocol):
    """What a process runs; each returns seconds of work."""

    def speak(self, sentences: int) -> float:
        """Speak sentences of the fixed length."""

    def first(self) -> float:
        """Begin a stream and stop at its first sound."""


class Coqui:
    """Plain coqui-tts: ``Xtts.inference`` and ``inference_stream``."""

    def __init__(self, conditions: Conditions, _: str) -> None:
        from TTS.tts.configs.xtts_config import XttsConfig
        from TTS.tts.models.xtts import Xtts

        config = XttsConfig()
        config.load_json(conditions.folder / "config.json")
        self.model: Any = Xtts.init_from_config(config)
        self.model.load_checkpoint(config, checkpoint_dir=conditions.folder, eval=True)
        self.model.gpt.mel_head.bias.data[self.model.gpt.stop_audio_token] = UNSAID
        self.model.gpt.max_gen_mel_tokens = conditions.codes
        self.model.to(conditions.device)
        self.voice = self.model.speaker_manager.speakers[VOICE].values()
        self.conditions = conditions

    def speak(self, sentences: int) -> float:
        """Speak one sentence after the other, as coqui does."""
        begun = time.perf_counter()
        for _ in range(sentences):
            sound = self.model.inference(TEXT, "en", *self.voice)["wav"]
            check(len(sound), self.conditions.codes)
        return time.perf_counter() - begun

    def first(self) -> float:
        """Begin a stream with coqui's own size of chunks."""
        begun = time.perf_counter()
        stream = self.model.inference_stream(TEXT, "en", *self.voice)
        next(stream).cpu()
        took = time.perf_counter() - begun
        stream.close()
        return took


class Ours:
    """Our Synthesizer, guards and all."""

    def __init__(self, conditions: Conditions, precision: str) -> None:
        from utils.config import SpeechConfig
        from utils.speech.decoder import Decoder
        from utils.speech.loading import open_model
        from utils.speech.precision import choose
        from utils.speech.synthesizer import Synthesizer
        from utils.speech.vocoder import Vocoder
        from utils.xtts.device import free_memory

        chosen = choose(conditions.device, precision)
        opened = open_model(conditions.folder, as_stored=True)
        gpt: Any = opened.gpt
        gpt.mel_head.bias[gpt.stop_audio_token] = UNSAID
        gpt.max_gen_mel_tokens = conditions.codes
        decoder = Decoder(gpt, chosen.gpt, chosen.device, consume=True)
        vocoder = Vocoder(opened.vocoder, chosen.vocoder, chosen.device)
        opened = opened.conditioning_only()
        del gpt
        free_memory()
        self.model = Synthesizer(opened, decoder, vocoder, chosen)
        self.config = SpeechConfig(language="en", tries=1, reference=VOICE)
        self.model.voice(VOICE)
        self.conditions = conditions

    def speak(self, sentences: int) -> float:
        """Speak sentences together."""
        begun = time.perf_counter()
        found = self.model.speak_many([TEXT] * sentences, self.config, trim=False, batch_size=sentences)
        took = time.perf_counter() - begun
        for speech in found:
            check(len(speech.samples), self.conditions.codes)
        return took

    def first(self) -> float:
        """Begin a stream with the usual size of chunks."""
        begun = time.perf_counter()
        stream = self.model.stream(TEXT, self.config)
        while not len(next(stream)):  # some codes may have to come before the first sound is certain
            pass
        took = time.perf_counter() - begun
        stream.close()
        return took


def check(samples: int, codes: int) -> None:
    """Refuse a sentence of another length: the sides would not have done the same."""
    if abs(samples / OUTPUT_RATE - codes * CODE_SECONDS) > 2 * CODE_SECONDS:
        raise SystemExit(f"{samples} samples are not {codes} codes.")


class Side:
    """A process that speaks.

    Args:
        precision: Of ours; empty: coqui.
        conditions: What it has to do.
    """

    def __init__(self, precision: str, conditions: Conditions) -> None:
        context = multiprocessing.get_context("spawn")
        self.name = f"ours, {precision}" if precision else "coqui, fp32"
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, precision, conditions))
        self.process.start()
        theirs.close()
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        self.process.join(30)
        if self.process.is_alive():
            self.process.kill()

    def ask(self, what: str, *values: object) -> float:
        """Have something done and return its seconds, or "memory" in MiB."""
        self.pipe.send((what, *values))
        return self._answer()

    def _answer(self) -> float:
        try:
            return float(self.pipe.recv())
        except EOFError as error:
            self.process.join()
            raise SystemExit(f"{self.name} ended with code {self.process.exitcode}; see above.") from error


def _serve(pipe: Connection, precision: str, conditions: Conditions) -> None:
    """Build a side and answer until nobody asks any more."""
    if conditions.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch looks for it
    import torch

    torch.set_num_threads(conditions.threads)
    worker: Worker = Ours(conditions, precision) if precision else Coqui(conditions, precision)
    pipe.send(0.0)
    while True:
        try:
            what, *values = pipe.recv()
        except EOFError:
            return
        if what == "memory":
            used = torch.cuda.max_memory_allocated() / 2**20 if conditions.device == "cuda" else resident("VmHWM")
            pipe.send(used)
        else:
            pipe.send(getattr(worker, what)(*values))
