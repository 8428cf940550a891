"""The two sides that speak, each in a process of its own: plain coqui-tts as its documents say, and ours.

Every text has the same number of codes on both sides: the score of the code that ends a sentence is pushed out of
reach, and the maximum is set for each text.
"""

import gc
import multiprocessing
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from benchmarks.speech_findings import LOADED, LOADING, SPEAKING
from benchmarks.training_sides import MIB, forget_peak, resident
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE

if TYPE_CHECKING:
    from utils.media.audio import Samples
    from utils.speech.planning import SpeechPlan

UNSAID = -1e4  # the score of the code that ends a sentence
TEXT = "the birds of the lake return every year when the long rains end"  # as many letters as tokens
TEXTS = {  # with their length as a multiple of that of TEXT; on average 1
    "the farmers sow their fields when it rains": 0.7,
    "in the old town the bakers light their ovens long before the sun rises over the hills": 1.4,
    "she opened the green door": 0.4,
    "every evening the fishermen pull their boats onto the sand and rest": 1.1,
    "my grandmother told us stories about lions and about bees": 0.9,
    "the teacher asked the children to write down what they had seen on their way to the school that morning": 1.6,
    "coffee is roasted slowly over charcoal": 0.6,
    "two brothers walked for three days to reach the market and came home with one goat": 1.3,
}
VOICE = "Tiny Abebe"
PLAYED = 0.2  # seconds of a stream before it is cancelled


class Conditions(NamedTuple):
    """What both sides have to do.

    Attributes:
        folder: The model.
        device: Where to compute.
        codes: Codes of the one sentence, and of several texts on average.
        threads: Of each side.
    """

    folder: Path
    device: str
    codes: int
    threads: int

    def texts(self, count: int) -> list[tuple[str, int]]:
        """Return texts with their numbers of codes; after eight they repeat."""
        return [(text, round(length * self.codes)) for text, length in islice(cycle(TEXTS.items()), count)]


class Worker(ABC):
    """What a process runs; each returns seconds of work."""

    gpt: str  # precision of the GPT
    vocoder: str  # and of the vocoder
    conditions: Conditions

    def one(self) -> float:
        """Speak one sentence."""
        return self.speak([(TEXT, self.conditions.codes)])

    def many(self, texts: int) -> float:
        """Speak different texts."""
        return self.speak(self.conditions.texts(texts))

    @abstractmethod
    def speak(self, texts: Sequence[tuple[str, int]]) -> float:
        """Speak texts with their numbers of codes: together in ours, one after the other in coqui."""

    @abstractmethod
    def first(self, codes: int) -> float:
        """Begin a stream with a first chunk of this size, 0 for the default, and stop at its first sound."""

    @abstractmethod
    def stop(self) -> float:
        """Cancel a stream while it is being spoken, and return how long the model stays busy."""


class Coqui(Worker):
    """Plain coqui-tts: ``Xtts.inference`` and ``inference_stream``."""

    gpt, vocoder = "fp32", "fp32"

    def __init__(self, conditions: Conditions, _: str) -> None:
        from TTS.tts.configs.xtts_config import XttsConfig
        from TTS.tts.models.xtts import Xtts

        config = XttsConfig()
        config.load_json(conditions.folder / "config.json")
        self.model: Any = Xtts.init_from_config(config)
        self.model.load_checkpoint(config, checkpoint_dir=conditions.folder, eval=True)
        self.model.gpt.mel_head.bias.data[self.model.gpt.stop_audio_token] = UNSAID
        self.model.to(conditions.device)
        self.voice = self.model.speaker_manager.speakers[VOICE].values()
        self.conditions = conditions

    def speak(self, texts: Sequence[tuple[str, int]]) -> float:
        began = time.perf_counter()
        for text, codes in texts:
            self.model.gpt.max_gen_mel_tokens = codes
            check(len(self.model.inference(text, "en", *self.voice)["wav"]), codes)
        return time.perf_counter() - began

    def first(self, codes: int) -> float:
        """Begin a stream and stop at its first sound."""
        began = time.perf_counter()
        stream = self._stream(**({"stream_chunk_size": codes} if codes else {}))
        next(stream).cpu()
        took = time.perf_counter() - began
        stream.close()
        return took

    def stop(self) -> float:
        """Leave a stream, which is possible between two chunks."""
        return stopped(self._stream(), threading.Event())

    def _stream(self, **settings: int) -> Any:  # noqa: ANN401  # a generator of tensors
        self.model.gpt.max_gen_mel_tokens = self.conditions.codes
        return self.model.inference_stream(TEXT, "en", *self.voice, **settings)


