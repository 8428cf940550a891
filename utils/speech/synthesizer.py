"""Speaks text: all at once, sentence by sentence, as a stream, or several texts in one batch."""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from utils.config import SpeechConfig
from utils.core.errors import first_line
from utils.core.facts import Fact, Report, ShouldStop, ignore, log_fact, never_stop
from utils.media.audio import Samples
from utils.media.loudness import Normalizer
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.media.stretching import Stretcher
from utils.recognition.spans import Cue
from utils.speech import guards, voices
from utils.speech.attempts import best_takes
from utils.speech.decoder import Decoder
from utils.speech.facts import SentenceSpoken, SpeechHindered
from utils.speech.guards import SpeechLimits
from utils.speech.loading import Companions, LoadedModel, open_model
from utils.speech.planning import SpeechPlan, plan
from utils.speech.precision import PrecisionChoice, choose
from utils.speech.types import DEFAULTS, Generation, Sentence, Speech, Utterance, Voice, join, silence, start_times
from utils.speech.vocoder import Vocoder
from utils.xtts.certificate import read, untested
from utils.xtts.device import UNTESTED, free_memory
from utils.xtts.facts import KernelsUntested
from utils.xtts.tokenizer import TokenizedText

TRIED = 16  # codes that are generated as a test, and how many times over the vocoder gets them
EXTRA = 1.5  # times the longest time a text should take: whatever goes on after that has lost its way


