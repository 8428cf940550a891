"""How well a recording is cut by a transcript that is not quite its own: python -m benchmarks.transcript --work FOLDER.

Clips are joined, with pauses or without any. Of the transcript a tenth of the sentences is missing, a tenth belongs to
nothing, and with ``--parts`` its parts are in another order. Clips come from a folder with a texts.csv (file|text|...),
or are spoken by espeak-ng. What is said where is known from each clip alone, aligned with its right text.
"""

import argparse
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile

from utils.config import DatasetConfig
from utils.core import wording
from utils.core.facts import Fact, WarningFact
from utils.dataset import prompts
from utils.dataset.clip import Clip
from utils.dataset.prepare import prepare
from utils.dataset.sources import find_recordings
from utils.dataset.word_cutting import WORD_END
from utils.media import audio
from utils.media.audio import Samples
from utils.recognition import vad
from utils.recognition.aligner import align, emit
from utils.recognition.phone_recogniser import EMBEDDED, RATE, load_recogniser
from utils.recognition.spans import Span
from utils.recognition.units import units_of

SETTINGS = DatasetConfig(language="am", workers=1)
TOLERANCE = 0.15  # seconds
PAUSES = (0.4, 1.2)  # seconds
STOP = re.compile(r"[።፣፤፥፦፡፧!?.,\"“”«»]+")


class Said(NamedTuple):
    """A word of the recording."""

    text: str
    span: Span


@dataclass(frozen=True)
class Sentence:
    """A clip and its text."""

    samples: Samples
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--clips", type=Path, help="folder with texts.csv; without one espeak-ng speaks")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--wrong", type=float, default=0.1, help="share of sentences that are missing, and of others")
    parser.add_argument("--parts", type=int, default=1, help="parts of the transcript, which are then shuffled")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    extra = round(options.wrong * options.count)
    spoken = read(options.clips, options.count, random) if options.clips else speak(options.count)
    others = [text for text in prompts.shipped() if text not in {each.text for each in spoken}]
    for is_paused in (True, False):
        shutil.rmtree(options.work, ignore_errors=True)
        options.work.mkdir(parents=True)
        said = join(spoken, options.work / "talk.wav", random, is_paused=is_paused)
        lines = approximate([each.text for each in spoken], others[-extra:] if extra else [], options.parts, random)
        (options.work / "talk.txt").write_text("\n".join(lines), encoding="utf-8")
        print("with pauses:" if is_paused else "without pauses:")
        measure(said, options.work)


def read(folder: Path, count: int, random: np.random.Generator) -> list[Sentence]:
    """Draw clips, in the order of their list."""
    rows = [line.split("|") for line in (folder / "texts.csv").read_text("utf-8").splitlines()[1:]]
    chosen = sorted(random.permutation(len(rows))[:count].tolist())
    return [Sentence(audio.load(folder / rows[at][0], RATE), stopped(rows[at][1])) for at in chosen]


def speak(count: int) -> list[Sentence]:
    from tools.tiny_voice.audio import render
    from tools.tiny_voice.speakers import HELD_OUT
    from utils.media.rates import RATE as SPOKEN_RATE

    texts = prompts.shipped()[:count]
    return [Sentence(audio.resample(render(text, HELD_OUT[0]), SPOKEN_RATE, RATE), stopped(text)) for text in texts]


def stopped(text: str) -> str:
    text = text.strip()
    return text if text[-1] in "።!?" else f"{text}።"


