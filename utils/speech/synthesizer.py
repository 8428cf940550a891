"""Speaks text: all at once, sentence by sentence, as a stream, or several texts in one batch."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Self

import numpy as np
import torch

from utils.config import SpeechConfig
from utils.core.batching import batched
from utils.core.paths import OUTPUT
from utils.dataset.clip import Cue
from utils.media.audio import Samples
from utils.media.loudness import Normalizer, normalized
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.media.stretching import Stretcher, stretch
from utils.speech import guards, voices
from utils.speech.decoder import Decoder, Generation
from utils.speech.guards import SpeechLimits
from utils.speech.loading import LoadedModel, open_model
from utils.speech.planning import SpeechPlan, plan
from utils.speech.precision import PrecisionChoice, choose
from utils.speech.subtitles import Timeline, fit_to_cues
from utils.speech.types import DEFAULTS, Sentence, Speech, Utterance, Voice, join, silence, start_times
from utils.speech.vocoder import Vocoder
from utils.xtts.device import free_memory

EXTRA = 1.5  # times the longest time a text should take: whatever goes on after that has lost its way


@dataclass(eq=False, repr=False)
class Synthesizer:
    """A model that is loaded and ready to speak."""

    model: LoadedModel  # the loaded model
    decoder: Decoder  # its GPT, prepared for generating
    vocoder: Vocoder  # turns latents into audio
    precision: PrecisionChoice  # what both compute with, and why
    cache: Path | None = None  # folder of cached voices; None: output/.cache/voices

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # one caller at a time uses the model

    @classmethod
    def load(
        cls,
        model: Path | str = "",
        device: str = "auto",
        precision: str = "auto",
        *,
        cache: Path | None = None,
        output: Path = OUTPUT,
        on_step: Callable[[], object] | None = None,
    ) -> Self:
        """Load a model onto a device.

        Args:
            model: A finished model, a run or checkpoint, a base version, or a coqui folder; empty: the newest.
            device: "auto", "cpu" or "cuda".
            precision: A number format; "auto" is the fastest one measured on this machine.
            cache: Folder of cached voices; None: output/.cache/voices.
            output: Folder of the projects.
            on_step: Called at each step of generation; an exception that it raises stops the work.
        """
        choice = choose(device, precision)
        loaded = open_model(model, as_stored=True, output=output)  # the decoder takes one layer after the other
        choice = choice.for_model(loaded.gpt) if precision == "auto" else choice
        decoder = Decoder(loaded.gpt, choice.gpt, choice.device, consume=True)
        decoder.on_step = on_step or decoder.on_step
        vocoder = Vocoder(loaded.vocoder, choice.vocoder, choice.device)
        loaded = loaded.conditioning_only()
        free_memory()
        return cls(loaded, decoder, vocoder, choice, cache)

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
        """Speak several texts; their sentences share batches."""
        config, timings = overridden(config, settings), dict[str, float]()
        with _timed(timings, "total"):
            with _timed(timings, "planning"):
                plans = [self.plan(text, config) for text in texts]
            sentences = [sentence for each in plans for sentence in each.sentences]
            utterances = self._speak(sentences, config, timings)
            speeches = [self.join(list(islice(utterances, len(each.sentences))), config, each.notes) for each in plans]
        return [replace(speech, timings=timings) for speech in speeches]

    def utterances(self, text: str | SpeechPlan, config: SpeechConfig = DEFAULTS) -> Generator[Utterance, None, None]:
        """Speak a text and yield each sentence when its batch is done; closing the iterator stops the work."""
        return self._speak(self.plan(text, config).sentences, config, {})

    def join(self, utterances: Sequence[Utterance], config: SpeechConfig, notes: tuple[str, ...] = ()) -> Speech:
        """Join utterances with the pauses between them."""
        placed = (replace(each, start=start) for each, start in zip(utterances, start_times(utterances), strict=True))
        return Speech(tuple(placed), join(utterances), self.voice(config.reference).name, config.seed, notes=notes)

    def dub(self, cues: Sequence[Cue], config: SpeechConfig = DEFAULTS, seconds: float | None = None) -> Timeline:
        """Speak subtitles, each in its time; cues without letters stay silent.

        The cues are in order of time, as ``read_cues`` returns them. ``seconds``: duration of the whole; None: until
        the last cue ends.
        """
        return fit_to_cues(cues, list(self.speak_cues(cues, config)), seconds=seconds)

    def speak_cues(self, cues: Sequence[Cue], config: SpeechConfig = DEFAULTS) -> Iterator[Samples]:
        """Yield the audio of each subtitle, not yet fitted to its time; it is empty where the cue has no letters."""
        for batch in batched(cues, config.batch_size):
            spoken = [cue for cue in batch if any(map(str.isalnum, cue.text))]
            speeches = iter(self.speak_many([cue.text for cue in spoken], config))
            yield from (next(speeches).samples if cue in spoken else silence(0) for cue in batch)

    def stream(
        self, text: str | SpeechPlan, config: SpeechConfig = DEFAULTS, **settings: object
    ) -> Generator[Samples, None, None]:
        """Yield audio while a text is being spoken; closing the iterator stops the work.

        What was played cannot be taken back, so doubtful sentences are not repeated.
        """
        config = overridden(config, settings)
        for sentence in self.plan(text, config).sentences:
            with closing(self.stream_sentence(sentence, config)) as chunks:
                yield from chunks
            yield silence(sentence.pause)

    def stream_sentence(self, sentence: Sentence, config: SpeechConfig = DEFAULTS) -> Generator[Samples, None, None]:
        """Yield the audio of one sentence in chunks, without the pause after it."""
        voice, stretcher = self.voice(config.reference), Stretcher(OUTPUT_RATE, config.speed)
        normalizer = Normalizer(OUTPUT_RATE, config.loudness)
        with self._lock, closing(self.decoder.steps([sentence], voice.prompt, config)) as steps:
            sound = self.vocoder.stream(voice.embedding)
            sent, due = 0, config.first_codes
            for (generation,) in steps:
                if generation.finished or len(generation.latents) - sent >= due:
                    chunk = sound.push(torch.stack(generation.latents[sent:]))
                    yield normalizer.push(stretcher.push(chunk))
                    sent, due = len(generation.latents), config.chunk_codes
            rest = stretcher.push(sound.finish())
        yield normalizer.push(np.concatenate([rest, stretcher.finish()]))
        yield normalizer.finish()

    def _speak(
        self, sentences: Sequence[Sentence], config: SpeechConfig, timings: dict[str, float]
    ) -> Generator[Utterance, None, None]:
        voice = self.voice(config.reference)

        def render(batch: Sequence[Sentence]) -> list[tuple[Generation, Samples]]:
            with self._lock, _timed(timings, "decoding"):
                generations = self.decoder.generate(batch, voice.prompt, config)
            self.decoder.on_step()
            with self._lock, _timed(timings, "vocoding"):
                latents = [torch.stack(each.latents) for each in generations]
                sounds = self.vocoder.sounds(latents, voice.embedding)
            return list(zip(generations, sounds, strict=True))

        return spoken_in_batches(sentences, render, config)


Render = Callable[[Sequence[Sentence]], Iterable[tuple[Generation, Samples]]]


def spoken_in_batches(
    sentences: Sequence[Sentence], render: Render, config: SpeechConfig
) -> Generator[Utterance, None, None]:
    """Speak sentences in batches; doubtful ones are spoken again with other seeds, and the best take counts."""
    limits = SpeechLimits.of(config.language)
    for batch in batched(sentences, config.batch_size):
        best: dict[int, tuple[float, Utterance]] = {}
        tries: Counter[int] = Counter()
        for attempt in range(config.tries):
            doubtful = [index for index in range(len(batch)) if index not in best or best[index][1].flags]
            tries.update(doubtful)
            numbers = range(attempt * config.candidates, (attempt + 1) * config.candidates)
            takes = [
                (index, replace(batch[index], seed=guards.next_seed(batch[index].seed, number)))
                for index in doubtful
                for number in numbers
            ]
            rendered = chain.from_iterable(map(render, batched([each for _, each in takes], config.batch_size)))
            for (index, sentence), (generation, samples) in zip(takes, rendered, strict=True):
                score, utterance = _judged(sentence, generation, samples, limits, trim=config.trim)
                if index not in best or score > best[index][0]:
                    best[index] = score, utterance
                del generation, samples  # they would keep the whole batch in memory while the caller uses the audio
        for index in range(len(batch)):
            utterance = best[index][1]
            samples = stretch(utterance.samples, OUTPUT_RATE, config.speed)
            samples = normalized(samples, OUTPUT_RATE, config.loudness)
            yield replace(utterance, samples=samples, tries=tries[index])


def _judged(
    sentence: Sentence, generation: Generation, samples: Samples, limits: SpeechLimits, *, trim: bool
) -> tuple[float, Utterance]:
    """Score a take before it is trimmed."""
    codes = np.array(generation.codes[: -1 if generation.ended else None], np.int64)
    audio = guards.AudioAnalysis(samples)
    flags = guards.judge(sentence.tokenized, codes, audio, limits, ended=generation.ended)
    score = guards.score(flags, sentence.tokenized, audio, sum(generation.logprobs), limits)
    samples = guards.trim(audio) if trim else samples
    return score, Utterance(sentence, samples, codes, generation.ended, flags)


def max_codes(sentence: Sentence, limits: SpeechLimits) -> int:
    return math.ceil(EXTRA * guards.longest(sentence.tokenized, limits) / CODE_SECONDS)


def overridden(config: SpeechConfig, settings: Mapping[str, object]) -> SpeechConfig:
    return SpeechConfig.parse({**config.model_dump(), **settings}) if settings else config


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    timings[stage] = timings.get(stage, 0.0) + time.monotonic() - started
