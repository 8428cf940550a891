"""Speaking sentences together, judging each, and speaking doubtful ones again with other random numbers."""

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from utils.config import SpeechConfig
from utils.core.batching import batched
from utils.media.audio import Samples
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.media.stretching import stretch
from utils.speech import guards
from utils.speech.decoder import Generated
from utils.speech.planning import Piece
from utils.speech.types import Spoken

EXTRA = 1.5  # of the longest time that a text usually takes; what goes on after that has lost its way


@dataclass(frozen=True)
class Line:
    """One piece of a text on its way to becoming sound.

    Attributes:
        piece: What it is, and the pause after it.
        seed: Makes the same sound again.
    """

    piece: Piece
    seed: int

    def limit(self, limits: guards.Limits) -> int:
        """Return the most codes that this text can need."""
        return math.ceil(EXTRA * guards.longest(self.piece.reading, limits) / CODE_SECONDS)


class Take(NamedTuple):
    """What came of a line once, what is heard in it, and how good it seems."""

    spoken: Spoken
    heard: guards.Heard
    score: float


Generate = Callable[[Sequence[Line]], list[Generated]]
Sound = Callable[[Sequence[Generated]], list[Samples]]


@dataclass(frozen=True)
class Studio:
    """What turns lines into sound, and the settings that judge it.

    Attributes:
        generate: Says lines together.
        sound: Makes the sound of what was said.
        config: The settings.
        limits: What the guards find normal.
    """

    generate: Generate
    sound: Sound
    config: SpeechConfig
    limits: guards.Limits

    def record(self, lines: Sequence[Line]) -> Generator[Spoken, None, None]:
        """Speak lines, as many together as the settings say, and give each as soon as its batch is done."""
        for batch in batched(lines, self.config.batch_size):
            yield from self._best(batch)

    def _best(self, lines: Sequence[Line]) -> list[Spoken]:
        """Speak lines until none is in doubt or all tries are used; the best take of each counts."""
        best: dict[int, Take] = {}
        tries: Counter[int] = Counter()
        for attempt in range(self.config.tries):
            waiting = [place for place in range(len(lines)) if place not in best or best[place].spoken.flags]
            tries.update(waiting)
            for place, take in self._takes(lines, waiting, attempt):
                best[place] = max(best.get(place, take), take, key=lambda one: one.score)
        return [self._finished(best[place], tries[place]) for place in range(len(lines))]

    def _takes(self, lines: Sequence[Line], places: Sequence[int], attempt: int) -> Iterator[tuple[int, Take]]:
        """Speak lines as often as there shall be candidates, each time with another seed."""
        many = self.config.candidates
        wanted = [(place, attempt * many + number) for place in places for number in range(many)]
        for batch in batched(wanted, self.config.batch_size):
            asked = [replace(lines[place], seed=guards.next_seed(lines[place].seed, take)) for place, take in batch]
            said = self.generate(asked)
            for (place, _), line, one, samples in zip(batch, asked, said, self.sound(said), strict=True):
                yield place, self._judged(line, one, samples)

    def _judged(self, line: Line, said: Generated, samples: Samples) -> Take:
        codes, reading = said.codes.numpy()[: -1 if said.ended else None], line.piece.reading
        heard = guards.Heard(samples)
        flags = guards.judge(reading, codes, heard, said.ended, self.limits)
        spoken = Spoken(
            reading=reading,
            samples=samples,
            codes=codes,
            ended=said.ended,
            seed=line.seed,
            flags=flags,
            pause=line.piece.pause,
            paragraph=line.piece.paragraph,
            chapter=line.piece.chapter,
        )
        return Take(spoken, heard, guards.score(flags, reading, heard, said.logprob, self.limits))

    def _finished(self, take: Take, tries: int) -> Spoken:
        """Trim the take that was chosen and give it its speed, as the settings say."""
        samples = guards.trim(take.heard) if self.config.trim else take.spoken.samples
        if self.config.speed != 1:
            samples = stretch(samples, OUTPUT_RATE, self.config.speed)
        return replace(take.spoken, samples=samples, tries=tries)