def join(sentences: Sequence[Sentence], path: Path, random: np.random.Generator, *, is_paused: bool) -> list[Said]:
    """Write the speech of clips one after the other; return the words with their times."""
    units, said, parts, at = units_of("am"), list[Said](), list[Samples](), 0.0
    model = load_recogniser(EMBEDDED, units)
    for sentence in sentences:
        samples = speech_of(sentence.samples, path.with_name("clip.wav"))
        aligned = align(emit(model, samples), units.words(sentence.text))
        found = aligned.words if aligned else ()
        spans = [Span(at + word.span.start, at + word.span.end + WORD_END) for word in found]
        if spans:  # where the clips meet is known
            spans[0] = Span(at, spans[0].end)
            spans[-1] = Span(spans[-1].start, at + samples.size / RATE)
        said += [Said(word.text, span) for word, span in zip(found, spans, strict=True)]
        pause = np.zeros(round(random.uniform(*PAUSES) * RATE) if is_paused else 0, np.float32)
        parts += [samples, pause]
        at += (samples.size + pause.size) / RATE
    path.with_name("clip.wav").unlink()
    soundfile.write(path, np.concatenate(parts), RATE)
    return said


def speech_of(samples: Samples, path: Path) -> Samples:
    """Return a clip without the silence around it."""
    soundfile.write(path, samples, RATE)
    speech = vad.speech_segments(path, SETTINGS)
    first, end = (speech[0].start, speech[-1].end) if speech else (0.0, samples.size / RATE)
    return samples[round(first * RATE) : round(end * RATE)]


def approximate(texts: Sequence[str], others: Sequence[str], parts: int, random: np.random.Generator) -> list[str]:
    """Leave out as many sentences as there are others, put those in, and shuffle the parts."""
    lost = set(random.permutation(len(texts))[: len(others)].tolist())
    lines = [text for number, text in enumerate(texts) if number not in lost]
    for other in others:
        lines.insert(int(random.integers(len(lines) + 1)), stopped(other))
    cut = [part.tolist() for part in np.array_split(np.array(lines, dtype=object), parts)]
    return [line for number in random.permutation(len(cut)) for line in cut[number]]


def measure(said: Sequence[Said], work: Path) -> None:
    """Prepare the recording, and print how many of the clips in use are right."""
    warnings: list[Fact] = []
    scan = find_recordings([work / "talk.wav"], language="am", workspace=work)

    def report(fact: Fact) -> None:
        warnings.extend([fact] if isinstance(fact, WarningFact) else [])

    contents = prepare(scan.recordings, work / "project" / "dataset", SETTINGS, report, problems=scan.problems)
    kept = sorted(contents.kept, key=lambda clip: clip.span.start)
    right, bounds = 0, list[float]()
    for clip in kept:
        inside = [word for word in said if clip.span.start <= (word.span.start + word.span.end) / 2 <= clip.span.end]
        is_right = words(clip.text) == words(" ".join(word.text for word in inside))
        right += is_right
        if is_right:
            bounds += errors(clip, inside)
        else:
            print(
                f"  {clip.span.start:.2f}-{clip.span.end:.2f} {clip.text!r}, said {' '.join(w.text for w in inside)!r}"
            )
    near = sum(error <= TOLERANCE for error in bounds)
    total = sum(word.span.seconds for word in said)
    print(
        f"  {len(kept)} clips in use, {right} right; {near} of {len(bounds)} bounds within {TOLERANCE} s, at worst "
        f"{max(bounds, default=0):.2f} s; {sum(clip.span.seconds for clip in kept):.0f} s of {total:.0f} s of words"
    )
    for clip in contents.excluded:
        print(f"  {clip.reason}: {clip.span.start:.2f}-{clip.span.end:.2f} {clip.text!r} {clip.note}")
    for fact in warnings:
        print(f"  {wording.describe(fact)}")


def words(text: str) -> list[str]:
    return STOP.sub(" ", text).split()


def errors(clip: Clip, inside: Sequence[Said]) -> tuple[float, float]:
    """Return how far the bounds of a clip are from its words, within the padding."""
    first, last, padding = inside[0].span.start, inside[-1].span.end, SETTINGS.padding_seconds
    start = max(0.0, clip.span.start - first, first - padding - clip.span.start)
    return start, max(0.0, last - clip.span.end, clip.span.end - last - padding)


if __name__ == "__main__":
    main()