@dataclass(eq=False, repr=False)
class Synthesizer:
    """A model that is loaded and ready to speak."""

    model: LoadedModel  # the loaded model
    decoder: Decoder  # its GPT, prepared for generating
    vocoder: Vocoder  # turns latents into audio
    precision: PrecisionChoice  # what both compute with, and why
    cache: Path | None = None  # folder of cached voices; None: they are computed each time

    def warmed_up(self) -> "Synthesizer":
        """Return it prepared for many listeners: on a GPU, nothing is left to be captured while one of them waits."""
        self.decoder.batch.warm_up()
        return self

    def tried(self) -> "Synthesizer":
        """Make a few codes and more than a window of sound, which fails on a device that cannot speak; return self."""
        text = TokenizedText("", "", "", "", (), (1, 2), ())
        prompt = torch.zeros(1, 32, self.decoder.stack.dim)
        (made,) = self.decoder.generate([Sentence(text, max_codes=TRIED)], prompt, DEFAULTS)
        self.vocoder.sound(made.latents * TRIED, torch.zeros(1, 512, 1))
        return self

    def voices(self) -> tuple[str, ...]:
        """Return the names of the model's own voices."""
        return tuple(voices.own_names(self.model))

    def voice(self, reference: str = "") -> Voice:
        """Return a voice by name, from audio files separated by |, or the model's default voice."""
        return voices.voice_named(self.model, reference, self.cache)

    def plan(self, text: str | SpeechPlan, config: SpeechConfig = DEFAULTS) -> SpeechPlan:
        """Split a text into sentences; a text that the model cannot read is refused, a plan returned as it is."""
        if isinstance(text, SpeechPlan):
            return text
        if not isinstance(text, str):
            raise TypeError(f"The text must be a str, not {type(text).__name__}.")
        limits = SpeechLimits.of(config.language)
        sentences, notes = plan(text, self.model.tokenizer, config)
        return SpeechPlan(tuple(replace(each, max_codes=max_codes(each, limits)) for each in sentences), notes)

    def speak(self, text: str | SpeechPlan, config: SpeechConfig = DEFAULTS, **settings: object) -> Speech:
        """Speak a text of any length.

        ``settings`` override those of the config, as in ``speak("ሰላም", reference="me.wav", speed=1.1)``.
        """
        return self.speak_many([text], config, **settings)[0]

    def speak_many(
        self, texts: Sequence[str | SpeechPlan], config: SpeechConfig = DEFAULTS, **settings: object
    ) -> list[Speech]:
        """Speak several texts together."""
        config = overridden(config, settings)
        timings = dict[str, float]()
        with _timed(timings, "total"):
            with _timed(timings, "planning"):
                plans = [self.plan(text, config) for text in texts]
            speeches = list(self.speeches(plans, config, timings))
        return [replace(speech, timings=timings) for speech in speeches]

    def speeches(
        self, plans: Sequence[SpeechPlan], config: SpeechConfig = DEFAULTS, timings: dict[str, float] | None = None
    ) -> Generator[Speech, None, None]:
        """Speak several texts together and yield each as soon as it and those before it are complete."""
        sentences = (sentence for plan in plans for sentence in plan.sentences)
        with closing(self._speak(sentences, config, {} if timings is None else timings)) as utterances:
            for plan in plans:
                yield self.join(list(islice(utterances, len(plan.sentences))), config, plan.notes)

    def utterances(
        self, text: str | SpeechPlan, config: SpeechConfig = DEFAULTS, should_stop: ShouldStop = never_stop
    ) -> Generator[Utterance, None, None]:
        """Speak a text and yield each sentence in its order; closing the iterator stops the work."""
        return self._speak(self.plan(text, config).sentences, config, {}, should_stop)

    def join(self, utterances: Sequence[Utterance], config: SpeechConfig, notes: tuple[Fact, ...] = ()) -> Speech:
        """Join utterances with the pauses between them."""
        placed = (replace(each, start=start) for each, start in zip(utterances, start_times(utterances), strict=True))
        return Speech(tuple(placed), join(utterances), self.voice(config.reference).name, config.seed, notes=notes)

    def speak_cues(self, cues: Sequence[Cue], config: SpeechConfig = DEFAULTS) -> Iterator[Samples]:
        """Yield the audio of each subtitle, not yet fitted to its time; it is empty where the cue has no letters."""
        plans = [self.plan(cue.text, config) if any(map(str.isalnum, cue.text)) else None for cue in cues]
        with closing(self.speeches([plan for plan in plans if plan], config)) as speeches:
            yield from (next(speeches).samples if plan else silence(0) for plan in plans)

    def stream(
        self, text: str | SpeechPlan, config: SpeechConfig = DEFAULTS, **settings: object
    ) -> Generator[Samples, None, None]:
        """Yield audio while a text is being spoken; closing the iterator stops the work.

        Audio that has been played cannot be replaced, so suspicious sentences are not retried.
        """
        config = overridden(config, settings)
        for sentence in self.plan(text, config).sentences:
            with closing(self.stream_sentence(sentence, config)) as chunks:
                yield from chunks
            yield silence(sentence.pause)

    # Long because what is generated passes through objects that all live until the last chunk.
    def stream_sentence(self, sentence: Sentence, config: SpeechConfig = DEFAULTS) -> Generator[Samples, None, None]:
        """Yield the audio of one sentence in chunks, without the pause after it."""
        voice = self.voice(config.reference)
        stretcher = Stretcher(OUTPUT_RATE, config.speed)
        normalizer = Normalizer(OUTPUT_RATE, config.loudness)
        with closing(self.decoder.request(voice.prompt, config)) as request:
            generation = request.add(sentence)
            sound = self.vocoder.stream(voice.embedding)
            latents = generation.latents
            sent = 0
            due = config.first_codes
            while not generation.finished or sent < len(latents):
                request.wait(lambda: generation.finished or len(latents) - sent >= due)  # noqa: B023  # called now
                yield normalizer.push(stretcher.push(sound.push(latents[sent : sent + due])))
                sent = min(sent + due, len(latents))
                due = min(config.chunk_codes, sent)  # it is computed while that much is played
            rest = stretcher.push(sound.finish())
        yield normalizer.push(np.concatenate([rest, stretcher.finish()]))
        yield normalizer.finish()

    def _speak(
        self,
        sentences: Iterable[Sentence],
        config: SpeechConfig,
        timings: dict[str, float],
        should_stop: ShouldStop = never_stop,
    ) -> Generator[Utterance, None, None]:
        voice = self.voice(config.reference)
        with closing(self.decoder.request(voice.prompt, config, should_stop)) as request:

            def next_sound() -> tuple[Generation, Samples]:
                with _timed(timings, "decoding"):
                    generation = request.next_finished()
                self.decoder.on_step()
                with _timed(timings, "vocoding"):
                    return generation, self.vocoder.sound(generation.latents, voice.embedding)

            yield from best_takes(sentences, request.add, next_sound, config)


