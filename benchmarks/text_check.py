"""How well wrong texts of people's recordings are found: python -m benchmarks.text_check --people FOLDER --work FOLDER.

FOLDER holds one folder for each corpus, with a texts.csv (file|text|reader). The clips of the readers of one fold, whom
a recogniser made by ``tools.phone_recogniser --fold`` never heard, are prepared as a user has them: with some texts of
other clips, some without a word that is said, and some with a word too many. ``--projects 4 --clips 40`` adds up four
small projects.
"""

import argparse
import resource
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import soundfile

from tools.phone_recogniser import FOLDS, people
from utils.config import DatasetConfig
from utils.core.facts import Fact
from utils.dataset import text_check
from utils.dataset.prepare import prepare
from utils.dataset.sources import find_recordings
from utils.media import audio
from utils.recognition.units import units_of

RATE = 16_000
SHORTEST = 4  # units of a word that is left out or planted
BY_SIGNAL = {"clipped", "noisy"}


@dataclass(frozen=True)
class Planted:
    """A clip, what is said in it, the text that came with it, and what is wrong with that."""

    path: Path
    said: str
    text: str
    reader: str
    error: str = "right"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--recogniser", type=Path, help="instead of the embedded one")
    parser.add_argument("--fold", type=int, choices=range(FOLDS), default=0)
    parser.add_argument("--clips", type=int, default=150)
    parser.add_argument("--projects", type=int, default=1, help="each with other clips and errors")
    options = parser.parse_args()
    if options.recogniser:
        text_check.EMBEDDED = options.recogniser  # type: ignore[attr-defined]
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(options.projects):
        shutil.rmtree(options.work, ignore_errors=True)
        options.work.mkdir(parents=True)
        clips = read(options.people, options.fold, options.clips, seed)
        measure(plant(clips, seed), options.work, found)
    for error, reasons in sorted(found.items()):
        total = reasons.total()
        by_signal = sum(count for reason, count in reasons.items() if reason in BY_SIGNAL)
        by_text = total - reasons["kept"] - by_signal
        print(f"{error}: {total} clips; excluded by text {by_text / total:.1%}, by signal {by_signal / total:.1%}")
        print(f"  {dict(reasons)}")


def read(folder: Path, fold: int, count: int, seed: int) -> list[Planted]:
    """Draw clips of the readers of a fold, as many of each."""
    random, readers, chosen = np.random.default_rng(seed), people(folder, fold), []
    for name, clips in readers.items():
        for number in random.permutation(len(clips))[: -(-count // len(readers))]:
            path, text = clips[number]
            chosen.append(Planted(path, text, text, name))
    return chosen


def plant(clips: Sequence[Planted], seed: int) -> list[Planted]:
    """Swap the texts of a fifth for ones of like length; leave a word out of a tenth, put one into another tenth."""
    random, planted = np.random.default_rng(seed), list(clips)
    order = random.permutation(len(clips))
    first, second, third = np.cumsum([round(share * len(clips)) for share in (0.2, 0.1, 0.1)])
    texts = [clip.said for clip in clips]
    for number in order[:first]:
        planted[number] = replace(clips[number], text=similar(number, texts), error="swapped")
    for number in order[first:second]:
        planted[number] = without_a_word(clips[number], random)
    for number in order[second:third]:
        planted[number] = with_a_word(clips[number], texts, random)
    return planted


def similar(number: int, texts: Sequence[str]) -> str:
    lengths = np.array([length(text) for text in texts])
    near = np.argsort(np.abs(lengths - lengths[number]), kind="stable")
    return str(next(texts[other] for other in near if texts[other] != texts[number]))


def without_a_word(clip: Planted, random: np.random.Generator) -> Planted:
    words = [word.text for word in units_of("am").words(clip.said)]
    places = [place for place, word in enumerate(words) if length(word) >= SHORTEST]
    if len(places) < 2:
        return clip
    del words[places[int(random.integers(len(places)))]]
    return replace(clip, text=" ".join(words), error="missing")


def with_a_word(clip: Planted, texts: Sequence[str], random: np.random.Generator) -> Planted:
    words = [word.text for word in units_of("am").words(clip.said)]
    others = [word for text in texts for word in text.split() if length(word) >= SHORTEST and word not in words]
    words.insert(int(random.integers(len(words) + 1)), others[int(random.integers(len(others)))])
    return replace(clip, text=" ".join(words), error="extra")


@cache
def length(text: str) -> int:
    return sum(len(word.units) for word in units_of("am").words(text))


def measure(clips: Sequence[Planted], work: Path, found: defaultdict[str, Counter[str]]) -> None:
    """Prepare the clips, count which were excluded, and print what that cost."""
    by_name = {f"{number:04}.wav": clip for number, clip in enumerate(clips)}
    for name, clip in by_name.items():
        soundfile.write(work / name, audio.load(clip.path, RATE), RATE)
    rows = [f"{name}|{clip.text}|{clip.reader}\n" for name, clip in by_name.items()]
    (work / "metadata.csv").write_text("".join(rows), encoding="utf-8")
    settings = DatasetConfig(language="am", workers=1)
    scan = find_recordings([work], language="am", workspace=work)
    began, processor, reported = time.monotonic(), time.process_time(), Counter[str]()

    def report(fact: Fact) -> None:
        reported[type(fact).__name__] += 1

    contents = prepare(scan.recordings, work / "project" / "dataset", settings, report, problems=scan.problems)
    for kept in contents.clips.values():
        reason = kept.reason if kept.status == "excluded" else ""
        clip = by_name[Path(kept.source).name]
        found[clip.error][str(reason) or "kept"] += 1
        if clip.error == "right" and reason:
            print(f"lost: {reason} {kept.note!r} in {clip.said!r}, {clip.path.name}")
    check = text_check.saved_check(work / "project" / "dataset", "am")
    seconds = sum(source.seconds for source in contents.recordings.values())
    print(check.limits if check else "no limits", dict(reported))
    used = time.process_time() - processor
    elapsed, memory = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{seconds:.0f} s of sound, {used:.0f} s of processor, {elapsed:.0f} s, peak {memory:.1f} GB")


if __name__ == "__main__":
    main()
