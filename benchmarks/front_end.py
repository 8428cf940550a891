"""Measure the speed of the Amharic front end: `python benchmarks/front_end.py [--words N] [--json]`.

The text is made of listed words, with and without affixes, numbers and punctuation, in sentences of ten words; nothing
is cached between words. Times are processor times of the best of three runs. Where epitran is installed, it pronounces
the same words.
"""

import argparse
import importlib.util
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.record import save_table
from utils.amharic import normalize, phonemize
from utils.amharic.tables import DATA

PREFIXES = ("", "", "", "", "የ", "በ", "ለ", "ከ", "ስለ", "እንደ")
SUFFIXES = ("", "", "", "", "ን", "ም", "ና", "ነት", "ዎች", "ዎቹን")
WORDS_PER_SENTENCE = 10
TITLE = "The speed of the Amharic front end, one core"


def running_text(words: int, seed: int = 1) -> list[str]:
    """Make sentences from the written forms of the word list."""
    chance = random.Random(seed)
    listed = [line.split("\t")[0].replace("ː", "") for line in _lines()]
    made = [chance.choice(PREFIXES) + chance.choice(listed) + chance.choice(SUFFIXES) for _ in range(words)]
    made[::50] = [str(chance.randrange(3000)) for _ in made[::50]]
    starts = range(0, words, WORDS_PER_SENTENCE)
    return [" ".join(made[start : start + WORDS_PER_SENTENCE]) + "።" for start in starts]


def _lines() -> list[str]:
    files = sorted((DATA / "lexicon").glob("*.tsv"))
    return [
        line for file in files for line in file.read_text(encoding="utf-8").splitlines() if line[:1] not in {"", "#"}
    ]


def words_per_second(step: Callable[[str], str], sentences: list[str]) -> float:
    """Run a step over all sentences and return its speed; the tables are loaded before the clock starts."""
    step(sentences[0])
    words = sum(len(sentence.split()) for sentence in sentences)
    best = min(_seconds(step, sentences) for _ in range(3))
    return words / best


def _seconds(step: Callable[[str], str], sentences: list[str]) -> float:
    start = time.process_time()
    for sentence in sentences:
        step(sentence)
    return time.process_time() - start


def measure(words: int) -> dict[str, float]:
    """Return the speed of each step in words per second of one core."""
    written = running_text(words)
    spoken = [normalize(sentence) for sentence in written]
    speeds = {
        "normalize": words_per_second(normalize, written),
        "phonemize": words_per_second(phonemize, spoken),
        "normalize + phonemize": words_per_second(lambda text: phonemize(normalize(text)), written),
    }
    if importlib.util.find_spec("epitran"):
        speeds["epitran"] = words_per_second(lambda text: phonemize(text, "epitran"), spoken[: len(spoken) // 10])
    return speeds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=20_000, help="how many words of text to make")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--results", type=Path, help="folder for the findings (none)")
    arguments = parser.parse_args()
    speeds = measure(arguments.words)
    if arguments.results:
        rows = [[step, f"{speed:.0f}"] for step, speed in speeds.items()]
        save_table("front_end", TITLE, ["", "words a second"], rows, arguments.results)
    if arguments.json:
        print(json.dumps(speeds, ensure_ascii=False))
        return
    for step, speed in speeds.items():
        print(f"{step:24}{speed:10.0f} words/s")


if __name__ == "__main__":
    main()
