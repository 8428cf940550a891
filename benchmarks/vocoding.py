"""Measure the vocoder beside coqui's: `python benchmarks/vocoding.py [--seconds S] [--rounds N] [--threads T]`.

The network has the published size and random weights that keep the strength of what passes. Both sides get the same
vectors and take turns; the median and the best of the rounds are told, in seconds of work for a second of sound. With
one thread processor time is counted, which other programs do not disturb; with more the time on the wall. Streams get
24 codes at a time. The distance is that of the log-mels to the sound of coqui's.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.precision import distance
from benchmarks.record import save_table
from tests.speech.small_vocoder import small_vocoder, vectors, voice
from utils.media.audio import Samples
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.speech.precision import multiplies_bf16
from utils.speech.vocoder import Vocoder

DIM, CHANNELS, CHUNK = 1024, 512, 24
TITLE = "The vocoder, side by side with coqui's"


def sides(latents: Tensor) -> dict[str, Callable[[], Samples]]:
    """Return what is compared: coqui first."""
    decoder, speaker = small_vocoder(DIM, CHANNELS), voice()
    vocoders = {"fp32": Vocoder(decoder)}
    if multiplies_bf16():
        vocoders["bf16"] = Vocoder(decoder, "bf16")
    found: dict[str, Callable[[], Samples]] = {"coqui": lambda: _coqui(decoder, latents, speaker)}
    for name, vocoder in vocoders.items():
        found[name] = partial(vocoder.sound, latents, speaker)
        found[f"{name} stream"] = partial(_streamed, vocoder, latents, speaker)
    return found


def measure(seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    """Return the figures of each side."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    latents = vectors(max(1, round(seconds / CODE_SECONDS)), DIM)
    works = sides(latents)
    sounds = {name: work() for name, work in works.items()}  # the first time is slower everywhere
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = clock()
            work()
            taken[name].append((clock() - start) / (len(sounds[name]) / OUTPUT_RATE))
    plain = statistics.median(taken["coqui"]), min(taken["coqui"])
    return {
        name: {
            "median": statistics.median(each),
            "best": min(each),
            "times faster, median": plain[0] / statistics.median(each),
            "times faster, best": plain[1] / min(each),
            "distance in dB": distance(sounds["coqui"], sounds[name]),
        }
        for name, each in taken.items()
    }


def _coqui(decoder: Any, latents: Tensor, speaker: Tensor) -> Samples:  # noqa: ANN401  # coqui's class
    with torch.inference_mode():
        sound: Samples = decoder(latents[None], g=speaker)[0, 0].numpy()
    return sound


def _streamed(vocoder: Vocoder, latents: Tensor, speaker: Tensor) -> Samples:
    stream = vocoder.stream(speaker)
    pieces = [stream.push(latents[first : first + CHUNK]) for first in range(0, len(latents), CHUNK)]
    return np.concatenate([*pieces, stream.finish()])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--results", type=Path, help="folder for the findings (none)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found = measure(options.seconds, options.rounds)
    if options.results:
        rows = [[name, *(f"{figure:.3f}" for figure in figures.values())] for name, figures in found.items()]
        save_table("vocoding", TITLE, ["", *found["coqui"]], rows, options.results)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'':14}" + "".join(f"{title:>22}" for title in found["coqui"]))
    for name, figures in found.items():
        print(f"{name:14}" + "".join(f"{figure:22.3f}" for figure in figures.values()))


if __name__ == "__main__":
    main()