@dataclass(frozen=True)
class Caches:
    """Files in which speech finds again what it computed or measured on this machine; None: nowhere."""

    voices: Path | None = None  # folder of the voices of reference clips
    precisions: Path | None = None  # speed of each precision
    certificate: Path | None = None  # what was tested on the GPU


# Long because an untested GPU may fail at any of the steps, and the CPU then takes all of them.
def open_voice(
    model: Path | str,
    device: str = "auto",
    precision: str = "auto",
    *,
    companions: Companions | None = None,
    caches: Caches | None = None,
    on_step: Callable[[], object] = lambda: None,
) -> Synthesizer:
    """Load a model onto a device, ready to speak.

    Args:
        model: Folder of a model or a checkpoint, as in ``open_model``.
        device: "auto", "cpu", "cuda", "mps" or "xpu". If mps or xpu cannot speak, the CPU does, with a warning.
        precision: A number format; "auto" is the fastest one measured on this machine.
        companions: What belongs to the model and lies elsewhere.
        caches: Files in which to find again what was computed before.
        on_step: Called at each step of generation; an exception that it raises stops the work.
    """
    caches = caches or Caches()
    choice = choose(device, precision, caches.precisions).as_tested(caches.certificate)
    load = partial(_load, Path(model), choice, companions, caches, on_step, is_chosen=precision == "auto")
    if choice.device not in UNTESTED:
        return load()
    try:
        return load().tried()
    except (RuntimeError, TypeError) as error:  # TypeError: Apple's GPU has no float64
        log_fact(SpeechHindered("no_gpu", first_line(error)))
    free_memory()  # of the first attempt, which the GPU shares with the CPU
    precision = "auto" if precision == "fp16" else precision  # which a CPU refuses
    return open_voice(model, "cpu", precision, companions=companions, caches=caches, on_step=on_step)


def _load(
    model: Path,
    choice: PrecisionChoice,
    companions: Companions | None,
    caches: Caches,
    on_step: Callable[[], object],
    *,
    is_chosen: bool,
) -> Synthesizer:
    """Load a model onto the device of a choice; ``is_chosen``: its precision may change for a small model."""
    loaded = open_model(model, companions, as_stored=True)  # the decoder takes one layer after the other
    choice = choice.for_model(loaded.gpt) if is_chosen else choice
    decoder = Decoder(loaded.gpt, choice.gpt, choice.device, consume=True, certificate=caches.certificate)
    decoder.on_step = on_step
    if read(decoder.device, caches.certificate):
        kernels = untested(decoder.device, caches.certificate, decoder.attention_kernels())
        if kernels:
            log_fact(KernelsUntested(kernels, "python -m utils doctor --gpu"))
    vocoder = Vocoder(loaded.vocoder, choice.vocoder, choice.device)
    loaded = loaded.conditioning_only()
    free_memory()
    return Synthesizer(loaded, decoder, vocoder, choice, caches.voices)


def speak(
    voice: Synthesizer,
    text: str,
    settings: SpeechConfig = DEFAULTS,
    report: Report = ignore,
    should_stop: ShouldStop = never_stop,
) -> Speech:
    """Speak a text of any length; a request to stop is noticed at the next code of the model."""
    plan = voice.plan(text, settings)
    spoken = list[Utterance]()
    with closing(voice.utterances(plan, settings, should_stop)) as utterances:
        for each in utterances:
            spoken.append(each)
            kinds = tuple(flag.kind for flag in each.flags)
            report(SentenceSpoken(len(spoken), len(plan.sentences), each.sentence.text, each.seconds, kinds))
    return voice.join(spoken, settings, plan.notes)


def max_codes(sentence: Sentence, limits: SpeechLimits) -> int:
    return math.ceil(EXTRA * guards.longest(sentence.tokenized, limits) / CODE_SECONDS)


def overridden(config: SpeechConfig, settings: Mapping[str, object]) -> SpeechConfig:
    if not isinstance(config, SpeechConfig):
        kind = type(config).__name__
        raise TypeError(f"The config must be a SpeechConfig, not {kind}. Settings are keywords: speak(text, speed=1).")
    return SpeechConfig.parse({**config.model_dump(), **settings}) if settings else config


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    timings[stage] = timings.get(stage, 0.0) + time.monotonic() - started
