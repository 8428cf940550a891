"""Compare our speech with coqui's, side by side: `python benchmarks/speech.py [--layers 6 --dim 512 --heads 8]`.

Both sides speak the same text with the same random weights and the same number of codes, from the text to the samples;
our side also runs its automatic checks on the audio. Each side is a separate process, and they take turns. The fastest
round of each counts, because other work on the machine can only slow a round down.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.speech_options import conclude, parser
from benchmarks.speech_sides import Conditions, Side
from tools import random_model
from utils.media.rates import CODE_SECONDS

HEAD = [
    "",
    "one sentence, s",
    "coqui / ours",
    "together, s of work for 1 s",
    "coqui / ours",
    "first sound, s",
    "of the sentence",
    "peak memory, MiB",
    "of coqui's",
]
PAGE = """\
# Speech, side by side with plain coqui-tts

{hardware}, {date}, {software}; {threads} threads.
Command: `{command}`

GPT of {layers} layers x {dim} with random weights and the published vocoder's size; sentences of {codes} codes
({seconds:.1f} s); {sentences} sentences together; best of {rounds} rounds in turn. coqui speaks several sentences one
after the other, and sends its first sound after 20 codes, ours after 12.

{table}
"""


def compare(arguments: argparse.Namespace, folder: Path) -> list[list[str]]:
    """Let the sides speak in turn and give a row for each."""
    conditions = Conditions(folder, arguments.device, arguments.codes, arguments.threads)
    best: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(precision, conditions)) for precision in ("", *arguments.precisions)]
        for number in range(arguments.rounds + 1):
            for side in sides:
                many = 1 if "coqui" in side.name else arguments.sentences
                took = {"one": side.ask("speak", 1), "many": side.ask("speak", many) / many, "first": side.ask("first")}
                print(number, side.name, {name: round(value, 3) for name, value in took.items()}, flush=True)
                if number:  # the first round warms up
                    known = best.setdefault(side.name, took)
                    best[side.name] = {name: min(took[name], known[name]) for name in took}
        memory = {side.name: side.ask("memory") for side in sides}
    theirs = best[sides[0].name]
    seconds = arguments.codes * CODE_SECONDS
    return [
        [
            name,
            f"{took['one']:.2f}",
            f"{theirs['one'] / took['one']:.2f} x",
            f"{took['many'] / seconds:.2f}",
            f"{theirs['many'] / took['many']:.2f} x",
            f"{took['first']:.2f}",
            f"{took['first'] / took['one']:.0%}",
            f"{memory[name]:.0f}",
            f"{memory[name] / memory[sides[0].name]:.0%}",
        ]
        for name, took in best.items()
    ]


def main() -> None:
    """Compare and show the table."""
    options = parser(__doc__ or "", codes=129, precisions=("fp32", "int8"))
    options.add_argument("--sentences", type=int, default=8, help="sentences that ours speaks together (8)")
    arguments = options.parse_args()
    sizes = random_model.RandomModelSize(
        arguments.layers, arguments.dim, arguments.heads, tokens=6681, dvae=512, codebook=512, views=True
    )
    with tempfile.TemporaryDirectory() as place:
        rows = compare(arguments, random_model.build(Path(place) / "model", sizes=sizes))
    conclude("speech", PAGE, arguments, HEAD, rows, seconds=arguments.codes * CODE_SECONDS)


if __name__ == "__main__":
    main()