class Ours(Worker):
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
        self.gpt: str = chosen.gpt
        self.vocoder: str = chosen.vocoder
        opened = open_model(conditions.folder, as_stored=True)
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
        self.conditions = conditions

    def speak(self, texts: Sequence[tuple[str, int]]) -> float:
        began = time.perf_counter()
        plans = [self._plan(text, codes) for text, codes in texts]
        found = self.model.speak_many(plans, self.config, trim=False, batch_size=len(plans))
        took = time.perf_counter() - began
        for speech, (_, codes) in zip(found, texts, strict=True):
            check(len(speech.samples), codes)
        return took

    def _plan(self, text: str, codes: int) -> "SpeechPlan":
        """Return a text of one sentence with a fixed number of codes."""
        plan = self.model.plan(text, self.config)
        (sentence,) = plan.sentences
        return plan._replace(sentences=(replace(sentence, max_codes=codes),))

    def first(self, codes: int) -> float:
        """Begin a stream and stop at its first sound."""
        began = time.perf_counter()
        stream = self._stream(**({"first_codes": codes, "chunk_codes": codes} if codes else {}))
        while not len(next(stream)):  # some codes may have to come before the first sound is certain
            pass
        took = time.perf_counter() - began
        stream.close()
        return took

    def stop(self) -> float:
        """Cancel a stream at its next code, as a request of the server is cancelled."""
        cancelled, decoder = threading.Event(), self.model.decoder

        def check_cancelled() -> None:
            if cancelled.is_set():
                raise CancelledError

        before, decoder.on_step = decoder.on_step, check_cancelled
        try:
            return stopped(self._stream(), cancelled)
        finally:
            decoder.on_step = before

    def _stream(self, **settings: int) -> "Generator[Samples, None, None]":
        return self.model.stream(self._plan(TEXT, self.conditions.codes), self.config, **settings)


class CancelledError(Exception):
    """The stream was cancelled."""


def stopped(stream: "Generator[Any, None, None]", cancelled: threading.Event) -> float:
    """Cancel a stream a moment after its first sound; return the seconds until its thread has ended."""
    heard = threading.Event()

    def play() -> None:
        try:
            with suppress(CancelledError), closing(stream):
                for chunk in stream:
                    if len(chunk):
                        heard.set()
                    if cancelled.is_set():
                        return
        finally:
            heard.set()

    thread = threading.Thread(target=play)
    thread.start()
    heard.wait()
    time.sleep(PLAYED)
    cancelled.set()
    began = time.perf_counter()
    thread.join()
    return time.perf_counter() - began


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
        self.side = "ours" if precision else "coqui"
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, precision, conditions))
        self.process.start()
        theirs.close()
        self.gpt, self.vocoder = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        self.process.join(30)
        if self.process.is_alive():
            self.process.kill()

    def ask(self, what: str, *values: object) -> float:
        """Have something done and return its seconds."""
        self.pipe.send((what, *values))
        return float(self._answer())

    def memory(self) -> dict[str, float]:
        """Return the memory after loading and the peaks, in MiB."""
        self.pipe.send(("memory",))
        found: dict[str, float] = self._answer()
        return found

    def _answer(self) -> Any:  # noqa: ANN401  # each question has an answer of its own
        try:
            return self.pipe.recv()
        except EOFError as error:
            self.process.join()
            raise SystemExit(f"{self.side} ended with code {self.process.exitcode}; see above.") from error


def _serve(pipe: Connection, precision: str, conditions: Conditions) -> None:
    """Build a side and answer until nobody asks any more."""
    if conditions.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch looks for it
    import torch

    torch.set_num_threads(conditions.threads)
    worker: Worker = Ours(conditions, precision) if precision else Coqui(conditions, precision)
    gc.collect()
    is_gpu = conditions.device == "cuda"
    memory = {LOADED: torch.cuda.memory_allocated() / MIB if is_gpu else resident("VmRSS")}
    memory[LOADING] = torch.cuda.max_memory_allocated() / MIB if is_gpu else forget_peak()
    if is_gpu:
        torch.cuda.reset_peak_memory_stats()
    pipe.send((worker.gpt, worker.vocoder))
    while True:
        try:
            what, *values = pipe.recv()
        except EOFError:
            return
        if what == "memory":
            peak = torch.cuda.max_memory_allocated() / MIB if is_gpu else resident("VmHWM")
            pipe.send(memory | {SPEAKING: peak})
        else:
            pipe.send(getattr(worker, what)(*values))
