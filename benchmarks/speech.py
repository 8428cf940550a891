"""Compare our speech with coqui's, side by side: `python benchmarks/speech.py [--layers 6 --dim 512 --heads 8]`.

Both sides speak the same texts with the same random weights and the same number of codes, from the text to the samples;
our side also runs its automatic checks on the audio. Each side is a separate process, and they take turns. The fastest
round of each counts, because other work on the machine can only slow a round down; the result has all rounds.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.speech_findings import FIRST, FIRST_BY_DEFAULT, MANY, ONE, STOP, SpokenSide, speech_table
from benchmarks.speech_options import conclude, parser
from benchmarks.speech_sides import Conditions, Side
from tools import random_model
from utils.config import SpeechConfig
from utils.media.rates import CODE_SECONDS

CHUNK = 20  # codes of a first chunk that is equal on both sides; coqui's default

PAGE = """\
# Speech, side by side with plain coqui-tts

{hardware}, {date}, {software}; {threads} threads.
Command: `{command}`

GPT of {layers} layers x {dim} with random weights and the published vocoder's size. One sentence has {codes} codes
({seconds:.1f} s); the {sentences} different texts have {shortest} to {longest} codes. Best of {rounds} rounds in turn,
after a warm-up; all rows are from this run. coqui speaks several texts one after the other, ours speaks them together
and also checks them. By default, coqui sends its first sound after 20 codes, ours after {first}. "Stopped after" is how
long the model stays busy after a stream was cancelled, the slowest of the rounds; coqui can stop between two chunks
only. Memory is that of the process as the system counts it, with the mapped model file; the peak while speaking is that
of all rows above, {sentences} texts together in ours and one at a time in coqui.

{table}
"""


def compare(arguments: argparse.Namespace, folder: Path) -> list[SpokenSide]:
    """Let the sides speak in turn."""
    conditions = Conditions(folder, arguments.device, arguments.codes, arguments.threads)
    audio = sum(codes for _, codes in conditions.texts(arguments.sentences)) * CODE_SECONDS
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(precision, conditions)) for precision in ("", *arguments.precisions)]
        for side in sides:
            side.ask("one")  # warms up
        rounds: list[list[dict[str, float]]] = [[] for _ in sides]
        for number in range(arguments.rounds):
            for side, found in zip(sides, rounds, strict=True):
                found.append({
                    ONE: side.ask("one"),
                    MANY: side.ask("many", arguments.sentences) / audio,
                    FIRST: side.ask("first", CHUNK),
                    FIRST_BY_DEFAULT: side.ask("first", 0),
                    STOP: side.ask("stop"),
                })  # fmt: skip
                print(
                    number + 1,
                    side.side,
                    side.gpt,
                    {what: round(value, 3) for what, value in found[-1].items()},
                    flush=True,
                )
        return [
            SpokenSide(side.side, side.gpt, side.vocoder, found, side.memory())
            for side, found in zip(sides, rounds, strict=True)
        ]


def main() -> None:
    """Compare and show the table."""
    options = parser(__doc__ or "", codes=129, precisions=("fp32", "int8"))
    options.add_argument("--sentences", type=int, default=8, help="texts that ours speaks together (8)")
    arguments = options.parse_args()
    sizes = random_model.RandomModelSize(
        arguments.layers, arguments.dim, arguments.heads, tokens=6681, dvae=512, codebook=512, views=True
    )
    with tempfile.TemporaryDirectory() as place:
        sides = compare(arguments, random_model.build(Path(place) / "model", sizes=sizes))
    seconds = arguments.codes * CODE_SECONDS
    lengths = [codes for _, codes in Conditions(Path(), "", arguments.codes, 0).texts(arguments.sentences)]
    conclude(
        "speech", PAGE, arguments, *speech_table(sides, seconds, arguments.sentences),
        {"sides": [asdict(side) for side in sides]},
        seconds=seconds, shortest=min(lengths), longest=max(lengths), first=SpeechConfig().first_codes,
    )  # fmt: skip


if __name__ == "__main__":
    main()
