"""Compare our training with plain coqui-tts: `python benchmarks/training.py [--device cuda --layers 30 --dim 1024]`.

Both sides start from the same weights, draw from the same clips and make the same number of updates of the same number
of clips, in alternating rounds; a third row is ours with references padded to 6 s, as coqui pads them. Our side reads
features that were extracted once; the extraction is timed separately and also spread over three epochs. coqui's
evaluation judges all weights at the end. ``--switches`` measures each of our switches instead. The results are written
to benchmarks/results as JSON and Markdown.
"""

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import yaml

from benchmarks import record
from benchmarks import training_report as report
from benchmarks import training_switches as switches
from benchmarks.training_data import Material, make
from benchmarks.training_findings import Comparison, Measured, SwitchTable
from benchmarks.training_plan import Memory, Plan, Round
from benchmarks.training_sides import SIDES, Side, apart

ROUNDS = {"cpu": 3, "cuda": 7}
WARM_UP = 1  # updates
BEFORE = "before"  # the name of our initial weights
PASSES = 3  # over the feature pass; the median counts
COQUI_WORKERS = 8  # in coqui's recipe, which is for GPUs; on a CPU they would take its cores away
SMALL = {"layers": 2, "dim": 128, "batch": 2, "clips": 16}  # for the switches on a CPU
ON_A_GPU: dict[str, object] = {"enable_mixed_precision": True, "enable_grad_checkpoint": True}  # compared with coqui


class Worked(NamedTuple):
    """What a side did.

    Attributes:
        rounds: Its rounds, without the warm-up.
        memory: What its process has needed.
        notes: What a reader should know of it.
    """

    rounds: list[Round]
    memory: Memory
    notes: list[str]


def compare(plan: Plan, material: Material, rounds: int, updates: int, *, sequential: bool = False) -> Comparison:
    """Let the sides work in turn, or one after another where memory holds only one, and gather what was found."""
    seconds, work = encoded(plan, material, PASSES)
    tell(f"features of {plan.clips} clips: {seconds:.1f} s")
    worked: dict[str, Worked] = {}
    for names in [[name] for name in SIDES] if sequential else [list(SIDES)]:
        worked |= worked_by(names, plan, material, rounds, updates)
    first, ours_first, *after = apart("benchmarks.training_coqui:judge", plan, material, [BEFORE, *SIDES])
    before = dict.fromkeys(SIDES, ours_first) | {"coqui": first}
    losses = dict(zip(SIDES, after, strict=True))
    tell(f"losses: {before}, then {losses}")
    done = WARM_UP + rounds * updates
    measured = {
        name: Measured(each.rounds, each.memory, before[name], losses[name], done, each.notes)
        for name, each in worked.items()
    }
    return Comparison(
        plan, **measured, feature_seconds=seconds, feature_work=work,
        hardware=record.hardware(plan.device), command=record.typed(), date=record.today(),
    )  # fmt: skip


def worked_by(names: list[str], plan: Plan, material: Material, rounds: int, updates: int) -> dict[str, Worked]:
    """Let sides work in turn; each saves its weights at the end, and ours also at the start."""
    found: dict[str, list[Round]] = {name: [] for name in names}
    with ExitStack() as stack:
        sides = {name: stack.enter_context(Side(name, plan, material)) for name in names}
        if "ours" in sides:
            sides["ours"].save(BEFORE)
        for number in range(rounds + 1):
            for name in alternating(names, number):
                made = sides[name].round(updates if number else WARM_UP)
                tell(f"round {number}: {name:6}{made.speed:8.3f} clips/s{'' if number else ' (warm-up)'}")
                found[name] += [made] if number else []
        worked = {}
        for name, side in sides.items():
            notes = coqui_notes(side, plan, found[name]) if name == "coqui" else side.changes
            worked[name] = Worked(found[name], side.memory(), notes)
            side.save(name)
    return worked


def alternating(names: list[str], number: int) -> list[str]:
    """Return who begins: each side as often as the other, so that neither always has the warmer machine."""
    return names if number % 2 == 0 else names[::-1]


def coqui_notes(side: Side, plan: Plan, rounds: list[Round]) -> list[str]:
    """Say what a reader should know of plain coqui here."""
    waited = side.loading_seconds() / sum(one.seconds for one in rounds)
    return [
        f"sound is read with {side.reads_with()}",
        f"{plan.workers} loading processes; waiting for the loader took {waited:.1%} of its time",
    ]


