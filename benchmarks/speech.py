"""Compare our speech with coqui's, side by side: `python benchmarks/speech.py [--layers 6 --dim 512]`.

Both sides speak the same texts with the same random weights and the same number of codes, from the text to the samples;
our side also runs its automatic checks on the audio. Each side is a separate process, and they take turns. The fastest
round of each counts, because other work on the machine can only slow a round down; the result has all rounds.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.record import conclude, faster, parser, row, share
from benchmarks.sides import Side
from benchmarks.training_material import heads
from testing import random_model
from utils.config import SpeechConfig
from utils.media.rates import CODE_SECONDS

CHUNK = 20  # codes of a first chunk that is equal on both sides; coqui's default
TEXT = "the birds of the lake return every year when the long rains end"  # as many letters as tokens
TEXTS = {  # with their length as a multiple of that of TEXT; on average 1
    "the farmers sow their fields when it rains": 0.7,
    "in the old town the bakers light their ovens long before the sun rises over the hills": 1.4,
    "she opened the green door": 0.4,
    "every evening the fishermen pull their boats onto the sand and rest": 1.1,
    "my grandmother told us stories about lions and about bees": 0.9,
    "the teacher asked the children to write down what they had seen on their way to the school that morning": 1.6,
    "coffee is roasted slowly over charcoal": 0.6,
    "two brothers walked for three days to reach the market and came home with one goat": 1.3,
}

PAGE = """\
Speech, side by side with plain coqui-tts

GPT of {layers} layers x {dim} with random weights and the published vocoder's size; {threads} threads. One sentence has
{codes} codes ({seconds:.1f} s); the {sentences} different texts have {shortest} to {longest} codes. Best of {rounds}
rounds in turn, after a warm-up; all rows are from this run. coqui speaks several texts one after the other, ours
speaks them together and also checks them. By default, coqui sends its first sound after 20 codes, ours after {first}.
Memory is that of the GPU, or of the process as the system counts it, with the mapped model file; the peak while
speaking is that of all rows above, {sentences} texts together in ours and one at a time in coqui.
"""


def compare(options: argparse.Namespace, folder: Path) -> None:
    """Let the sides speak in turn, and conclude."""
    texts = [(text, round(length * options.codes)) for text, length in islice(cycle(TEXTS.items()), options.sentences)]
    seconds, lengths = options.codes * CODE_SECONDS, [codes for _, codes in texts]
    with ExitStack() as stack:
        sides = [stack.enter_context(open_side("Coqui", options, folder, ""))]
        sides += [stack.enter_context(open_side("Ours", options, folder, kind)) for kind in options.precisions]
        rounds: list[list[dict[str, float]]] = [[] for _ in sides]
        for side in sides:
            side.ask("speak", [(TEXT, options.codes)])  # warms up
        for _ in range(options.rounds):
            for side, found in zip(sides, rounds, strict=True):
                found.append({
                    "one": side.ask("speak", [(TEXT, options.codes)]),
                    "many": side.ask("speak", texts) / sum(lengths) / CODE_SECONDS,
                    "first": side.ask("first", TEXT, options.codes, CHUNK),
                    "first_by_default": side.ask("first", TEXT, options.codes, 0),
                })  # fmt: skip
                print(side.notes, found[-1], flush=True)
        memory = [side.memory() for side in sides]
        names = ["GPT {}, vocoder {}".format(*side.notes) for side in sides]

    def best(what: str) -> list[float]:
        return [min(each[what] for each in found) for found in rounds]

    head = ["", f"coqui: {names[0]}"]
    for name in names[1:]:
        head += [f"ours: {name}", "ratio"]
    rows = [
        row("one sentence, s", best("one"), ".2f", faster),
        row("one sentence, real-time factor", [one / seconds for one in best("one")], ".2f", faster),
        row(f"{options.sentences} texts, real-time factor", best("many"), ".2f", faster),
        row("first sound, 20 codes on both sides, s", best("first"), ".2f", faster),
        row("first sound by default, s", best("first_by_default"), ".2f", faster),
        row("memory after loading, MiB", [each.loaded for each in memory], ".0f", share),
        row("peak memory while loading, MiB", [each.loading for each in memory], ".0f", share),
        row("peak memory while speaking, MiB", [each.working for each in memory], ".0f", share),
    ]
    conclude(
        f"speech_{options.layers}x{options.dim}",
        PAGE,
        options,
        head,
        rows,
        measured=dict(zip(names, rounds, strict=True)),
        memory=dict(zip(names, [each._asdict() for each in memory], strict=True)),
        seconds=seconds,
        shortest=min(lengths),
        longest=max(lengths),
        first=SpeechConfig().first_codes,
    )


def open_side(name: str, options: argparse.Namespace, folder: Path, precision: str) -> Side:
    """Start a side."""
    device = options.device
    return Side(f"benchmarks.speech_sides:{name}", device, options.threads, folder, device, precision)


def main() -> None:
    """Build a random model, and compare."""
    found = parser(__doc__ or "", layers=30, dim=1024, rounds=2)
    found.add_argument("--codes", type=int, default=129, help="codes of a sentence (129)")
    found.add_argument("--precisions", nargs="+", default=["fp32", "int8"], help="of ours (fp32 int8)")
    found.add_argument("--sentences", type=int, default=8, help="texts that ours speaks together (8)")
    options = found.parse_args()
    size = replace(random_model.PUBLISHED, layers=options.layers, dim=options.dim, heads=heads(options))
    with tempfile.TemporaryDirectory() as folder:
        compare(options, random_model.build(Path(folder) / "model", sizes=size))


if __name__ == "__main__":
    main()
