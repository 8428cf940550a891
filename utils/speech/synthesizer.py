"""One model that speaks: a text at once, as a stream, many texts together, or one sentence again."""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Self

from utils.config import SpeechConfig
from utils.core.paths import OUTPUT
from utils.dataset.clip import Cue
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.media.stretching import Stretcher
from utils.speech import guards, joining, voices
from utils.speech.decoder import Decoder, Generated, Request
from utils.speech.dubbing import Timeline, fit
from utils.speech.open_model import Opened, open_model
from utils.speech.planning import Pauses, Piece, Plan, plan
from utils.speech.precision import Choice, choose
from utils.speech.retries import Line, Studio
from utils.speech.streaming import chunks
from utils.speech.types import USUAL, Sampling, Speech, Spoken, Voice
from utils.speech.vocoder import Vocoder
from utils.xtts.memory import free_memory


class Synthesizer:
    """A model, loaded and ready to speak.

    Args:
        opened: The model.
        decoder: Its GPT, prepared for generating.
        vocoder: Makes its sound.
        chosen: What both compute with, and why.
        cache: Folder that keeps voices; None: the usual one.
    """

    def __init__(
        self,
        opened: Opened,
        decoder: Decoder,
        vocoder: Vocoder,
        chosen: Choice,
        cache: Path | None = None,
    ) -> None:
        self.model = opened
        self.decoder = decoder
        self.vocoder = vocoder
        self.chosen = chosen
        self.cache = cache
        self._one_at_a_time = threading.Lock()

    @classmethod
    def load(
        cls,
        place: Path | str = "",
        device: str = "auto",
        precision: str = "auto",
        *,
        cache: Path | None = None,
        output: Path = OUTPUT,
        look: Callable[[], object] | None = None,
    ) -> Self:
        """Open a model and prepare it for a device.

        Args:
            place: A finished model, a run or checkpoint, a base version, or a folder of coqui; empty: the newest.
            device: "auto", "cpu" or "cuda".
            precision: "auto" takes what was fastest when it was measured here.
            cache: Folder that keeps voices; None: the usual one.
            output: Where the projects lie.
            look: Is called at each code; what it raises ends the work.
        """
        chosen = choose(device, precision)
        opened = open_model(place, as_stored=True, output=output)  # the decoder takes one layer after the other
        decoder = Decoder.of(opened.gpt, chosen.gpt, chosen.device, consume=True)
        decoder.look = look or decoder.look
        vocoder = Vocoder.of(opened.vocoder, chosen.vocoder, chosen.device)
        opened = opened.hearing()
        free_memory()
        return cls(opened, decoder, vocoder, chosen, cache)

    def voices(self) -> tuple[str, ...]:
        """Return the names of the voices that the model brings."""
        return tuple(voices.own_names(self.model))

    def voice(self, reference: str = "") -> Voice:
        """Return a voice by its name, from sound files divided by |, or the model's own."""
        return voices.voice_named(self.model, reference, self.cache)

    def plan(self, text: str, config: SpeechConfig = USUAL) -> Plan:
        """Cut a text into what is said at once; what cannot be read is refused before anything is spoken."""
        return plan(text, self.model.tokenizer, config.language, Pauses.of(config))

    def speak(self, text: str, config: SpeechConfig = USUAL, **settings: object) -> Speech:
        """Speak a text of any length.

        Args:
            text: What to say.
            config: How.
            settings: Single settings instead, as ``speak("ሰላም", reference="me.wav", speed=1.1)``.
        """
        return self.speak_many([text], config, **settings)[0]

    def speak_many(self, texts: Sequence[str], config: SpeechConfig = USUAL, **settings: object) -> list[Speech]:
        """Speak several texts, whose sentences share their batches."""
        clock, config = Clock(), settled(config, settings)
        with clock.stage("reading"):
            plans = [self.plan(text, config) for text in texts]
        lines = [line for one in plans for line in numbered(one.pieces, config.seed)]
        spoken = self._record(lines, config, clock)
        speeches = [self.joined(list(islice(spoken, len(one.pieces))), config, one.notes) for one in plans]
        return [replace(speech, took=clock.took()) for speech in speeches]

    def pieces(self, text: str | Plan, config: SpeechConfig = USUAL) -> Generator[Spoken, None, None]:
        """Speak a text and yield each sentence as soon as it is done; closing the iterator ends the work."""
        plan = self.plan(text, config) if isinstance(text, str) else text
        return self._record(numbered(plan.pieces, config.seed), config, Clock())

    def again(self, piece: Spoken, config: SpeechConfig = USUAL) -> Spoken:
        """Speak one sentence of a speech once more, with the seed of the settings."""
        line = Line(Piece(piece.reading, piece.paragraph, piece.pause, piece.chapter), config.seed)
        return next(self._record([line], config, Clock()))

    def joined(self, pieces: Sequence[Spoken], config: SpeechConfig, notes: tuple[str, ...] = ()) -> Speech:
        """Put sentences together, with the pauses between them."""
        found = joining.placed(pieces)
        return Speech(found, joining.join(found), self.voice(config.reference).name, config.seed, notes=notes)

    def dub(self, cues: Sequence[Cue], config: SpeechConfig = USUAL, seconds: float | None = None) -> Timeline:
        """Speak subtitles, each in its time; cues without a letter stay silent.

        Args:
            cues: In order of time, as ``read_cues`` returns them.
            config: How.
            seconds: How long the whole is; None: it ends with the last cue.
        """
        said = [number for number, cue in enumerate(cues) if any(map(str.isalnum, cue.text))]
        speeches = self.speak_many([cues[number].text for number in said], config)
        sounds = dict(zip(said, (speech.samples for speech in speeches), strict=True))
        return fit(cues, [sounds.get(number, joining.silence(0)) for number in range(len(cues))], seconds=seconds)

    def stream(
        self, text: str | Plan, config: SpeechConfig = USUAL, **settings: object
    ) -> Generator[Samples, None, None]:
        """Give the sound of a text while it is being spoken; closing the iterator frees everything at once.

        Nothing can be taken back once it was heard, so doubtful sentences are not repeated here.
        """
        config = settled(config, settings)
        voice = self.voice(config.reference)
        plan = self.plan(text, config) if isinstance(text, str) else text
        for line in numbered(plan.pieces, config.seed):
            with self._one_at_a_time, closing(self._sounding(line, voice, config)) as parts:
                yield from parts
            yield joining.silence(line.piece.pause)

    def _sounding(self, line: Line, voice: Voice, config: SpeechConfig) -> Generator[Samples, None, None]:
        parts = chunks(
            self.decoder,
            self.vocoder,
            self.request(line, voice, config),
            voice,
            first=config.first_codes,
            then=config.chunk_codes,
        )
        stretcher = Stretcher(OUTPUT_RATE, config.speed)
        with closing(parts):
            for part in parts:
                yield stretcher.push(part)
        yield stretcher.finish()

    def _record(self, lines: Sequence[Line], config: SpeechConfig, clock: "Clock") -> Generator[Spoken, None, None]:
        """Speak lines in batches; only one caller at a time uses the model."""
        voice = self.voice(config.reference)

        def generate(some: Sequence[Line]) -> list[Generated]:
            with self._one_at_a_time, clock.stage("decoding"):
                return self.decoder.generate([self.request(line, voice, config) for line in some])

        def sound(said: Sequence[Generated]) -> list[Samples]:
            self.decoder.look()
            with self._one_at_a_time, clock.stage("sound"):
                return self.vocoder.sounds([one.latents for one in said], voice.embedding)

        return Studio(generate, sound, config, guards.Limits.of(config.language)).record(lines)

    def request(self, line: Line, voice: Voice, config: SpeechConfig) -> Request:
        """Ask the decoder for a piece of a text."""
        limit = min(line.limit(guards.Limits.of(config.language)), self.decoder.most_codes)
        return Request(line.piece.reading.ids, voice.prompt, Sampling.of(config), line.seed, limit)


def numbered(pieces: Sequence[Piece], seed: int) -> list[Line]:
    """Give each piece a seed of its own, so that one alone can be spoken again."""
    return [Line(piece, (seed + number) % 2**32) for number, piece in enumerate(pieces)]


def settled(config: SpeechConfig, settings: Mapping[str, object]) -> SpeechConfig:
    """Put single settings into a config, all of them checked."""
    return SpeechConfig.parse({**config.model_dump(), **settings}) if settings else config


class Clock:
    """Counts the seconds that each stage of speaking takes."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside for a stage."""
        begun = time.monotonic()
        yield
        self.stages[name] = self.stages.get(name, 0.0) + time.monotonic() - begun

    def took(self) -> dict[str, float]:
        """Return the seconds of each stage, and of all together."""
        return {**self.stages, "all": time.monotonic() - self.begun}
