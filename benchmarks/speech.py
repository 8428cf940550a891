"""Compare our speech with coqui's, side by side: `python benchmarks/speech.py [--layers 6 --dim 512 --heads 8]`.

Both sides speak the same text with the same random weights and the same number of codes, from the text to the samples;
ours also listens to the result as its guards do. They are processes of their own that work in turn, and the fastest
round of each counts, since other work on the machine only ever slows one down.
"""

import argparse
import shlex
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.speech_sides import CODE_SECONDS, Conditions, Side
from benchmarks.training_report import hardware, save, slug, table, today

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

{hardware}, {date}, torch {torch}, {threads} threads.
Command: `{command}`

GPT of {layers} layers x {dim} with random weights and the published vocoder's size; sentences of {codes} codes
({seconds:.1f} s); {together} sentences together; best of {rounds} rounds in turn. coqui speaks several sentences one
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


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--layers", type=int, default=30, help="of the GPT (30)")
    parser.add_argument("--dim", type=int, default=1024, help="width of the GPT (1024)")
    parser.add_argument("--heads", type=int, default=16, help="heads of its attention (16)")
    parser.add_argument("--codes", type=int, default=129, help="codes of a sentence (129: 6 s)")
    parser.add_argument("--sentences", type=int, default=8, help="sentences that ours speaks together (8)")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"], help="of ours (fp32 int8)")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of each side (2), after one to warm up")
    parser.add_argument("--threads", type=int, default=2, help="threads of each side (2)")
    parser.add_argument("--results", type=Path, help="folder for the findings (none)")
    return parser


def main() -> None:
    """Compare and show the table."""
    import torch

    from utils.xtts import tiny

    arguments = parser().parse_args()
    sizes = tiny.Sizes(
        arguments.layers, arguments.dim, arguments.heads, tokens=6681, dvae=512, codebook=512, views=True
    )
    with tempfile.TemporaryDirectory() as place:
        rows = compare(arguments, tiny.build(Path(place) / "model", sizes=sizes))
    names = ("layers", "dim", "codes", "rounds", "threads")
    page = PAGE.format(
        **{name: getattr(arguments, name) for name in names}, seconds=arguments.codes * CODE_SECONDS,
        together=arguments.sentences, table=table(HEAD, rows), hardware=hardware(arguments.device), date=today(),
        torch=torch.__version__, command=shlex.join(["python", "benchmarks/speech.py", *sys.argv[1:]]),
    )  # fmt: skip
    print(page)
    if arguments.results:
        name = f"speech_{arguments.layers}x{arguments.dim}_{slug(hardware(arguments.device))}_{today()}"
        print(save(name, {"head": HEAD, "rows": rows}, page, arguments.results))


if __name__ == "__main__":
    main()
