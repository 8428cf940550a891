"""The tasks that speak a text: whole sentences, or a stream of sound; a session runs them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from utils.config import SpeechConfig
from utils.core.facts import Fact
from utils.media.audio import Samples
from utils.speech.facts import StreamNotChecked
from utils.speech.planning import SpeechPlan, split_speakers
from utils.speech.types import Utterance, silence

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer


@dataclass(frozen=True)
class SpeechStart:
    """The first event of a spoken text: what will be spoken, by which model in which voice, and what was left out."""

    total: int
    model: str
    voice: str
    notes: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Part:
    """What one speaker says in a script; a text without speakers is one part."""

    plan: SpeechPlan
    config: SpeechConfig


def plan_parts(model: "Synthesizer", text: str, config: SpeechConfig, voices: Mapping[str, str]) -> tuple[Part, ...]:
    """Plan a text; a line ``Name: text`` is spoken by the voice of that name, with a pause between speakers."""
    spoken = split_speakers(text, voices)
    parts = []
    for number, (reference, said) in enumerate(spoken):
        own = config.model_copy(update={"reference": reference or config.reference})
        plan = model.plan(said, own)
        *first, last = (replace(sentence, reference=reference) for sentence in plan.sentences)
        last = replace(last, pause=config.paragraph_pause if number + 1 < len(spoken) else last.pause)
        parts.append(Part(SpeechPlan((*first, last), plan.notes), own))
    return tuple(parts)


def _started(model: "Synthesizer", parts: Sequence[Part], *notes: Fact) -> SpeechStart:
    names = dict.fromkeys(model.voice(part.config.reference).name for part in parts)
    total = sum(len(part.plan.sentences) for part in parts)
    planned = (note for part in parts for note in part.plan.notes)
    return SpeechStart(total, model.model.name, ", ".join(names), (*planned, *notes))


def speak_each(
    model: "Synthesizer", text: str, config: SpeechConfig, voices: Mapping[str, str] | None = None
) -> Iterator[SpeechStart | Utterance]:
    """Speak a text, checking each sentence and retrying suspicious ones; ``voices`` are those of a script, by name."""
    parts = plan_parts(model, text, config, voices or {})
    yield _started(model, parts)
    for part in parts:
        with closing(model.utterances(part.plan, part.config)) as utterances:
            yield from utterances


def stream(
    model: "Synthesizer", text: str, config: SpeechConfig, voices: Mapping[str, str] | None = None
) -> Iterator[SpeechStart | Samples | Utterance]:
    """Speak a text and yield its sound in chunks, then each sentence once it is complete."""
    parts = plan_parts(model, text, config, voices or {})
    yield _started(model, parts, StreamNotChecked())
    for sentence, own in [(sentence, part.config) for part in parts for sentence in part.plan.sentences]:
        chunks = [silence(0)]
        with closing(model.stream_sentence(sentence, own)) as sound:
            for chunk in sound:
                chunks.append(chunk)
                yield chunk
        if sentence.pause:
            yield silence(sentence.pause)
        yield Utterance(sentence, np.concatenate(chunks), np.zeros(0, np.int64), ended=True)
