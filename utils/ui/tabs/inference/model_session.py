"""The one model in memory, shared by everybody who visits the page, and what each visitor has it do."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from utils.core.errors import RunBusyError, RunError
from utils.core.paths import OUTPUT, VOICES
from utils.runs.tasks import Turns, Work, ensure_going
from utils.ui.tabs.inference import pronunciation

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer


@dataclass(frozen=True)
class Card:
    """What is known of the model in memory; nothing of it is guessed.

    Attributes:
        name: What it is called.
        place: What was opened.
        wanted: Device and precision that were asked for.
        languages: Codes of what it speaks.
        reads: How its added language is read, from its metadata: language, mode, backend, own pronunciations; empty
            for a model as published.
        device: Where it computes.
        reasons: What GPT and vocoder compute in, and why.
        voices: Names of the voices that it brings.
        notices: What a user should know, in sentences.
        about: Run, step and losses, where they are known.
        gib: By how much the memory of this process grew.
        graphics_gib: Memory on the graphics card.
        seconds: How long loading took.
    """

    name: str
    place: str
    wanted: tuple[str, str]
    languages: tuple[str, ...]
    reads: dict[str, str]
    device: str
    reasons: tuple[str, str]
    voices: tuple[str, ...]
    notices: tuple[str, ...]
    about: dict[str, Any]
    gib: float
    graphics_gib: float
    seconds: float


class Studio:
    """Keeps the model, and knows who is using it.

    Args:
        output: The folder of the projects.
    """

    def __init__(self, output: Path) -> None:
        self.output = output
        self.card: Card | None = None
        self.loading = ""
        self.turns = Turns()
        self._since = 0.0
        self._model: Synthesizer | None = None
        self._users = 0
        self._works: dict[str, Work[Any]] = {}
        self._changing = threading.Lock()  # held while a model comes or goes
        self._state = threading.Lock()  # held for an instant

    @property
    def users(self) -> int:
        """Return how many are using the model now."""
        return self._users

    @property
    def loading_seconds(self) -> float:
        """Return for how long a model has been loading."""
        return time.monotonic() - self._since if self.loading else 0.0

    def load(self, place: str, device: str = "auto", precision: str = "auto") -> Card:
        """Have a model in memory; the one that is wanted stays, another one gives way to it.

        This takes seconds to minutes, so it is called from a thread of its own.
        """
        if not place.strip():
            raise RunError("No model is chosen.", hint="Choose one in the list, or train one first.")
        with self._changing:
            if self._has(place, device, precision) and self.card:
                return self.card
            self._drop()
            self.loading, self._since = place, time.monotonic()
            try:
                self._model, self.card = self._opened(place, device, precision)
            finally:
                self.loading = ""
            return self.card

    def unload(self) -> None:
        """Take the model out of memory, unless somebody is using it."""
        if not self._changing.acquire(blocking=False):
            raise RunBusyError("A model is being loaded.", hint="Wait until it is there.")
        try:
            self._drop()
        finally:
            self._changing.release()

    @contextmanager
    def using(self) -> Iterator["Synthesizer"]:
        """Give the model and keep it in memory for as long."""
        with self._state:
            model = self._model
            if model is None:
                raise RunError("No model is loaded.", hint="Load a model first.")
            self._users += 1
        try:
            yield model
        finally:
            with self._state:
                self._users -= 1

    def voices(self) -> tuple[str, ...]:
        """Return the voices of the model in memory."""
        return self.card.voices if self.card else ()

    def begin(self, visitor: str, work: Work[Any]) -> None:
        """Note what a visitor has begun, so that he can stop it; one thing at a time."""
        with self._state:
            before = self._works.get(visitor)
            self._works[visitor] = work
        if before:
            before.break_off()

    def stop(self, visitor: str) -> bool:
        """Break off what a visitor has begun; tell whether there was anything."""
        with self._state:
            work = self._works.pop(visitor, None)
        if work is None or work.stopped:
            return False
        work.break_off()
        return True

    def _has(self, place: str, device: str, precision: str) -> bool:
        return self.card is not None and (self.card.place, self.card.wanted) == (place, (device, precision))

    def _drop(self) -> None:
        with self._state:
            if self._users:
                raise RunBusyError(
                    f"The model is speaking for {self._users} visitor(s).", hint="Wait until it is silent, or stop it."
                )
            had, self._model, self.card = self._model, None, None
        if had is not None:
            from utils.xtts import memory

            had.__dict__.clear()  # whoever still holds it, a traceback for one, must not keep gigabytes
            memory.free_memory()

    def _opened(self, place: str, device: str, precision: str) -> tuple["Synthesizer", Card]:
        begun = time.monotonic()
        from utils.speech.synthesizer import Synthesizer
        from utils.xtts import memory

        before, on_card = _gib(), memory.gpu_memory_gib()
        try:
            voices = self.output / VOICES.relative_to(OUTPUT)
            model = Synthesizer.load(place, device, precision, cache=voices, output=self.output, on_step=ensure_going)
        except BaseException:
            memory.free_memory()
            raise
        took = time.monotonic() - begun
        grown = max(0.0, _gib() - before)
        return model, card(model, place, (device, precision), grown, memory.gpu_memory_gib() - on_card, took)


def card(
    model: "Synthesizer", place: str, wanted: tuple[str, str], gib: float, graphics_gib: float, seconds: float
) -> Card:
    """Write down what is known of a model."""
    opened = model.model
    return Card(
        name=opened.name,
        place=place,
        wanted=wanted,
        languages=opened.languages,
        reads=pronunciation.told_of(opened.tokenizer),
        device=model.precision.device,
        reasons=(model.precision.gpt_reason, model.precision.vocoder_reason),
        voices=model.voices(),
        notices=opened.notices,
        about=dict(opened.about),
        gib=gib,
        graphics_gib=graphics_gib,
        seconds=seconds,
    )


def _gib() -> float:
    return float(psutil.Process().memory_info().rss) / 2**30