def encoded(plan: Plan, material: Material, passes: int) -> tuple[float, float]:
    """Time the feature pass in a process of its own: seconds and processor seconds."""
    seconds, work = apart("benchmarks.training_ours:encode", plan, material, passes)
    return seconds, work


def tell(message: str) -> None:
    """Say how far the work is."""
    print(f"{time.strftime('%H:%M:%S')} {message}", flush=True)


def run_comparison(plan: Plan, material: Material, arguments: argparse.Namespace) -> None:
    """Compare, write the findings down and show them."""
    updates = arguments.updates or plan.epoch
    rounds = arguments.rounds or ROUNDS[plan.device]
    found = compare(plan, material, rounds, updates, sequential=arguments.sequential)
    page = report.comparison_page(found, sequential=arguments.sequential)
    name = record.file_name(f"training_{plan.layers}x{plan.dim}", found.hardware, found.date)
    print(page, record.save(name, report.comparison_data(found), page, arguments.results), sep="\n")


def run_switches(plan: Plan, material: Material, arguments: argparse.Namespace) -> None:
    """Measure the switches, write the findings down and show them."""
    encoded(plan, material, 1)
    updates, names = arguments.updates or switches.UPDATES, switches.chosen(arguments.only, plan.device)
    rows = switches.measure(plan, material, names, updates, tell)
    rows += switches.left_out(names) if not arguments.only else []
    found = SwitchTable(
        plan, updates, rows,
        hardware=record.hardware(plan.device), command=record.typed(), date=record.today(),
    )  # fmt: skip
    page = report.switch_page(found)
    name = record.file_name("training_switches", found.hardware, found.date)
    print(page, record.save(name, report.switch_data(found), page, arguments.results), sep="\n")


def plan_of(arguments: argparse.Namespace) -> Plan:
    """Read the conditions off the command line."""
    small = SMALL if arguments.switches and arguments.device == "cpu" else {}
    given = {name: getattr(arguments, name) for name in (*SMALL, "accumulation", "threads", "rate", "seed")}
    chosen = small | {name: value for name, value in given.items() if value is not None}
    workers = arguments.workers
    if workers is None:
        workers = min(COQUI_WORKERS, os.cpu_count() or 1) if arguments.device == "cuda" else 0
    settings = ON_A_GPU if arguments.device == "cuda" and not arguments.switches else {}
    settings = settings | {name: yaml.safe_load(value) for name, value in (one.split("=", 1) for one in arguments.set)}
    return Plan(device=arguments.device, workers=workers, settings=settings, **chosen)


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switches", action="store_true", help="measure each switch of ours instead")
    parser.add_argument("--only", nargs="+", choices=list(switches.SWITCHES), help="with --switches: only these rows")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--layers", type=int, help="of the GPT (6; with --switches on a CPU 2)")
    parser.add_argument("--dim", type=int, help="width of the GPT (512; with --switches on a CPU 128)")
    parser.add_argument("--batch", type=int, help="clips on the device at once (8; with --switches on a CPU 2)")
    parser.add_argument("--accumulation", type=int, help="batches summed before an update (1)")
    parser.add_argument("--clips", type=int, help="clips in all (64; with --switches on a CPU 16)")
    parser.add_argument("--threads", type=int, help="threads of each side (2)")
    parser.add_argument("--workers", type=int, help="loading processes of coqui (0 on a CPU, 8 with a GPU)")
    parser.add_argument("--rate", type=float, help="learning rate (1e-4; it costs no time)")
    parser.add_argument("--seed", type=int, help="of clips, weights and order (0)")
    parser.add_argument("--rounds", type=int, help="rounds of each side after the warm-up (3; on a GPU 7)")
    parser.add_argument("--updates", type=int, help="updates of a round, or of a row (an epoch; 100)")
    parser.add_argument("--sequential", action="store_true", help="one side after another: needs the memory of one")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="FIELD=VALUE", help="further settings of our side, as in a config"
    )
    parser.add_argument("--results", type=Path, default=record.RESULTS, help="where the findings are written")
    return parser


def main() -> None:
    """Make the material, measure and report."""
    arguments = parser().parse_args()
    plan = plan_of(arguments)
    run = run_switches if arguments.switches else run_comparison
    with tempfile.TemporaryDirectory(prefix="training-benchmark-") as folder:
        material = make(Path(folder), plan)
        tell(f"made {plan.clips} clips and a model of {plan.layers} x {plan.dim}")
        run(plan, material, arguments)


if __name__ == "__main__":
    main()
