"""Compare our training with plain coqui-tts: `python benchmarks/training.py [--device cuda --layers 30 --dim 1024]`.

Both sides start from the same weights, draw from the same clips and make the same number of updates of the same number
of clips, in alternating rounds; a third side is ours with references padded to 6 s, as coqui pads them. Our side reads
features that were extracted once; the extraction is timed separately and also spread over three epochs. coqui's
evaluation judges all weights at the end.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.record import conclude, difference, parser, row, share, times
from benchmarks.sides import Memory, Side
from benchmarks.training_material import Round, write_material
from utils.xtts.device import free_memory

WORKERS = {
    "coqui": "benchmarks.training_coqui:Coqui",
    "ours": "benchmarks.training_ours:Ours",
    "padded": "benchmarks.training_ours:Padded",
}
EPOCHS = 3  # that the one-time feature pass is spread over
WARM_UP = 1  # updates

COMPARISON = """\
Training, side by side with plain coqui-tts

GPT of {layers} layers x {dim}, {clips} clips of 2 to 9 s, batch {batch} on both sides, {threads} threads for each.
{rounds} rounds of {updates} updates for each side, {order}, after a warm-up; each side is a separate process. Both
start from the same weights. Plain coqui-tts computes in fp32, as its recipe does; ours in what `enable_mixed_precision`
chooses on this machine (see below){checkpointing}.

coqui draws clips with replacement and pads every reference to 6 s; ours reads each clip once per epoch, and its
references are as long as the shortest clip of the batch allows, up to 6 s. "References of 6 s" pads ours too. So the
sides see the same number of clips, but not the same seconds of audio; the table gives both. All losses are computed by
coqui's evaluation; that of the initial weights is {loss_before:.4f}.

The feature pass took {feature_seconds:.1f} s for all {clips} clips, once; it is counted over three epochs.

{notes}
"""


def open_side(worker: str, options: argparse.Namespace, folder: Path) -> Side:
    """Start a side."""
    return Side(worker, options.device, options.threads, options, folder)


def compare(options: argparse.Namespace, folder: Path) -> None:
    """Let the sides work in turn, and conclude; where memory holds only one, each starts anew for each round."""
    with open_side("benchmarks.training_ours:Features", options, folder) as side:
        side.ask("make")  # imports coqui's modules, too
        feature_seconds = float(side.ask("make"))
    rounds: dict[str, list[Round]] = {name: [] for name in WORKERS}
    memory: dict[str, Memory] = {}
    notes: list[str] = []
    order = [name for number in range(options.rounds) for name in (reversed(WORKERS) if number % 2 else WORKERS)]
    for group in [[name] for name in order] if options.sequential else [order]:
        with ExitStack() as stack:
            sides = {
                name: stack.enter_context(open_side(WORKERS[name], options, folder)) for name in dict.fromkeys(group)
            }
            for side in sides.values():
                side.ask("round", WARM_UP)
            for name in group:  # the side that comes first changes with each round
                rounds[name].append(sides[name].ask("round", options.updates))
                tell(f"{name:6}{rounds[name][-1].speed:8.3f} clips/s")
            for name, side in sides.items():
                memory[name] = side.memory()
                notes += [f"- {name}: {note}" for note in side.notes if name != "padded"]
                side.ask("save", name)
    with open_side(WORKERS["coqui"], options, folder) as judge:
        loss_before, *loss_after = [judge.ask("loss", name) for name in ("", *WORKERS)]
    conclude(
        f"training_{options.layers}x{options.dim}",
        COMPARISON,
        options,
        ["", "plain coqui-tts", "ours", "ratio", "ours, references of 6 s", "ratio"],
        comparison_rows(list(rounds.values()), list(memory.values()), feature_seconds / options.clips, loss_after),
        measured={name: [one._asdict() for one in found] for name, found in rounds.items()},
        memory={name: each._asdict() for name, each in memory.items()},
        feature_seconds=feature_seconds,
        loss_before=loss_before,
        order="in turn, each in a new process" if options.sequential else "in turn",
        checkpointing=", with gradient checkpointing" if options.device == "cuda" else "",
        notes="\n".join(dict.fromkeys(notes)),
    )


def comparison_rows(
    rounds: list[list[Round]], memory: list[Memory], feature_seconds: float, loss: list[float]
) -> list[list[str]]:
    """Lay the sides out beside each other."""
    speeds = [[one.speed for one in each] for each in rounds]
    usual = [median(each) for each in speeds]
    with_features = [usual[0], *(1 / (1 / speed + feature_seconds / EPOCHS) for speed in usual[1:])]
    spans = ["slowest and fastest round", f"{min(speeds[0]):.3f} to {max(speeds[0]):.3f}"]
    for each in speeds[1:]:
        ratios = [own / base for own, base in zip(each, speeds[0], strict=True)]
        spans += [f"{min(each):.3f} to {max(each):.3f}", f"{min(ratios):.2f} to {max(ratios):.2f} x"]
    return [
        row("clips a second, median of the rounds", usual, ".3f", times),
        spans,
        row("clips a second with the feature pass", with_features, ".3f", times),
        row("processor seconds a clip", [median(r.work / r.clips for r in each) for each in rounds], ".3f", share),
        row("seconds of audio a second", [median(r.audio / r.seconds for r in each) for each in rounds], ".2f", times),
        row(
            "time waiting for clips",
            [median(r.waited / r.seconds for r in each) for each in rounds],
            ".1%",
            lambda *_: "",
        ),
        row("peak memory, MiB", [each.peak for each in memory], ".0f", share),
        row("loss over all clips afterwards", loss, ".4f", difference),
    ]


def tell(message: str) -> None:
    """Say how far the work is."""
    print(f"{time.strftime('%H:%M:%S')} {message}", flush=True)


def main() -> None:
    """Make the material, and compare."""
    found = parser(__doc__ or "", layers=6, dim=512, rounds=3)
    found.add_argument("--batch", type=int, default=8, help="clips of an update (8)")
    found.add_argument("--clips", type=int, default=64, help="clips in all (64)")
    found.add_argument("--updates", type=int, help="updates of a round (an epoch)")
    found.add_argument(
        "--sequential", action="store_true", help="a new process for each round: needs the memory of one"
    )
    options = found.parse_args()
    options.updates = options.updates or -(-options.clips // options.batch)
    with tempfile.TemporaryDirectory(prefix="training-benchmark-") as folder:
        write_material(Path(folder), options)
        free_memory()  # 3 GB of weights at 30 x 1024
        tell(f"made {options.clips} clips and a model of {options.layers} x {options.dim}")
        compare(options, Path(folder))


if __name__ == "__main__":
    main()
